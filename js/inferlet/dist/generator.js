/** Generators: what turns a context into tokens. */
import { newGenerator as create } from 'pie:host';
import { checkOptions, toBoolean, toCount, toSeed, toTokens } from './arguments.js';
import { Pending } from './pending.js';
import { samplerRecord } from './sampler.js';
const OPTIONS = ['maxTokens', 'stop', 'seed', 'autoFlush'];
/** What one step accepted. */
export class Output {
    /** Accepted tokens, a stop token included as the last. */
    tokens;
    /** Set when this step ended the generation. */
    finishReason;
    /** @internal */
    constructor([tokens, finishReason]) {
        this.tokens = tokens;
        this.finishReason = finishReason;
    }
}
/** One step of a generator, to be executed. */
export class GenStep {
    #generator;
    /** @internal */
    constructor(generator) {
        this.#generator = generator;
    }
    /** Runs the step. One that was cancelled is yielded again by the generator. */
    execute() {
        return new Pending((settle) => this.#generator.advance('step', settle), (answer) => new Output(answer));
    }
}
/**
 * Continues a context token by token. Drive it with a collector, with `for await`, or with `next()`; leaving the loop leaves the context
 * usable. A newer generator on the same context retires this one, whose use is then the error `generator-retired`.
 */
export class Generator {
    #handle;
    /** @internal */
    constructor(handle) {
        this.#handle = handle;
    }
    /** Caps the accepted tokens. */
    maxTokens(n) {
        this.#handle.setMaxTokens(toCount(n, 'maxTokens'));
        return this;
    }
    /** Replaces the template's stop tokens; an empty list removes the model's end tokens too. */
    stop(tokens) {
        this.#handle.setStop(toTokens(tokens, 'stop'));
        return this;
    }
    /** Adds stop tokens. */
    addStop(tokens) {
        this.#handle.addStop(toTokens(tokens, 'stop'));
        return this;
    }
    /** Removes the stop tokens of the model and of the template; `false` puts them back. */
    ignoreEos(ignore = true) {
        this.#handle.ignoreEos(toBoolean(ignore, 'ignore'));
        return this;
    }
    /** Tokens accepted so far. */
    get tokensGenerated() {
        return this.#handle.tokensGenerated();
    }
    /** Whether the generation has ended. */
    get isDone() {
        return this.finishReason !== undefined;
    }
    /** Why the generation ended; undefined while it can go on. */
    get finishReason() {
        return this.#handle.finishReason();
    }
    [Symbol.asyncIterator]() {
        return this;
    }
    /**
     * Opens the next step.
     * @throws InferletError `step-pending` where the step before was opened and never executed.
     */
    async next() {
        if (this.#handle.nextStep() === undefined)
            return { done: true, value: undefined };
        return { done: false, value: new GenStep(this.#handle) };
    }
    /** Generates to the end; answers the text that the template's chat decoder shows of the tokens that were left. */
    collectText() {
        return new Pending((settle) => this.#handle.advance('text', settle), (text) => text);
    }
    /** Generates to the end; answers the tokens that were left, a stop token included as the last. */
    collectTokens() {
        return new Pending((settle) => this.#handle.advance('tokens', settle), (tokens) => tokens);
    }
}
/** @internal */
export function newGenerator(context, sampler, options) {
    checkOptions(options, OPTIONS, 'generate()');
    const { maxTokens, stop, seed, autoFlush } = options;
    return new Generator(create(context, samplerRecord(sampler), {
        maxTokens: maxTokens === undefined ? undefined : toCount(maxTokens, 'maxTokens'),
        stop: toTokens(stop ?? [], 'stop'),
        seed: toSeed(seed, 'seed'),
        autoFlush: autoFlush === undefined || toBoolean(autoFlush, 'autoFlush'),
    }));
}
