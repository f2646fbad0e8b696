/** JSON as the SDK writes it: compact, in insertion order, and never with something silently left out. */

import { InferletError } from './errors.js';
import type { ErrorCode } from './error-codes.js';
import { MAX_DEPTH, nestsTooDeep } from './depth.js';

type TypedArray = Uint8Array | Uint32Array | Float32Array;

const PLAIN_VALUES = 'use strings, finite numbers, booleans, null, lists and objects';
const AWAIT = 'write `await` before the call that gives it';

/** What to write in place of objects of the SDK, by their classes: they have no fields, and would be `{}`. */
const remedies = new Map<unknown, string>();

/**
 * Has JSON refuse the objects of a class, with words on what to do.
 * @internal
 */
export function refuseInJson(kind: abstract new (...values: never[]) => object, remedy: string): void {
  remedies.set(kind, remedy);
}

/**
 * The JSON text of a value; `undefined` is null. Typed arrays become lists. What `JSON.stringify` would leave out, turn
 * into null or write as `{}` (functions, symbols, bigints, NaN and infinities, promises, maps and sets, objects of the
 * SDK, cycles) is an error that names it, and so is text with a lone surrogate, which many readers refuse.
 * @internal
 */
export function toJson(value: unknown, what: string, code: ErrorCode): string {
  const refuse = (reason: string, key: string, remedy = PLAIN_VALUES): never => {
    const place = key === '' ? what : `${what}, at the key '${key}',`;
    throw new InferletError(code, `${place} is ${reason}, which JSON cannot hold; ${remedy}`);
  };
  const refuseObject = (item: object, key: string): void => {
    if (item instanceof Promise) refuse('a Promise that nothing awaited', key, AWAIT);
    if (item instanceof Map || item instanceof Set || item instanceof WeakMap || item instanceof WeakSet) {
      refuse(`a ${item.constructor.name}`, key);
    }
    const remedy = remedies.get(item.constructor);
    if (remedy !== undefined) refuse(`an object of type ${item.constructor.name}`, key, remedy);
  };
  const check = (key: string, given: unknown): unknown => {
    // `JSON.stringify` writes such an object as the string that it holds.
    const item = given instanceof String ? String(given) : given;
    if (!key.isWellFormed()) return refuse('a value whose key holds a lone surrogate', key);
    switch (typeof item) {
      case 'string':
        return item.isWellFormed() ? item : refuse('text with a lone surrogate', key);
      case 'number':
        return Number.isFinite(item) ? item : refuse(String(item), key);
      case 'bigint':
        return refuse(`the BigInt ${item}`, key);
      case 'function':
        return refuse(`the function ${item.name || '(without a name)'}`, key);
      case 'symbol':
        return refuse(`the symbol ${item.description ?? ''}`, key);
      case 'object':
        if (item !== null) refuseObject(item, key);
        return ArrayBuffer.isView(item) && !(item instanceof DataView) ? Array.from(item as TypedArray) : item;
      default:
        return item;
    }
  };
  try {
    const text = JSON.stringify(value === undefined ? null : value, check);
    return nestsTooDeep(text) ? refuse(`nested more than ${MAX_DEPTH} deep`, '', 'give it flatter') : text;
  } catch (error) {
    if (error instanceof TypeError && error.message.includes('circular')) return refuse('a cycle (an object that contains itself)', '');
    throw error;
  }
}
