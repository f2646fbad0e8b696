/** Constraints: who says in each step which tokens may be drawn. */

import { show, type Brle } from './arguments.js';
import { wrongType } from './errors.js';
import { jsonSchema } from './grammar.js';
import type { Model } from './model.js';
import { schemaOf, type SchemaSource } from './typed.js';

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

/** What the option `constrain` takes. A schema of a library allows its documents, as it does for `collectJson`. */
export type Constrain = Schema | Constraint | SchemaSource | readonly (Schema | Constraint | SchemaSource)[];

/**
 * The constraints that are given, those of schemas made for the model.
 * @internal
 */
export function toConstraints(value: Constrain, model: Model): Constraint[] {
  return [value].flat().map((one: unknown) => {
    const given = isSource(one) ? jsonSchema(schemaOf(one)) : one;
    const made = hasMethod(given, 'buildConstraint') ? (given as Schema).buildConstraint(model) : given;
    if (hasMethod(made, 'step')) return made as Constraint;
    const accepted = 'a schema (jsonSchema(...), anyJson(), regex(...), ebnf(...)), a schema of a library, an object with a method step(accepted) or buildConstraint(model)';
    throw wrongType(`constrain must be ${accepted}, or a list of them; it is ${show(made)}`);
  });
}

/** Whether it is a schema of a library; those of some are functions. */
function isSource(value: unknown): value is SchemaSource {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const source = value as SchemaSource & Partial<Schema>;
  if (typeof source.buildConstraint === 'function') return false;
  return typeof source.toJSONSchema === 'function' || source['~standard'] !== undefined;
}

/** @internal */
export function hasMethod(value: unknown, method: string): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return typeof (value as Record<string, unknown>)[method] === 'function';
}
