/** Constraints: who says in each step which tokens may be drawn. */

import { show, type Brle } from './arguments.js';
import { wrongType } from './errors.js';
import type { Model } from './model.js';

/** Restricts what a generator draws, step by step: any object with this method. */
export interface Constraint {
  /**
   * Takes what the step before accepted, nothing at first, and returns the mask of the tokens that may be drawn next.
   * An empty mask, or none, restricts nothing. It is called once in each step.
   */
  step(accepted: Uint32Array): Brle | undefined | void;
}

/** What makes a constraint for a model, once for each generation: any object with this method. */
export interface Schema {
  /** A fresh constraint for a model, at the beginning of a text. */
  buildConstraint(model: Model): Constraint;
}

/** What the option `constrain` takes. */
export type Constrain = Schema | Constraint | readonly (Schema | Constraint)[];

/**
 * The constraints that are given, those of schemas made for the model.
 * @internal
 */
export function toConstraints(value: Constrain, model: Model): Constraint[] {
  return [value].flat().map((given: unknown) => {
    const made = hasMethod(given, 'buildConstraint') ? (given as Schema).buildConstraint(model) : given;
    if (hasMethod(made, 'step')) return made as Constraint;
    const accepted = 'a schema (jsonSchema(...), anyJson(), regex(...), ebnf(...)), an object with a method step(accepted) or buildConstraint(model)';
    throw wrongType(`constrain must be ${accepted}, or a list of them; it is ${show(made)}`);
  });
}

/** @internal */
export function hasMethod(value: unknown, method: string): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return typeof (value as Record<string, unknown>)[method] === 'function';
}
