/** JSON as the SDK writes it: compact, in insertion order, and never with something silently left out. */

import { InferletError } from './errors.js';
import type { ErrorCode } from './error-codes.js';

type TypedArray = Uint8Array | Uint32Array | Float32Array;

/**
 * The JSON text of a value; `undefined` is null. Typed arrays become lists. What `JSON.stringify` would leave out or
 * turn into null (functions, symbols, bigints, NaN and infinities, maps and sets, cycles) is an error that names it,
 * and so is text with a lone surrogate, which many readers refuse.
 * @internal
 */
export function toJson(value: unknown, what: string, code: ErrorCode): string {
  const refuse = (reason: string, key: string): never => {
    const place = key === '' ? what : `${what}, at the key '${key}',`;
    throw new InferletError(code, `${place} is ${reason}, which JSON cannot hold; use strings, finite numbers, booleans, null, lists and objects`);
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
        if (item instanceof Map || item instanceof Set || item instanceof WeakMap || item instanceof WeakSet || item instanceof Promise) {
          return refuse(`a ${item.constructor.name}`, key);
        }
        return ArrayBuffer.isView(item) && !(item instanceof DataView) ? Array.from(item as TypedArray) : item;
      default:
        return item;
    }
  };
  try {
    return JSON.stringify(value === undefined ? null : value, check);
  } catch (error) {
    if (error instanceof TypeError && error.message.includes('circular')) return refuse('a cycle (an object that contains itself)', '');
    throw error;
  }
}
