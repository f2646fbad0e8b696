/** Runs a generator to its end, step by step. */

import type * as host from 'pie:host';
import type { Output } from './output.js';
import type { Interest, Pending } from './pending.js';

/**
 * Gives the tokens of a generation, or throws what ended it, which need not be an error of the engine.
 * @internal
 */
export type Collected = () => Uint32Array;

/**
 * A wait for the end of a generation in which the program takes part. When its race is lost, the step that runs is
 * cancelled; whoever asks for the answer again has the generation go on from there.
 * @internal
 */
export class Collector implements Interest {
  readonly #begin: () => Pending<Output, host.Output> | undefined;
  readonly #settle: host.Settle<Collected>;
  readonly #tokens: number[] = [];
  #nSubscribers = 0;
  /** Counts how often it began or went on: what an older run waits for never comes. */
  #run = 0;
  /** Ends the step that runs; undefined while nothing runs. It alone holds the step, which ends when it is let go. */
  #cancel: (() => void) | undefined;

  /** @param begin opens the next step and runs it; undefined after the end. */
  constructor(begin: () => Pending<Output, host.Output> | undefined, settle: host.Settle<Collected>) {
    this.#begin = begin;
    this.#settle = settle;
    void this.#goOn(this.#run);
  }

  subscribe(): void {
    this.#nSubscribers += 1;
    if (this.#cancel === undefined) void this.#goOn(this.#run);
  }

  unsubscribe(): void {
    this.#nSubscribers -= 1;
    if (this.#nSubscribers > 0) return;
    this.#run += 1;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  async #goOn(run: number): Promise<void> {
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
    this.#settle(undefined, collected);
  }
}
