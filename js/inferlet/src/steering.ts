/** What a generator asks of the program in each step: masks of its constraints, drafts of its speculator. */

import * as host from 'pie:host';
import { MAX_DRAFTS, show, toPositions, toRuns, toTokens } from './arguments.js';
import type { Constraint } from './constraint.js';
import { wrongType } from './errors.js';
import { GrammarConstraint } from './grammar.js';
import { type Model, modelHandle } from './model.js';
import type { Speculator } from './speculator.js';

/**
 * The constraints and the speculator of one generator, and what they answered for the step that is open.
 * @internal
 */
export class Steering {
  readonly #generator: host.GeneratorHandle;
  readonly #model: Model;
  readonly #constraints: Constraint[] = [];
  #isAsked = false;
  #speculator: Speculator | undefined;
  /** What the step before accepted. */
  #accepted: Uint32Array = new Uint32Array();
  /** What the first of the constraints answered in this step: a step that runs again asks them no more. */
  #masks: Uint32Array[] = [];
  /** How many tokens were proposed for this step; undefined: the speculator was not asked yet. */
  #nDrafted: number | undefined;
  /** Every token since the generator was made, for a speculator alone. */
  #drawn: number[] = [];

  constructor(generator: host.GeneratorHandle, model: Model) {
    this.#generator = generator;
    this.#model = model;
  }

  /** Whether the program has a part in each step, so that the engine cannot go on alone. */
  get isAsked(): boolean {
    return this.#isAsked;
  }

  /** Whether the program proposes tokens. */
  get hasSpeculator(): boolean {
    return this.#speculator !== undefined;
  }

  /** Adds constraints: from now on each step waits for their mask. The engine asks grammars by itself. */
  constrain(constraints: readonly Constraint[]): void {
    for (const constraint of constraints) {
      if (isGrammar(constraint)) {
        this.#generator.constrain(constraint.matcher.handle);
      } else {
        this.#generator.askMasks(true);
        this.#constraints.push(constraint);
        this.#isAsked = true;
      }
    }
  }

  /** Has a speculator propose tokens in each step. */
  speculate(speculator: Speculator): void {
    this.#speculator = speculator;
    this.#isAsked = true;
    speculator.reset?.();
  }

  /**
   * Runs the open step. Constraints are asked while the device works. Where one throws, or the speculator does, the
   * step is given up, and opened again later.
   */
  start(settle: host.Settle<host.Output>): host.Wait {
    if (!this.#isAsked) return this.#generator.step(settle);
    try {
      this.#propose();
    } catch (error) {
      this.#generator.step(settle).unsubscribe();
      throw error;
    }
    const wait = this.#generator.step(settle);
    if (this.#constraints.length === 0) return wait;
    try {
      this.#generator.giveMask(this.#mask());
    } catch (error) {
      wait.unsubscribe();
      throw error;
    }
    return wait;
  }

  /** Notes what the step accepted, and tells the speculator. */
  take({ tokens, speculation }: host.Output): void {
    if (!this.#isAsked) {
      // For constraints that are added later.
      this.#accepted = tokens;
      return;
    }
    const nRejected = (this.#nDrafted ?? 0) - speculation.accepted;
    this.#accepted = tokens;
    if (this.#masks.length > 0) this.#masks = [];
    this.#nDrafted = undefined;
    if (this.#speculator === undefined) return;
    this.#drawn.push(...tokens);
    if (nRejected > 0) this.#speculator.rollback?.(nRejected);
    this.#speculator.accept(tokens.slice());
  }

  /** Other tokens stand in place of what the last step accepted. Only where some are taken back it begins anew. */
  replace(tokens: Uint32Array): void {
    const before = this.#accepted;
    this.#accepted = tokens;
    const isKept = before.every((token, index) => token === tokens[index]);
    if (this.#speculator === undefined || (isKept && tokens.length === before.length)) return;
    this.#drawn.length -= before.length;
    this.#drawn.push(...tokens);
    if (isKept) {
      this.#speculator.accept(tokens.slice(before.length));
    } else {
      this.#speculator.reset?.();
      this.#speculator.accept(Uint32Array.from(this.#drawn));
    }
  }

  #propose(): void {
    if (this.#speculator === undefined || this.#nDrafted !== undefined) return;
    const draft: unknown = this.#speculator.draft();
    if (!Array.isArray(draft) || draft.length !== 2) {
      throw wrongType(`draft() must return [tokens, positions], not ${show(draft)}`);
    }
    const tokens = toTokens(draft[0], 'draft()[0]', MAX_DRAFTS);
    const positions = toPositions(draft[1], 'draft()[1]', MAX_DRAFTS);
    if (tokens.length > 0 || positions.length > 0) this.#generator.draft(tokens, positions);
    this.#nDrafted = tokens.length;
  }

  /** What all constraints allow in this step. */
  #mask(): Uint32Array {
    for (const constraint of this.#constraints.slice(this.#masks.length)) {
      const given = constraint.step(this.#accepted.slice());
      this.#masks.push(given === undefined || given === null ? new Uint32Array() : toRuns(given, 'step()'));
    }
    const masks = this.#masks;
    return masks.length === 1 ? masks[0]! : host.intersection(masks, modelHandle(this.#model).tokenizer().vocabSize());
  }
}

/** A class that was derived from it may have a step of its own. */
function isGrammar(constraint: Constraint): constraint is GrammarConstraint {
  return Object.getPrototypeOf(constraint) === GrammarConstraint.prototype;
}
