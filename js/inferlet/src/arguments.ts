/**
 * What programs pass in, checked once and brought into the form that the engine takes. Mistakes of type are TypeErrors,
 * values out of range are InferletErrors; both have codes.
 */

import { InferletError, wrongType } from './errors.js';

const MAX_U32 = 0xffff_ffff;
const MAX_U64 = 0xffff_ffff_ffff_ffffn;

/** Token ids, in any form in which a program may hold them. */
export type Tokens = Iterable<number>;

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

/** @internal */
export function toTokens(value: Tokens, name: string): Uint32Array {
  if (value instanceof Uint32Array) return value;
  if (typeof value !== 'object' || value === null || !(Symbol.iterator in value)) {
    throw wrongType(`${name} must be token ids (a Uint32Array or another iterable of numbers), not ${show(value)}`);
  }
  const tokens = Array.from(value);
  for (const [index, token] of tokens.entries()) {
    if (typeof token !== 'number') throw wrongType(`${name}[${index}] must be a token id, not ${show(token)}`);
    if (!Number.isInteger(token) || token < 0 || token > MAX_U32) {
      throw new InferletError('invalid-token', `${name}[${index}] is ${token}, which is no token id; pass whole numbers from 0`, { token: show(token) });
    }
  }
  return Uint32Array.from(tokens);
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
 * Refuses what is no options object, and options that do not exist.
 * @internal
 */
export function checkOptions(options: object, names: readonly string[], callee: string): void {
  if (typeof options !== 'object' || options === null) throw wrongType(`the options of ${callee} must be an object, not ${show(options)}`);
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) throw wrongType(`${callee} has no option '${name}'; its options are ${names.join(', ')}`);
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
  if (typeof value === 'function') return `the function ${value.name}`;
  if (typeof value === 'object' && value !== null) return `an object of type ${value.constructor?.name ?? 'Object'}`;
  return String(value);
}
