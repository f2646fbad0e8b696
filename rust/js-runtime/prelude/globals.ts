/**
 * The globals of a program beside those of the language itself. What few programs use is loaded at its first use.
 * This runs when the component is built, so that nothing here calls the engine before a program does.
 * Absent: `URL`, `Intl`, `Worker`, `process` and the modules of Node but `node:fs/promises`.
 */

import * as host from 'pie:host';
import { log } from './console.js';
import { TextDecoder, TextEncoder } from './text.js';

function define(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: true, configurable: true });
}

/** A global whose module runs when it is first read. */
function defineLazily(name: string, module: string): void {
  Object.defineProperty(globalThis, name, {
    get(): unknown {
      const value = (host.importNow(module) as Record<string, unknown>)[name];
      define(globalThis, name, value);
      return value;
    },
    set(value: unknown) {
      define(globalThis, name, value);
    },
    configurable: true,
  });
}

function startTimer(callback: unknown, delay: unknown, repeat: boolean, values: unknown[]): number {
  if (typeof callback !== 'function') throw new TypeError(`a timer calls a function, not ${String(callback)}`);
  const call = callback as (...values: unknown[]) => void;
  return host.startTimer(values.length === 0 ? () => call() : () => call(...values), Number(delay ?? 0) || 0, repeat);
}

function stopTimer(id: unknown): void {
  if (typeof id === 'number' && Number.isInteger(id) && id > 0) host.stopTimer(id);
}

const globals: Record<string, unknown> = {
  setTimeout: (callback: unknown, delay?: unknown, ...values: unknown[]) => startTimer(callback, delay, false, values),
  setInterval: (callback: unknown, delay?: unknown, ...values: unknown[]) => startTimer(callback, delay, true, values),
  clearTimeout: stopTimer,
  clearInterval: stopTimer,
  // As a promise's job, so that what it throws is an unhandled rejection and no silence.
  queueMicrotask: (callback: () => void) => void Promise.resolve().then(() => callback()),
  console: {
    log: (...values: unknown[]) => log('stdout', values),
    info: (...values: unknown[]) => log('stdout', values),
    debug: (...values: unknown[]) => log('stdout', values),
    warn: (...values: unknown[]) => log('stderr', values),
    error: (...values: unknown[]) => log('stderr', values),
    trace: (...values: unknown[]) => log('stderr', values),
    assert: (condition: unknown, ...values: unknown[]) => {
      if (!condition) log('stderr', ['Assertion failed:', ...values]);
    },
  },
  performance: {
    now: () => host.elapsedMs(),
    get timeOrigin(): number {
      const value = Date.now() - host.elapsedMs();
      define(this, 'timeOrigin', value);
      return value;
    },
  },
  crypto: {
    getRandomValues<T extends ArrayBufferView>(array: T): T {
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(host.randomBytes(array.byteLength));
      return array;
    },
    randomUUID(): string {
      const bytes = host.randomBytes(16);
      // Version 4 of RFC 9562: these bits are fixed.
      bytes[6] = (bytes[6]! & 0x0f) | 0x40;
      bytes[8] = (bytes[8]! & 0x3f) | 0x80;
      const text = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
      return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join('-');
    },
  },
  TextEncoder,
  TextDecoder,
};

for (const [name, value] of Object.entries(globals)) define(globalThis, name, value);
define(Math, 'random', () => host.randomUnit());
defineLazily('structuredClone', 'pie:runtime/clone.js');
for (const name of ['Event', 'EventTarget', 'AbortController', 'AbortSignal']) defineLazily(name, 'pie:runtime/abort.js');
for (const name of ['fetch', 'Headers', 'Request', 'Response', 'ReadableStream']) defineLazily(name, 'pie:inferlet/fetch.js');
