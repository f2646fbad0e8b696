/** Grammars: what a model may write, by a JSON Schema, a regular expression or an EBNF text. */

import * as host from 'pie:host';
import { show, toText, toTokens, type Tokens } from './arguments.js';
import type { Schema } from './constraint.js';
import { wrongType } from './errors.js';
import { refuseInJson, toJson } from './json.js';
import { type Model, modelHandle } from './model.js';
import { type Tokenizer, tokenizerHandle } from './tokenizer.js';

/** A JSON Schema: as text, or as the object that it is. */
export type SchemaText = string | object | boolean;

/**
 * A grammar that was checked. It belongs to no model. A source that does not parse, cannot be enforced, or takes too
 * much is the error `invalid-grammar`, which says where.
 */
export class Grammar {
  /** @internal */
  readonly handle: host.GrammarHandle;

  private constructor(handle: host.GrammarHandle) {
    this.handle = handle;
  }

  /** @internal */
  static of(handle: host.GrammarHandle): Grammar {
    return new Grammar(handle);
  }

  static #from(source: host.Source): Grammar {
    return new Grammar(host.grammarCreate(source));
  }

  /** Documents that fit a JSON Schema, without white space between their signs. */
  static fromJsonSchema(schema: SchemaText): Grammar {
    return Grammar.#from({ type: 'json-schema', value: schemaText(schema) });
  }

  /** Documents of any JSON, without white space between their signs. */
  static json(): Grammar {
    return Grammar.#from({ type: 'any-json' });
  }

  /** Texts that match a regular expression as a whole. */
  static fromRegex(pattern: string): Grammar {
    return Grammar.#from({ type: 'regex', value: toText(pattern, 'pattern') });
  }

  /** Texts of a grammar in EBNF: the dialect of Lark, or that of `root ::=`. */
  static fromEbnf(source: string): Grammar {
    return Grammar.#from({ type: 'ebnf', value: toText(source, 'source') });
  }
}

/** Walks a text of a grammar by the tokens of a model, from its beginning on. */
export class Matcher {
  readonly #grammar: Grammar;
  readonly #tokenizer: Tokenizer;
  #handle: host.MatcherHandle;

  /**
   * A matcher at the beginning of a text.
   * @throws InferletError `invalid-grammar` for a grammar that takes too much with the vocabulary; `invalid-argument`
   * for that of the calls of another model.
   */
  constructor(grammar: Grammar, tokenizer: Tokenizer) {
    if (!(grammar instanceof Grammar)) throw wrongType(`grammar must be a Grammar; it is ${show(grammar)}`);
    this.#grammar = grammar;
    this.#tokenizer = tokenizer;
    this.#handle = grammar.handle.matcher(tokenizerHandle(tokenizer));
  }

  /** @internal */
  get handle(): host.MatcherHandle {
    return this.#handle;
  }

  /** A copy at the same place, which goes on by itself. */
  fork(): Matcher {
    const copy = new Matcher(this.#grammar, this.#tokenizer);
    copy.#handle = this.#handle.fork();
    return copy;
  }

  /**
   * Goes on by tokens, 65,536 at most; where one does not continue the text, none is taken.
   * @throws InferletError `grammar-mismatch`; `invalid-grammar` for a document beyond a megabyte or 120 levels.
   */
  acceptTokens(ids: Tokens): void {
    this.handle.accept(toTokens(ids, 'ids'));
  }

  /**
   * The tokens that may follow, as run lengths.
   * @throws InferletError `grammar-mismatch` after the end of the text.
   */
  nextTokenLogitMask(): Uint32Array {
    return this.handle.mask();
  }

  /** The tokens that must follow, as the tokenizer writes them; empty where there is a choice. */
  forcedTokens(): Uint32Array {
    return this.handle.forced();
  }

  /** Whether the text has ended: a stop token was accepted, or nothing else could follow. */
  isTerminated(): boolean {
    return this.handle.isTerminated();
  }

  /** Goes back to the beginning of the text. */
  reset(): void {
    this.handle.reset();
  }
}

/**
 * A constraint by a grammar. The engine walks it by itself: the program has no part in a step. It begins where the
 * matcher stands. A source that cannot be enforced is the error `invalid-grammar`.
 */
export class GrammarConstraint {
  /** @internal */
  readonly matcher: Matcher;

  /** A constraint that goes on from where a matcher stands. */
  constructor(matcher: Matcher) {
    if (!(matcher instanceof Matcher)) throw wrongType(`matcher must be a Matcher; it is ${show(matcher)}`);
    this.matcher = matcher;
  }

  /** A constraint by a grammar that was checked. */
  static fromGrammar(grammar: Grammar, model: Model): GrammarConstraint {
    modelHandle(model);
    return new GrammarConstraint(new Matcher(grammar, model.tokenizer()));
  }

  /** A constraint to documents that fit a JSON Schema, as text or as the object that it is. */
  static fromJsonSchema(schema: SchemaText, model: Model): GrammarConstraint {
    return GrammarConstraint.fromGrammar(Grammar.fromJsonSchema(schema), model);
  }

  /** A constraint to documents of any JSON. */
  static json(model: Model): GrammarConstraint {
    return GrammarConstraint.fromGrammar(Grammar.json(), model);
  }

  /** A constraint to texts that match a regular expression as a whole. */
  static fromRegex(pattern: string, model: Model): GrammarConstraint {
    return GrammarConstraint.fromGrammar(Grammar.fromRegex(pattern), model);
  }

  /** A constraint to texts of a grammar in EBNF: the dialect of Lark, or that of `root ::=`. */
  static fromEbnf(source: string, model: Model): GrammarConstraint {
    return GrammarConstraint.fromGrammar(Grammar.fromEbnf(source), model);
  }

  /** Goes on by what the step before accepted; returns the mask of the tokens that may follow. */
  step(accepted: Uint32Array): Uint32Array {
    this.matcher.acceptTokens(accepted);
    return this.matcher.nextTokenLogitMask();
  }
}

for (const kind of [Grammar, Matcher, GrammarConstraint]) refuseInJson(kind, 'send the text that it was made of');

/** Documents that fit a JSON Schema, for the option `constrain`. One that cannot be enforced is `invalid-grammar`. */
export function jsonSchema(schema: SchemaText): Schema {
  return { buildConstraint: (model) => GrammarConstraint.fromJsonSchema(schema, model) };
}

/** Documents of any JSON, for the option `constrain`. */
export function anyJson(): Schema {
  return { buildConstraint: (model) => GrammarConstraint.json(model) };
}

/** Texts that match a regular expression as a whole, for the option `constrain`. */
export function regex(pattern: string): Schema {
  return { buildConstraint: (model) => GrammarConstraint.fromRegex(pattern, model) };
}

/** Texts of a grammar in EBNF, for the option `constrain`: the dialect of Lark, or that of `root ::=`. */
export function ebnf(source: string): Schema {
  return { buildConstraint: (model) => GrammarConstraint.fromEbnf(source, model) };
}

/** Texts of a grammar that was checked, for the option `constrain`. */
export function grammar(compiled: Grammar): Schema {
  return { buildConstraint: (model) => GrammarConstraint.fromGrammar(compiled, model) };
}

/** @internal */
export function schemaText(schema: unknown): string {
  const isValue = (typeof schema === 'object' && schema !== null) || typeof schema === 'boolean';
  return isValue ? toJson(schema, 'schema', 'invalid-argument') : toText(schema as string, 'schema');
}
