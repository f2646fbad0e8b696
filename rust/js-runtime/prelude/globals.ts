/**
 * The globals of a program beside those of the language itself. What few programs use is loaded at its first use.
 * This runs when the component is built, so that nothing here calls the engine before a program does.
 * Absent: `Intl`, `Worker`, `process` and the modules of Node but `node:fs/promises`.
 */

import * as host from 'pie:host';
import { console } from './console.js';
import { crypto } from './crypto.js';
import { TextDecoder, TextEncoder } from './text.js';

function define(target: object, name: string | symbol, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: true, configurable: true });
}

/** Globals whose module runs when one of them is first read. It is loaded once: the classes of it belong together. */
function defineLazily(module: string, names: readonly string[]): void {
  const load = (): Record<string, unknown> => {
    const found = host.importNow(module) as Record<string, unknown>;
    // What the program has put in the place of one stays.
    for (const name of names) if (waiting.has(name)) define(globalThis, name, found[name]);
    for (const name of names) waiting.delete(name);
    return found;
  };
  const waiting = new Set(names);
  for (const name of names) {
    Object.defineProperty(globalThis, name, {
      get: () => load()[name],
      set(value: unknown) {
        waiting.delete(name);
        define(globalThis, name, value);
      },
      configurable: true,
    });
  }
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
  console,
  crypto,
  performance: {
    now: () => host.elapsedMs(),
    get timeOrigin(): number {
      const value = Date.now() - host.elapsedMs();
      define(this, 'timeOrigin', value);
      return value;
    },
  },
  TextEncoder,
  TextDecoder,
};

for (const [name, value] of Object.entries(globals)) define(globalThis, name, value);
// `[object Promise]` in a text is never meant.
define(Promise.prototype, Symbol.toPrimitive, () => {
  const message = 'a promise was put into a text, a sum or a comparison; write `await` before the call that gives it';
  throw Object.assign(new TypeError(message), { code: 'invalid-argument' });
});
define(Math, 'random', () => host.randomUnit());
defineLazily('pie:runtime/web.js', [
  'AbortController',
  'AbortSignal',
  'CustomEvent',
  'DOMException',
  'Event',
  'EventTarget',
  'atob',
  'btoa',
  'structuredClone',
]);
defineLazily('pie:runtime/addresses.js', ['URL', 'URLSearchParams']);
defineLazily('pie:inferlet/fetch.js', ['Blob', 'File', 'FormData', 'Headers', 'ReadableStream', 'Request', 'Response', 'fetch']);
