/**
 * Masks as run lengths: forbidden first, then alternating, 1 = allowed. Beyond the last run everything is forbidden; no
 * run at all restricts nothing. The shortest form has no run of 0 but the first, no run at the end that forbids, and is
 * never empty where something is forbidden.
 *
 * A mask longer than its row, and one of more runs than its row has elements, are the error `invalid-argument`.
 */

import * as host from 'pie:host';
import { isIterable, show, toBytes, toCount, toIndices, toMasks, toRuns, type Brle } from './arguments.js';
import { wrongType } from './errors.js';

/** The shortest form of the mask of truth values, one an element; what is true is allowed. */
export function fromBools(allowed: Iterable<unknown>): Uint32Array {
  if (!isIterable(allowed) || typeof allowed === 'string' || allowed instanceof Map) {
    throw wrongType(`allowed must be a list of truth values, not ${show(allowed)}`);
  }
  const values = Array.from(allowed);
  const elements = values.flatMap((value, index) => (value ? [index] : []));
  return host.allowing(Uint32Array.from(elements), values.length);
}

/** A truth value for each element of the row: whether the mask allows it. */
export function toBools(mask: Brle, length: number): boolean[] {
  const bits = pack(mask, length);
  return Array.from({ length }, (_, index) => ((bits[index >> 3]! >> (index & 7)) & 1) === 1);
}

/** The shortest form of a mask over a row of `length` elements. */
export function shortest(mask: Brle, length: number): Uint32Array {
  const nElements = toCount(length, 'length');
  return host.shortest(toRuns(mask, 'mask', nElements), nElements);
}

/** The shortest form of what all masks allow. */
export function intersection(masks: Iterable<Brle>, length: number): Uint32Array {
  const nElements = toCount(length, 'length');
  return host.intersection(toMasks(masks, 'masks', nElements), nElements);
}

/** The shortest form of the mask that allows these elements, in any order. */
export function allowing(elements: Iterable<number>, length: number): Uint32Array {
  return host.allowing(toIndices(elements, 'elements'), toCount(length, 'length'));
}

/** The elements that a mask allows, ascending. */
export function allowed(mask: Brle, length: number): Uint32Array {
  const nElements = toCount(length, 'length');
  return host.allowed(toRuns(mask, 'mask', nElements), nElements);
}

/** A bit an element, the lowest bit of each byte first; bits beyond the row are 0. */
export function pack(mask: Brle, length: number): Uint8Array {
  const nElements = toCount(length, 'length');
  return host.pack(toRuns(mask, 'mask', nElements), nElements);
}

/** The shortest form of the mask of these bits. */
export function unpack(bits: Uint8Array, length: number): Uint32Array {
  return host.unpack(toBytes(bits, 'bits'), toCount(length, 'length'));
}

/**
 * For each of `n` tokens from slot `start` on, the attention mask that shows its own slot, the `size - 1` slots before
 * it, and the first `sinks` slots of the context. A window has a size of at least 1.
 */
export function window(start: number, n: number, size: number, sinks = 0): Uint32Array[] {
  return host.window(toCount(start, 'start'), toCount(n, 'n'), toCount(size, 'size'), toCount(sinks, 'sinks'));
}

/** For each of `n` tokens from slot `start` on, the attention mask that shows all slots up to its own. */
export function causal(start: number, n: number): Uint32Array[] {
  return host.causal(toCount(start, 'start'), toCount(n, 'n'));
}
