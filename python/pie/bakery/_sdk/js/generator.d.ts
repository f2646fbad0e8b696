/** Generators: what turns a context into tokens. */
import { type Seed, type Tokens } from './arguments.js';
/** Options of `ctx.generate`. */
export interface GenerateOptions {
    /** Cap on accepted tokens; without it, until a stop token or until the model's context is full. */
    readonly maxTokens?: number | undefined;
    /** Stop tokens beside those of the model and the template. */
    readonly stop?: Tokens | undefined;
    /** Used as given, 0 included; without it, derived from the launch seed and what the context holds. */
    readonly seed?: Seed | undefined;
    /** Cue the model where a chat turn stands last, and stop at the template's stop tokens. Default: true. */
    readonly autoFlush?: boolean | undefined;
}
/**
 * Why a generation ended: a stop token was accepted; the cap or the length of the model's context was reached; a constraint ended it;
 * or it was retired by a newer generator, a truncation, or the end of its context.
 */
export type FinishReason = 'stop' | 'length' | 'constraint' | 'closed';
/** What one step accepted. */
export declare class Output {
    /** Accepted tokens, a stop token included as the last. */
    readonly tokens: Uint32Array;
    /** Set when this step ended the generation. */
    readonly finishReason: FinishReason | undefined;
}
/** One step of a generator, to be executed. */
export declare class GenStep {
    #private;
    /** Runs the step. One that was cancelled is yielded again by the generator. */
    execute(): Promise<Output>;
}
/**
 * Continues a context token by token. Drive it with a collector, with `for await`, or with `next()`; leaving the loop leaves the context
 * usable. A newer generator on the same context retires this one, whose use is then the error `generator-retired`.
 */
export declare class Generator implements AsyncIterableIterator<GenStep, undefined> {
    #private;
    /** Caps the accepted tokens. */
    maxTokens(n: number): this;
    /** Replaces the template's stop tokens; an empty list removes the model's end tokens too. */
    stop(tokens: Tokens): this;
    /** Adds stop tokens. */
    addStop(tokens: Tokens): this;
    /** Removes the stop tokens of the model and of the template; `false` puts them back. */
    ignoreEos(ignore?: boolean): this;
    /** Tokens accepted so far. */
    get tokensGenerated(): number;
    /** Whether the generation has ended. */
    get isDone(): boolean;
    /** Why the generation ended; undefined while it can go on. */
    get finishReason(): FinishReason | undefined;
    [Symbol.asyncIterator](): this;
    /**
     * Opens the next step.
     * @throws InferletError `step-pending` where the step before was opened and never executed.
     */
    next(): Promise<IteratorResult<GenStep, undefined>>;
    /** Generates to the end; answers the text that the template's chat decoder shows of the tokens that were left. */
    collectText(): Promise<string>;
    /** Generates to the end; answers the tokens that were left, a stop token included as the last. */
    collectTokens(): Promise<Uint32Array>;
}
