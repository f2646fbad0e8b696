/** What `collectJson` takes as its schema, and what becomes of a document. */

import { show } from './arguments.js';
import { InferletError, wrongType } from './errors.js';
import type { SchemaText } from './grammar.js';

/** A schema of a library: anything that tells its JSON Schema, by `toJSONSchema` or the Standard Schema interface. */
export interface SchemaSource {
  /** Tells the JSON Schema, an object. */
  toJSONSchema?(): object;
  /** The Standard Schema interface: `validate` makes the value, `jsonSchema` tells the JSON Schema. */
  readonly '~standard'?: {
    validate?(value: unknown): unknown;
    readonly jsonSchema?: { input(options: { target: string }): object };
  };
}

/** The options of `g.collectJson`, by their names. */
export interface CollectJsonOptions<T> {
  /** A JSON Schema as text or as the object that it is, or a schema of a library; without it any JSON. */
  readonly schema?: SchemaText | SchemaSource | undefined;
  /** Makes the result of the value of the document. */
  readonly parse?: ((value: any) => T | Promise<T>) | undefined;
}

/** A document was cut before its end: the error `json-cut`, with what there is of it. */
export class JsonCutError extends InferletError {
  /** The text of the document as far as it goes. */
  readonly text: string;

  /** @internal */
  constructor(text: string, nTokens: number) {
    super('json-cut', `the document was cut after ${nTokens} tokens; raise maxTokens, or ask for a smaller document`);
    this.text = text;
  }
}

/**
 * The JSON Schema that is given.
 * @internal
 */
export function schemaOf(given: SchemaText | SchemaSource): SchemaText {
  if (typeof given === 'string' || typeof given === 'boolean') return given;
  if ((typeof given !== 'object' && typeof given !== 'function') || given === null) {
    throw wrongType(`schema is ${show(given)}; it must be a JSON Schema as text or as an object, or a schema of a library`);
  }
  const source = given as SchemaSource;
  const standard = source['~standard'];
  if (typeof source.toJSONSchema === 'function') return source.toJSONSchema();
  if (standard?.jsonSchema !== undefined) return standard.jsonSchema.input({ target: 'draft-2020-12' });
  if (standard !== undefined) throw wrongType(`schema must tell its JSON Schema; it is ${show(given)}`);
  return given as object;
}

/**
 * The value that a schema of a library makes of that of the document.
 * @internal
 */
export async function validated(given: SchemaText | SchemaSource | undefined, value: unknown): Promise<unknown> {
  const validate = typeof given === 'object' || typeof given === 'function' ? (given as SchemaSource)['~standard']?.validate : undefined;
  if (validate === undefined) return value;
  const result = (await validate(value)) as { value?: unknown; issues?: readonly { message: string }[] };
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map(({ message }) => message).join('; ');
  throw new InferletError('grammar-mismatch', `the document does not fit what its schema asks for beyond its JSON Schema: ${issues}`);
}
