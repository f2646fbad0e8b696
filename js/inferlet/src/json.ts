/** JSON as the SDK writes it: compact, in insertion order, and never with something silently left out. */

import { InferletError } from './errors.js';
import type { ErrorCode } from './error-codes.js';
import { MAX_DEPTH, nestsTooDeep } from './depth.js';

type TypedArray = Uint8Array | Uint32Array | Float32Array;

const PLAIN_VALUES = 'use strings, finite numbers, booleans, null, lists and objects';
const AWAIT = 'write `await` before the call that gives it';
const OF_ERROR = 'write `error.message` or `String(error)`';
const COLLECT = 'collect what it yields: `[...values]`';
const COLLECT_ASYNC = 'collect what it yields: `for await (const value of values) list.push(value)`';

/** The longest text of an error that a message shows. */
const MAX_SHOWN_CHARS = 200;

/** What is not written as JSON: how a message calls it, and what to write in place of it. */
interface Refusal {
  readonly called: (item: object) => string;
  readonly remedy: string;
}

/** By the prototypes of their classes. These objects have no fields, or others than they seem, and would be `{}`. */
const refusals = new Map<object, Refusal>();

/**
 * Has JSON refuse the objects of a class, with words on what to do.
 * @internal
 */
export function refuseInJson(kind: { readonly prototype: object }, remedy: string): void {
  refusals.set(kind.prototype, { called: (item) => `an object of type ${item.constructor.name}`, remedy });
}

/** What of the language is refused, by the names of its globals. A runtime may lack some of them. */
const OF_LANGUAGE: readonly (readonly [name: string, called: string, remedy: string])[] = [
  ['Promise', 'a Promise that nothing awaited', AWAIT],
  ['Map', 'a Map', 'write `Object.fromEntries(map)` or `[...map]`'],
  ['Set', 'a Set', 'write `[...set]`'],
  ['WeakMap', 'a WeakMap', PLAIN_VALUES],
  ['WeakSet', 'a WeakSet', PLAIN_VALUES],
  ['WeakRef', 'a WeakRef', PLAIN_VALUES],
  ['FinalizationRegistry', 'a FinalizationRegistry', PLAIN_VALUES],
  ['RegExp', 'a RegExp', 'write `String(pattern)`'],
  ['ArrayBuffer', 'an ArrayBuffer', 'write `new Uint8Array(buffer)`'],
  ['SharedArrayBuffer', 'a SharedArrayBuffer', 'write `new Uint8Array(buffer)`'],
  ['DataView', 'a DataView', 'write `new Uint8Array(view.buffer, view.byteOffset, view.byteLength)`'],
  ['BigInt', 'an object that holds a BigInt', 'write `String(n)`'],
  ['Symbol', 'an object that holds a symbol', PLAIN_VALUES],
];

for (const [name, called, remedy] of OF_LANGUAGE) {
  const kind = (globalThis as unknown as Record<string, { readonly prototype: object } | undefined>)[name];
  if (kind !== undefined) refusals.set(kind.prototype, { called: () => called, remedy });
}
refusals.set(Error.prototype, { called: (item) => `the error \`${textOf(item)}\``, remedy: OF_ERROR });

const prototypeOf = (item: object): object => Object.getPrototypeOf(item) as object;
const GENERATOR = prototypeOf(prototypeOf((function* () {})()));
const ASYNC_GENERATOR = prototypeOf(prototypeOf((async function* () {})()));
const ITERATORS: readonly (readonly [prototype: object, called: string, remedy: string])[] = [
  [GENERATOR, 'a generator', COLLECT],
  [ASYNC_GENERATOR, 'an async generator', COLLECT_ASYNC],
  // What they, and the iterators of the language, derive from.
  [prototypeOf(GENERATOR), 'an iterator', COLLECT],
  [prototypeOf(ASYNC_GENERATOR), 'an async iterator', COLLECT_ASYNC],
];

for (const [prototype, called, remedy] of ITERATORS) refusals.set(prototype, { called: () => called, remedy });

/** The text of an error, as a message shows it. */
function textOf(error: object): string {
  try {
    const text = String(error).toWellFormed();
    return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS).toWellFormed()}…` : text;
  } catch {
    return error.constructor.name; // an error whose own `toString` throws
  }
}

/** Why an object is not written; undefined for one that is. */
function refusalOf(prototype: object | null): Refusal | undefined {
  for (let one = prototype; one !== null && one !== Object.prototype; one = Object.getPrototypeOf(one) as object | null) {
    const found = refusals.get(one);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Whether all that a plain object holds stands under symbols. */
function holdsSymbolsAlone(item: object): boolean {
  for (const _ in item) return false;
  return Object.getOwnPropertySymbols(item).some((symbol) => Object.prototype.propertyIsEnumerable.call(item, symbol));
}

/**
 * The JSON text of a value; `undefined` is null. Typed arrays become lists. What `JSON.stringify` would leave out, turn
 * into null or write as `{}` (functions, symbols, bigints, NaN and infinities, invalid dates, errors, promises,
 * generators, maps and sets, buffers, objects of the SDK, cycles) is an error that names it, and so is text with a lone
 * surrogate, which many readers refuse. Objects of the program's own classes are written by their fields.
 * @internal
 */
export function toJson(value: unknown, what: string, code: ErrorCode): string {
  const refuse = (reason: string, key: string, remedy = PLAIN_VALUES): never => {
    const place = key === '' ? what : `${what}, at the key '${key}',`;
    throw new InferletError(code, `${place} is ${reason}, which JSON cannot hold; ${remedy}`);
  };
  const ofObject = (item: object, key: string): unknown => {
    const prototype = Object.getPrototypeOf(item) as object | null;
    // Most objects are these.
    if (prototype === Object.prototype || prototype === null) {
      return holdsSymbolsAlone(item) ? refuse('an object whose keys are symbols', key, 'use strings as keys') : item;
    }
    if (Array.isArray(item)) return item;
    const refusal = refusalOf(prototype);
    if (refusal !== undefined) return refuse(refusal.called(item), key, refusal.remedy);
    return ArrayBuffer.isView(item) ? Array.from(item as TypedArray) : item;
  };
  const check = function (this: unknown, key: string, given: unknown): unknown {
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
        if (item !== null) return ofObject(item, key);
        // `toJSON` makes null of a date that is none.
        return (this as Record<string, unknown>)[key] instanceof Date ? refuse('an invalid Date', key) : null;
      default:
        return item;
    }
  };
  try {
    const text = JSON.stringify(value === undefined ? null : value, check) as string | undefined;
    if (text === undefined) return refuse('an object whose toJSON gives undefined', '', 'have it give a value, or null for nothing');
    return nestsTooDeep(text) ? refuse(`nested more than ${MAX_DEPTH} deep`, '', 'give it flatter') : text;
  } catch (error) {
    if (error instanceof TypeError && error.message.includes('circular')) return refuse('a cycle (an object that contains itself)', '');
    throw error;
  }
}
