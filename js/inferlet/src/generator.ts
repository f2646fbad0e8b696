/** Generators: what turns a context into tokens. */

import { newGenerator as create, type ContextHandle, type GeneratorHandle, type Settle, type StepAnswer } from 'pie:host';
import { checkOptions, toBoolean, toCount, toSeed, toTokens, type Seed, type Tokens } from './arguments.js';
import { Pending } from './pending.js';
import { samplerRecord, type Sampler } from './sampler.js';

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

const OPTIONS = ['maxTokens', 'stop', 'seed', 'autoFlush'] as const satisfies readonly (keyof GenerateOptions)[];

/** What one step accepted. */
export class Output {
  /** Accepted tokens, a stop token included as the last. */
  readonly tokens: Uint32Array;
  /** Set when this step ended the generation. */
  readonly finishReason: FinishReason | undefined;

  /** @internal */
  constructor([tokens, finishReason]: StepAnswer) {
    this.tokens = tokens;
    this.finishReason = finishReason;
  }
}

/** One step of a generator, to be executed. */
export class GenStep {
  readonly #generator: GeneratorHandle;

  /** @internal */
  constructor(generator: GeneratorHandle) {
    this.#generator = generator;
  }

  /** Runs the step. One that was cancelled is yielded again by the generator. */
  execute(): Promise<Output> {
    return new Pending((settle: Settle<StepAnswer>) => this.#generator.advance('step', settle), (answer) => new Output(answer));
  }
}

/**
 * Continues a context token by token. Drive it with a collector, with `for await`, or with `next()`; leaving the loop leaves the context
 * usable. A newer generator on the same context retires this one, whose use is then the error `generator-retired`.
 */
export class Generator implements AsyncIterableIterator<GenStep, undefined> {
  readonly #handle: GeneratorHandle;

  /** @internal */
  constructor(handle: GeneratorHandle) {
    this.#handle = handle;
  }

  /** Caps the accepted tokens. */
  maxTokens(n: number): this {
    this.#handle.setMaxTokens(toCount(n, 'maxTokens'));
    return this;
  }

  /** Replaces the template's stop tokens; an empty list removes the model's end tokens too. */
  stop(tokens: Tokens): this {
    this.#handle.setStop(toTokens(tokens, 'stop'));
    return this;
  }

  /** Adds stop tokens. */
  addStop(tokens: Tokens): this {
    this.#handle.addStop(toTokens(tokens, 'stop'));
    return this;
  }

  /** Removes the stop tokens of the model and of the template; `false` puts them back. */
  ignoreEos(ignore = true): this {
    this.#handle.ignoreEos(toBoolean(ignore, 'ignore'));
    return this;
  }

  /** Tokens accepted so far. */
  get tokensGenerated(): number {
    return this.#handle.tokensGenerated();
  }

  /** Whether the generation has ended. */
  get isDone(): boolean {
    return this.finishReason !== undefined;
  }

  /** Why the generation ended; undefined while it can go on. */
  get finishReason(): FinishReason | undefined {
    return this.#handle.finishReason();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Opens the next step.
   * @throws InferletError `step-pending` where the step before was opened and never executed.
   */
  async next(): Promise<IteratorResult<GenStep, undefined>> {
    if (this.#handle.nextStep() === undefined) return { done: true, value: undefined };
    return { done: false, value: new GenStep(this.#handle) };
  }

  /** Generates to the end; answers the text that the template's chat decoder shows of the tokens that were left. */
  collectText(): Promise<string> {
    return new Pending((settle: Settle<string>) => this.#handle.advance('text', settle), (text) => text);
  }

  /** Generates to the end; answers the tokens that were left, a stop token included as the last. */
  collectTokens(): Promise<Uint32Array> {
    return new Pending((settle: Settle<Uint32Array>) => this.#handle.advance('tokens', settle), (tokens) => tokens);
  }
}

/** @internal */
export function newGenerator(context: ContextHandle, sampler: Sampler, options: GenerateOptions): Generator {
  checkOptions(options, OPTIONS, 'generate()');
  const { maxTokens, stop, seed, autoFlush } = options;
  return new Generator(
    create(context, samplerRecord(sampler), {
      maxTokens: maxTokens === undefined ? undefined : toCount(maxTokens, 'maxTokens'),
      stop: toTokens(stop ?? [], 'stop'),
      seed: toSeed(seed, 'seed'),
      autoFlush: autoFlush === undefined || toBoolean(autoFlush, 'autoFlush'),
    }),
  );
}
