/**
 * The globals of a program beside those of the language itself. Name them in `tsconfig.json`:
 * `"types": ["inferlet/globals"]`, with a `lib` of the language alone (`["ES2024", "ESNext.Disposable"]`), because the
 * types of browsers and of Node promise more.
 */

/** Calls back once, after `delay` milliseconds; answers the timer's number. */
declare function setTimeout<V extends unknown[]>(callback: (...values: V) => void, delay?: number, ...values: V): number;
/** Calls back again and again, every `delay` milliseconds; answers the timer's number. */
declare function setInterval<V extends unknown[]>(callback: (...values: V) => void, delay?: number, ...values: V): number;
declare function clearTimeout(id: number | undefined): void;
declare function clearInterval(id: number | undefined): void;
declare function queueMicrotask(callback: () => void): void;
/** A deep copy of data, cycles included. */
declare function structuredClone<T>(value: T): T;

/** `log`, `info` and `debug` write to stdout, `warn`, `error` and `trace` to stderr. */
declare const console: {
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  debug(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  trace(...values: unknown[]): void;
  assert(condition: unknown, ...values: unknown[]): void;
};

declare const performance: {
  /** Milliseconds since the program began. */
  now(): number;
  readonly timeOrigin: number;
};

/** Random numbers are a stream from the launch seed, so that a launch can be repeated. */
declare const crypto: {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): string;
};

declare class TextEncoder {
  readonly encoding: string;
  encode(text?: string): Uint8Array;
}

declare class TextDecoder {
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(input?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}

declare class Event {
  readonly type: string;
  readonly target: EventTarget | null;
  constructor(type: string);
}

declare class EventTarget {
  addEventListener(type: string, listener: ((event: Event) => void) | null, options?: { once?: boolean }): void;
  removeEventListener(type: string, listener: ((event: Event) => void) | null): void;
  dispatchEvent(event: Event): boolean;
}

declare class AbortSignal extends EventTarget {
  static abort(reason?: unknown): AbortSignal;
  static timeout(delayMs: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: unknown;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
