/**
 * What programs pass in, checked once and brought into the form that the engine takes. Mistakes of type are TypeErrors,
 * values out of range are InferletErrors; both have codes.
 */

import type { ErrorCode } from './error-codes.js';
import { InferletError, wrongType } from './errors.js';
import { nearest } from './nearest.js';

const MAX_U32 = 0xffff_ffff;
const MAX_U64 = 0xffff_ffff_ffff_ffffn;
/** The longest row of a mask where it is not known: no vocabulary and no context of a model is longer. */
const MAX_ROW = 2 ** 20;
/**
 * So many drafts of one step cross to the engine, which takes fewer.
 * @internal
 */
export const MAX_DRAFTS = 2 ** 12;

/** Token ids, in any form in which a program may hold them. */
export type Tokens = Iterable<number>;

/** What a generation stops at: a text, or token ids and texts in any order. */
export type Stops = string | Iterable<number | string>;

/**
 * A mask as run lengths, in any form in which a program may hold them: forbidden first, then alternating, 1 = allowed.
 * Beyond the last run everything is forbidden; no run at all restricts nothing.
 */
export type Brle = Iterable<number>;

/** A seed: a whole number from 0 to 2^64 - 1; beyond 2^53 - 1 as a bigint. */
export type Seed = number | bigint;

/**
 * A string that is Unicode text, as the engine's texts are.
 * @internal
 */
export function toText(value: string, name: string): string {
  if (typeof value !== 'string') throw wrongType(`${name} must be a string, not ${show(value)}`);
  if (!value.isWellFormed()) {
    const index = [...value].findIndex((character) => !character.isWellFormed());
    const remedy = 'text that crosses to the engine must be valid Unicode';
    throw new InferletError('invalid-argument', `${name} holds a lone surrogate, as its character ${index}; ${remedy}`);
  }
  return value;
}

/**
 * A whole number of 32 bits.
 * @internal
 */
export function toCount(value: number, name: string): number {
  if (typeof value !== 'number') throw wrongType(`${name} must be a number, not ${show(value)}`);
  if (!Number.isInteger(value) || value < 0 || value > MAX_U32) {
    throw new InferletError('invalid-argument', `${name} is ${value}; pass a whole number from 0 to ${MAX_U32}`, { [name]: show(value) });
  }
  return value;
}

/**
 * How many tokens a text is thought to become: a whole number from 1 on. 0 is the engine's to refuse.
 * @internal
 */
export function toHorizon(value: number): number {
  if (typeof value === 'number' && !(Number.isInteger(value) && value >= 0 && value <= MAX_U32)) {
    const message = `horizon is ${value}; it is how many tokens the text is thought to become, a whole number from 1 to ${MAX_U32}`;
    throw new InferletError('invalid-argument', message, { horizon: show(value) });
  }
  return toCount(value, 'horizon');
}

/**
 * A number of any kind, for what the engine judges.
 * @internal
 */
export function toNumber(value: number, name: string): number {
  if (typeof value !== 'number') throw wrongType(`${name} must be a number, not ${show(value)}`);
  return value;
}

/** @internal */
export function toBytes(value: Uint8Array, name: string): Uint8Array {
  if (!(value instanceof Uint8Array)) throw wrongType(`${name} must be a Uint8Array, not ${show(value)}`);
  return value;
}

/** @internal */
export function toBoolean(value: boolean, name: string): boolean {
  if (typeof value !== 'boolean') throw wrongType(`${name} must be true or false, not ${show(value)}`);
  return value;
}

/** What the numbers of a list are, in messages. */
interface Words {
  readonly many: string;
  /** With its article. */
  readonly one: string;
  readonly code: ErrorCode;
}

const TOKENS: Words = { many: 'token ids', one: 'a token id', code: 'invalid-token' };
const RUNS: Words = { many: 'run lengths', one: 'a run length', code: 'invalid-argument' };
const INDICES: Words = { many: 'indices', one: 'an index', code: 'invalid-argument' };
const POSITIONS: Words = { many: 'positions', one: 'a position', code: 'invalid-argument' };

/** @internal */
export function toTokens(value: Tokens, name: string, most?: number): Uint32Array {
  return toWords(value, name, TOKENS, most);
}

/**
 * What a generation stops at, the tokens and the texts apart.
 * @internal
 */
export function toStops(value: Stops, name: string): { tokens: Uint32Array; texts: string[] } {
  if (typeof value === 'string') return { tokens: new Uint32Array(), texts: [toText(value, name)] };
  if (!isIterable(value)) {
    throw wrongType(`${name} must be a text, or a list of token ids and texts, not ${show(value)}`);
  }
  if (value instanceof Uint32Array) return { tokens: value, texts: [] };
  const items = [...value];
  const texts = items.flatMap((item, index) => (typeof item === 'string' ? [toText(item, `${name}[${index}]`)] : []));
  const tokens = items.filter((item) => typeof item !== 'string') as number[];
  return { tokens: toTokens(tokens, texts.length === 0 ? name : `the token ids of ${name}`), texts };
}

/**
 * A mask of a row of `length` elements, which needs one run more at most. The engine says so too, but more runs may not
 * fit a call.
 * @internal
 */
export function toRuns(value: Brle, name: string, length = MAX_ROW): Uint32Array {
  if (value instanceof Set || value instanceof Map) {
    // Both can be iterated over: tokens that are allowed would be read as runs.
    const remedy = 'brle.allowing(tokens, length) makes one of the tokens that it allows';
    throw wrongType(`${name} must be a mask: a list of run lengths, not ${show(value)}; ${remedy}`);
  }
  return toWords(value, name, RUNS, length + 1);
}

