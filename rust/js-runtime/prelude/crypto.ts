/** `crypto`: random numbers, which are a stream from the launch seed, and digests. */

import * as host from 'pie:host';
import { DOMException } from './dom-exception.js';

const INTEGERS = [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array];

function getRandomValues<T extends ArrayBufferView>(array: T): T {
  if (!INTEGERS.some((kind) => array instanceof kind)) {
    throw new DOMException('random values go into an array of integers, as new Uint8Array(16)', 'TypeMismatchError');
  }
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(host.randomBytes(array.byteLength));
  return array;
}

function randomUUID(): string {
  const bytes = host.randomBytes(16);
  // Version 4 of RFC 9562: these bits are fixed.
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const text = hex(bytes);
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join('-');
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The digest of bytes by SHA-1, SHA-256, SHA-384 or SHA-512. */
async function digest(algorithm: string | { readonly name: string }, data: ArrayBuffer | ArrayBufferView): Promise<ArrayBuffer> {
  if (!(data instanceof ArrayBuffer) && !ArrayBuffer.isView(data)) throw new TypeError('a digest is of an ArrayBuffer or of an array of bytes');
  const name = String(typeof algorithm === 'object' ? algorithm.name : algorithm);
  const bytes = ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
  const made = host.digest(name.toWellFormed().toUpperCase(), bytes);
  if (made !== undefined) return made.buffer as ArrayBuffer;
  throw new DOMException(`the algorithm ${name.slice(0, 50)} is not supported; use SHA-1, SHA-256, SHA-384 or SHA-512`, 'NotSupportedError');
}

export const crypto = { getRandomValues, randomUUID, subtle: { digest } };
