/** `AbortController` and `AbortSignal`. */

import { refuseInJson } from 'pie:inferlet/json.js';
import { DOMException } from './dom-exception.js';
import { Event, EventTarget } from './events.js';

let abortSignal: (signal: AbortSignal, reason: unknown) => void;

/** Tells whether work should stop. */
export class AbortSignal extends EventTarget {
  #aborted = false;
  #reason: unknown = undefined;
  #onabort: ((event: Event) => void) | null = null;

  static {
    abortSignal = (signal, reason) => {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason ?? new DOMException('the operation was aborted', 'AbortError');
      signal.dispatchEvent(new Event('abort'));
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
    if (!(Number(delayMs) >= 0)) throw new RangeError(`a time of ${String(delayMs)} ms is not possible; give 0 or more`);
    const signal = new AbortSignal();
    setTimeout(() => abortSignal(signal, new DOMException(`${delayMs} ms have passed`, 'TimeoutError')), delayMs);
    return signal;
  }

  /** A signal that is aborted with the first of others. */
  static any(signals: Iterable<AbortSignal>): AbortSignal {
    const signal = new AbortSignal();
    const others = [...signals];
    const first = others.find((other) => other.aborted);
    if (first !== undefined) {
      abortSignal(signal, first.reason);
      return signal;
    }
    // Long-lived signals keep no listener of one that is over.
    const over = new AbortController();
    for (const other of others) {
      const listener = (): void => {
        over.abort();
        abortSignal(signal, other.reason);
      };
      other.addEventListener('abort', listener, { once: true, signal: over.signal });
    }
    return signal;
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  get onabort(): ((event: Event) => void) | null {
    return this.#onabort;
  }

  /** What is called as a listener is; it takes the place of the one before. */
  set onabort(listener: ((event: Event) => void) | null) {
    this.removeEventListener('abort', this.#onabort);
    this.#onabort = typeof listener === 'function' ? listener : null;
    this.addEventListener('abort', this.#onabort);
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

for (const kind of [AbortSignal, AbortController]) refuseInJson(kind, 'send whether it is aborted: `signal.aborted`');
