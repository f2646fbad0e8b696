/** Speculators: who proposes tokens that are computed together, and kept while the sampler draws the same. */

import { show, type Tokens } from './arguments.js';
import { hasMethod } from './constraint.js';
import { wrongType } from './errors.js';

/**
 * Proposes tokens, step by step: any object with `draft` and `accept`. It never changes a token: the engine keeps a
 * draft while it equals what the sampler draws there.
 */
export interface Speculator {
  /**
   * Tokens behind the newest one and their positions, which are consecutive; none: nothing is proposed. It is called
   * once in each step.
   */
  draft(): [Tokens, Iterable<number>];
  /** Takes what a step drew: the drafts that were kept, and the token behind them. It comes behind `rollback`. */
  accept(tokens: Uint32Array): void;
  /** Undoes the last `n` drafts of a step, which were not kept. It is called where there were any. */
  rollback?(n: number): void;
  /**
   * Forgets everything. It is called when a generation begins to use it, and where `g.accept` took tokens back:
   * `accept` then gets all tokens of the generation anew.
   */
  reset?(): void;
}

/** @internal */
export function toSpeculator(value: Speculator): Speculator {
  if (hasMethod(value, 'draft') && hasMethod(value, 'accept')) return value;
  throw wrongType(`speculator must have the methods draft() and accept(tokens); it is ${show(value)}`);
}
