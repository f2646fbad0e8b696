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
  /** Those that run: one may begin while the last step of another one is on its way. None is kept alive by it. */
  #collectors: WeakRef<Collector>[] = [];

  /** A collector begins or goes on. */
  begin(collector: Collector): void {
    this.#collectors = this.#running().filter((one) => one.deref() !== collector);
    this.#collectors.push(new WeakRef(collector));
  }

  /**
   * Refuses to fill the context while one runs: the engine sees its steps alone.
   * @throws InferletError `context-busy`, `context-released`
   */
  check(context: host.ContextHandle): void {
    if (this.#collectors.length === 0) return;
    this.#collectors = this.#running();
    if (this.#collectors.length === 0) return;
    // A context that was released is told so.
    context.seqLen();
    const busy = 'the context cannot be appended to while a collector runs that asks the program';
    throw new InferletError('context-busy', `${busy}; go step by step to append between steps, or wait for its end`);
  }

  #running(): WeakRef<Collector>[] {
    return this.#collectors.filter((one) => one.deref()?.isRunning === true);
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
