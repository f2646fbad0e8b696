/** Runs a generator to its end, step by step. */

import type * as host from 'pie:host';
import { InferletError } from './errors.js';
import type { Output } from './output.js';
import type { Interest, Pending } from './pending.js';

/**
 * Gives the tokens of a generation, or throws what ended it, which need not be an error of the engine.
 * @internal
 */
export type Collected = () => Uint32Array;

/**
 * What a context knows of its collectors in which the program takes part.
 * @internal
 */
export class Collecting {
  /** The one that runs. One that the program let go of is forgotten. */
  #collector: WeakRef<Collector> | undefined;

  /** A collector begins or goes on. One that comes beside another is refused by the engine. */
  begin(collector: Collector): void {
    if (this.#collector?.deref()?.isRunning !== true) this.#collector = new WeakRef(collector);
  }

  /**
   * Refuses to fill the context while one runs, in the words of the engine, which sees its steps alone.
   * @throws InferletError `context-busy`, `context-released`
   */
  check(context: host.ContextHandle): void {
    if (this.#collector?.deref()?.isRunning !== true) return;
    // A context that was released is told so.
    context.seqLen();
    const several = 'To generate several at once, fork the context for each of them before the first one begins';
    const busy = 'the context cannot be appended to while a generation runs to its end; take or drop the result of the pass first';
    throw new InferletError('context-busy', `${busy}. ${several}`);
  }
}

/**
 * A wait for the end of a generation in which the program takes part. When its race is lost, the step that runs is
 * cancelled; whoever asks for the answer again has the generation go on from there.
 * @internal
 */
export class Collector implements Interest {
  readonly #collecting: Collecting;
  readonly #begin: () => Pending<Output, host.Output> | undefined;
  readonly #settle: host.Settle<Collected>;
  readonly #tokens: number[] = [];
  #nSubscribers = 0;
  /** Counts how often it began or went on: what an older run waits for never comes. */
  #run = 0;
  /** Ends the step that runs; undefined while nothing runs. It alone holds the step, which ends when it is let go. */
  #cancel: (() => void) | undefined;
  #isRunning = false;

  /** @param begin opens the next step and runs it; undefined after the end. */
  constructor(collecting: Collecting, begin: () => Pending<Output, host.Output> | undefined, settle: host.Settle<Collected>) {
    this.#collecting = collecting;
    this.#begin = begin;
    this.#settle = settle;
    void this.#goOn(this.#run);
  }

  /** Whether a step of it is under way, or the next one is about to be. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  subscribe(): void {
    this.#nSubscribers += 1;
    if (this.#cancel === undefined) void this.#goOn(this.#run);
  }

  unsubscribe(): void {
    this.#nSubscribers -= 1;
    if (this.#nSubscribers > 0) return;
    this.#run += 1;
    this.#isRunning = false;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  async #goOn(run: number): Promise<void> {
    this.#collecting.begin(this);
    this.#isRunning = true;
    try {
      for (let answer = this.#next(); answer !== undefined; answer = this.#next()) {
        const { tokens } = await answer;
        this.#tokens.push(...tokens);
        if (run !== this.#run) return;
      }
      this.#end(() => Uint32Array.from(this.#tokens));
    } catch (error) {
      if (run === this.#run) this.#end(() => { throw error; });
    }
  }

  #next(): Promise<Output> | undefined {
    const step = this.#begin();
    if (step === undefined) return undefined;
    const [answer, cancel] = step.lease();
    this.#cancel = cancel;
    return answer;
  }

  #end(collected: Collected): void {
    this.#cancel = () => {};
    this.#isRunning = false;
    this.#settle(undefined, collected);
  }
}
