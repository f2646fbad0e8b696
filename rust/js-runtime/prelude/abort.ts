/** `AbortController` and `AbortSignal`, with as much of `EventTarget` as they need. */

type Listener = ((event: Event) => void) | { handleEvent(event: Event): void };

/** Something that happened. */
export class Event {
  readonly type: string;
  target: EventTarget | null = null;

  constructor(type: string) {
    this.type = String(type);
  }
}

/** Something that can be listened to. */
export class EventTarget {
  readonly #listeners = new Map<string, Map<Listener, boolean>>();

  addEventListener(type: string, listener: Listener | null, options: boolean | { once?: boolean } = {}): void {
    if (listener === null || listener === undefined) return;
    const listeners = this.#listeners.get(type) ?? new Map<Listener, boolean>();
    this.#listeners.set(type, listeners);
    if (!listeners.has(listener)) listeners.set(listener, typeof options === 'object' && options.once === true);
  }

  removeEventListener(type: string, listener: Listener | null): void {
    if (listener !== null) this.#listeners.get(type)?.delete(listener);
  }

  dispatchEvent(event: Event): boolean {
    event.target = this;
    for (const [listener, once] of [...(this.#listeners.get(event.type) ?? [])]) {
      if (once) this.removeEventListener(event.type, listener);
      if (typeof listener === 'function') listener.call(this, event);
      else listener.handleEvent(event);
    }
    return true;
  }
}

function named(name: string, message: string): Error {
  const error = new Error(message);
  error.name = name;
  return error;
}

let abortSignal: (signal: AbortSignal, reason: unknown) => void;

/** Tells whether work should stop. */
export class AbortSignal extends EventTarget {
  #aborted = false;
  #reason: unknown = undefined;
  onabort: ((event: Event) => void) | null = null;

  static {
    abortSignal = (signal, reason) => {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason ?? named('AbortError', 'the operation was aborted');
      const event = new Event('abort');
      signal.onabort?.(event);
      signal.dispatchEvent(event);
    };
  }

  /** A signal that is aborted already. */
  static abort(reason?: unknown): AbortSignal {
    const signal = new AbortSignal();
    abortSignal(signal, reason);
    return signal;
  }

  /** A signal that is aborted after a time. */
  static timeout(delayMs: number): AbortSignal {
    const signal = new AbortSignal();
    setTimeout(() => abortSignal(signal, named('TimeoutError', `${delayMs} ms have passed`)), delayMs);
    return signal;
  }

  /** A signal that is aborted with the first of others. */
  static any(signals: Iterable<AbortSignal>): AbortSignal {
    const signal = new AbortSignal();
    for (const other of signals) {
      if (other.aborted) abortSignal(signal, other.reason);
      else other.addEventListener('abort', () => abortSignal(signal, other.reason), { once: true });
    }
    return signal;
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason;
  }
}

/** Says that work should stop. */
export class AbortController {
  readonly signal = new AbortSignal();

  abort(reason?: unknown): void {
    abortSignal(this.signal, reason);
  }
}