/** @internal */
export function toIndices(value: Iterable<number>, name: string): Uint32Array {
  return toWords(value, name, INDICES);
}

/** @internal */
export function toPositions(value: Iterable<number>, name: string, most?: number): Uint32Array {
  return toWords(value, name, POSITIONS, most);
}

/**
 * Masks, one for each row of `length` elements.
 * @internal
 */
export function toMasks(value: Iterable<Brle>, name: string, length = MAX_ROW): Uint32Array[] {
  if (!isIterable(value)) throw wrongType(`${name} must be masks (an iterable of run lengths), not ${show(value)}`);
  return Array.from(value, (mask, index) => toRuns(mask, `${name}[${index}]`, length));
}

/** Of what may have `most` numbers, what has no end is not read to its end. */
function toWords(value: Iterable<number>, name: string, { many, one, code }: Words, most = Infinity): Uint32Array {
  if (!isIterable(value)) {
    throw wrongType(`${name} must be a list of ${many} (a Uint32Array or another iterable of numbers), not ${show(value)}`);
  }
  const words = value instanceof Uint32Array ? value : firstOf(value, most + 1);
  if (words.length > most) {
    const message = `${name} has more than ${most} ${many}, which is the most that it may have; give fewer`;
    throw new InferletError('invalid-argument', message, { limit: most });
  }
  if (words instanceof Uint32Array) return words;
  for (const [index, word] of words.entries()) {
    const place = `${name}[${index}]`;
    if (typeof word !== 'number') throw wrongType(`${place} must be ${one}, not ${show(word)}`);
    if (!Number.isInteger(word) || word < 0 || word > MAX_U32) {
      const details = { [code === 'invalid-token' ? 'token' : name]: show(word) };
      throw new InferletError(code, `${place} is ${word}, which cannot be ${one}; pass whole numbers from 0 to ${MAX_U32}`, details);
    }
  }
  return Uint32Array.from(words);
}

/** The first values of what may have no end, `n` at most. */
function firstOf(values: Iterable<number>, n: number): number[] {
  if (n === Infinity) return Array.from(values);
  const first: number[] = [];
  for (const value of values) {
    if (first.push(value) >= n) break;
  }
  return first;
}

/** @internal */
export function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

/** @internal */
export function toSeed(value: Seed, name: string): bigint {
  if (typeof value !== 'number' && typeof value !== 'bigint') throw wrongType(`${name} must be a number or a bigint, not ${show(value)}`);
  const exact = typeof value === 'bigint' || Number.isSafeInteger(value);
  const seed = exact ? BigInt(value) : -1n;
  if (seed < 0n || seed > MAX_U64) {
    const message = `${name} is ${value}; pass a whole number from 0 to ${Number.MAX_SAFE_INTEGER}, or a bigint up to ${MAX_U64}`;
    throw new InferletError('invalid-argument', message, { [name]: String(value) });
  }
  return seed;
}

/**
 * A seed of evolution strategies, which may be negative.
 * @internal
 */
export function toZoSeed(value: Seed, name: string): bigint {
  if (typeof value !== 'number' && typeof value !== 'bigint') {
    throw wrongType(`${name} must be a number or a bigint, not ${show(value)}`);
  }
  const seed = typeof value === 'bigint' || Number.isSafeInteger(value) ? BigInt(value) : undefined;
  if (seed === undefined || BigInt.asIntN(64, seed) !== seed) {
    const limit = Number.MAX_SAFE_INTEGER;
    const message = `${name} is ${value}; pass a whole number from -${limit} to ${limit}, or a bigint of 64 bits`;
    throw new InferletError('invalid-argument', message, { [name]: String(value) });
  }
  return seed;
}

/**
 * Refuses arguments behind the last that a function takes: JavaScript would drop them. `n` of them were given, and it
 * takes `most`.
 * @internal
 */
export function checkArity(n: number, most: number, callee: string): void {
  if (n <= most) return;
  const takes = most === 1 ? '1 argument' : `${most} arguments`;
  const remedy = `call it once for each, and give it to \`forEach\` as \`(value) => ${callee}(${most === 1 ? '' : '..., '}value)\``;
  throw wrongType(`${callee}() takes ${takes} and was given ${n}, of which the rest would be lost; ${remedy}`);
}

/**
 * Refuses what is not an object of options, and options that do not exist.
 * @internal
 */
export function checkOptions(options: object, names: readonly string[], callee: string): void {
  if (typeof options !== 'object' || options === null) throw wrongType(`the options of ${callee} must be an object, not ${show(options)}`);
  for (const name of Object.keys(options)) {
    if (names.includes(name)) continue;
    const near = nearest(name, names);
    const there = names.length === 0 ? 'it takes none, so leave it out' : `its options are ${names.join(', ')}`;
    const remedy = near === undefined ? there : `did you mean '${near}'?`;
    throw wrongType(`${callee} has no option '${name}'; ${remedy}`);
  }
}

/**
 * A value in a message.
 * @internal
 */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (typeof value === 'bigint') return `${value}n`;
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Promise) return 'a promise; write `await` before the call that gives it';
  if (typeof value === 'function') return `the function ${value.name}`;
  if (typeof value === 'object' && value !== null) return `an object of type ${value.constructor?.name ?? 'Object'}`;
  return String(value);
}
