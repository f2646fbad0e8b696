/**
 * The globals of a program beside those of the language itself.
 * This runs when the component is built, so that nothing here calls the engine before a program does.
 * Absent: `Intl`, `Worker`, `process` and the modules of Node but `node:fs/promises`.
 */

import * as host from 'pie:host';
import { Blob, File, FormData, Headers, ReadableStream, Request, Response, fetch } from 'pie:inferlet/fetch.js';
import { URL, URLSearchParams } from 'pie:inferlet/url.js';
import { AbortController, AbortSignal } from './abort.js';
import { atob, btoa } from './base64.js';
import { structuredClone } from './clone.js';
import { console } from './console.js';
import { crypto } from './crypto.js';
import { DOMException } from './dom-exception.js';
import { CustomEvent, Event, EventTarget } from './events.js';
import { TextDecoder, TextEncoder } from './text.js';

function define(target: object, name: string | symbol, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: true, configurable: true });
}

/** A timer that calls once, and has not yet. */
export interface WaitingTimer {
  readonly callback: (...values: unknown[]) => void;
  /** Where it was started. */
  readonly started: Error;
}

/** The timers that call once, and have not yet, by their numbers. */
export const waitingTimers = new Map<number, WaitingTimer>();

function startTimer(given: unknown, delay: unknown, repeat: boolean, values: unknown[]): number {
  if (typeof given !== 'function') throw new TypeError(`a timer calls a function, not ${String(given)}`);
  const callback = given as (...values: unknown[]) => void;
  const call = values.length === 0 ? () => callback() : () => callback(...values);
  const delayMs = Number(delay ?? 0) || 0;
  if (repeat) return host.startTimer(call, delayMs, true);
  const callOnce = (): void => {
    waitingTimers.delete(id);
    call();
  };
  const id = host.startTimer(callOnce, delayMs, false);
  waitingTimers.set(id, { callback, started: new Error() });
  return id;
}

function stopTimer(id: unknown): void {
  if (typeof id !== 'number' || !Number.isInteger(id) || id <= 0) return;
  waitingTimers.delete(id);
  host.stopTimer(id);
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
  AbortController,
  AbortSignal,
  Blob,
  CustomEvent,
  DOMException,
  Event,
  EventTarget,
  File,
  FormData,
  Headers,
  ReadableStream,
  Request,
  Response,
  TextDecoder,
  TextEncoder,
  URL,
  URLSearchParams,
  atob,
  btoa,
  fetch,
  structuredClone,
};

for (const [name, value] of Object.entries(globals)) define(globalThis, name, value);
// `[object Promise]` in a text is never meant.
define(Promise.prototype, Symbol.toPrimitive, () => {
  const message = 'a promise was put into a text, a sum or a comparison; write `await` before the call that gives it';
  throw Object.assign(new TypeError(message), { code: 'invalid-argument' });
});
define(Math, 'random', () => host.randomUnit());
