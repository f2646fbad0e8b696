/** Generators: what turns a context into tokens. */

import * as host from 'pie:host';
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
  /** Stop at no token of the model and the template. Default: false. */
  readonly ignoreEos?: boolean | undefined;
}

/**
 * Why a generation ended: a stop token was accepted; the cap or the length of the model's context was reached; a
 * constraint ended it; or it was retired by a newer generator, a truncation, or the end of its context.
 */
export type FinishReason = 'stop' | 'length' | 'constraint' | 'closed';

/** How each option reaches the engine. */
const OPTIONS: { [N in keyof GenerateOptions]-?: (value: GenerateOptions[N], name: string) => host.Options[N] } = {
  maxTokens: (value, name) => (value === undefined ? undefined : toCount(value, name)),
  stop: (value, name) => toTokens(value ?? [], name),
  seed: (value, name) => (value === undefined ? undefined : toSeed(value, name)),
  autoFlush: (value, name) => value === undefined || toBoolean(value, name),
  ignoreEos: (value, name) => value !== undefined && toBoolean(value, name),
};

/** What one step accepted. */
export class Output {
  /** Accepted tokens, a stop token included as the last. */
  readonly tokens: Uint32Array;
  /** Set when this step ended the generation. */
  readonly finishReason: FinishReason | undefined;

  /** @internal */
  constructor({ tokens, finish }: host.Output) {
    this.tokens = tokens;
    this.finishReason = finish;
  }
}

/** One step of a generator, to be executed. */
export class GenStep {
  readonly #generator: host.GeneratorHandle;

  /** @internal */
  constructor(generator: host.GeneratorHandle) {
    this.#generator = generator;
  }

  /** Runs the step. One that was cancelled is yielded again by the generator. */
  execute(): Promise<Output> {
    const begin = (settle: host.Settle<host.Output>): host.Wait => this.#generator.step(settle);
    return new Pending(begin, (answer) => new Output(answer));
  }
}

/**
 * Continues a context token by token. Drive it with a collector, with `for await`, or with `next()`; leaving the loop
 * leaves the context usable. A newer generator on the same context retires this one, whose use is then the error
 * `generator-retired`.
 */
export class Generator implements AsyncIterableIterator<GenStep, undefined> {
  readonly #handle: host.GeneratorHandle;

  /** @internal */
  constructor(handle: host.GeneratorHandle) {
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

  /**
   * Draws from this seed, as given, 0 included; a seed of the sampler comes before it.
   * @throws InferletError `invalid-argument` once a step was opened.
   */
  seed(seed: Seed): this {
    this.#handle.setSeed(toSeed(seed, 'seed'));
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

  /** Why the generation ended; undefined while it has not. */
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

  /** Generates to the end; returns the text that the template's chat decoder shows of the tokens that were left. */
  collectText(): Promise<string> {
    return new Pending((settle: host.Settle<string>) => this.#handle.collectText(settle), (text) => text);
  }

  /** Generates to the end; returns the tokens that were left, a stop token included as the last. */
  collectTokens(): Promise<Uint32Array> {
    return new Pending((settle: host.Settle<Uint32Array>) => this.#handle.collectTokens(settle), (tokens) => tokens);
  }
}

/** @internal */
export function newGenerator(context: host.ContextHandle, sampler: Sampler, options: GenerateOptions): Generator {
  checkOptions(options, Object.keys(OPTIONS), 'generate()');
  const readers = Object.entries<(value: never, name: string) => unknown>(OPTIONS);
  const record = readers.map(([name, read]) => [name, read(options[name as keyof GenerateOptions] as never, name)]);
  const fixed = { logitMask: new Uint32Array(), drafting: { type: 'none' } };
  const made = host.generatorCreate(context, samplerRecord(sampler), { ...Object.fromEntries(record), ...fixed } as host.Options);
  return new Generator(made);
}
