/** `structuredClone`. */

import { DOMException } from './dom-exception.js';

/**
 * A deep copy of data, cycles included. Functions, symbols, promises and weak collections cannot be copied; prototypes
 * are not kept. The buffers of `transfer` are taken away from what is copied.
 */
export function structuredClone<T>(value: T, { transfer = [] }: { readonly transfer?: Iterable<unknown> } = {}): T {
  const buffers = [...transfer].map((buffer) => {
    if (buffer instanceof ArrayBuffer && !buffer.detached) return buffer;
    throw refusal('what is not an ArrayBuffer, or was transferred already,');
  });
  if (new Set(buffers).size < buffers.length) throw refusal('a buffer that is transferred twice');
  const copied = copy(value, new Map()) as T;
  // There is nobody to hand them to: the copy stands, and what it was made of is given up.
  for (const buffer of buffers) buffer.transfer(0);
  return copied;
}

function copy(value: unknown, copies: Map<object, unknown>): unknown {
  if (typeof value === 'function' || typeof value === 'symbol') throw refusal(String(value));
  if (typeof value !== 'object' || value === null) return value;
  if (copies.has(value)) return copies.get(value);
  const keep = <C>(made: C): C => {
    copies.set(value, made);
    return made;
  };
  if (value instanceof Date) return keep(new Date(value));
  if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
  if (value instanceof Boolean || value instanceof Number || value instanceof String) return keep(Object(value.valueOf()));
  if (value instanceof ArrayBuffer) return keep(value.slice(0));
  if (ArrayBuffer.isView(value)) return keep(copyView(value, copies));
  if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) {
    throw refusal(`a ${value.constructor.name}`);
  }
  if (value instanceof Map) {
    const map = keep(new Map());
    for (const [key, item] of value) map.set(copy(key, copies), copy(item, copies));
    return map;
  }
  if (value instanceof Set) {
    const set = keep(new Set());
    for (const item of value) set.add(copy(item, copies));
    return set;
  }
  if (value instanceof Error) return copyError(value, keep, copies);
  const made = keep(Array.isArray(value) ? new Array(value.length) : {}) as Record<string, unknown>;
  for (const [key, item] of Object.entries(value)) {
    Object.defineProperty(made, key, { value: copy(item, copies), writable: true, enumerable: true, configurable: true });
  }
  return made;
}

function copyView(view: ArrayBufferView, copies: Map<object, unknown>): ArrayBufferView {
  const buffer = copy(view.buffer, copies) as ArrayBuffer;
  const kind = view.constructor as new (buffer: ArrayBuffer, offset: number, length: number) => ArrayBufferView;
  return new kind(buffer, view.byteOffset, view instanceof DataView ? view.byteLength : (view as Uint8Array).length);
}

const ERRORS: Record<string, ErrorConstructor> = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

function copyError(error: Error, keep: (made: Error) => Error, copies: Map<object, unknown>): Error {
  const made = keep(new (ERRORS[error.name] ?? Error)(error.message));
  if (error.stack !== undefined) made.stack = error.stack;
  if ('cause' in error) made.cause = copy(error.cause, copies);
  return made;
}

function refusal(what: string): DOMException {
  return new DOMException(`${what} could not be cloned`, 'DataCloneError');
}
