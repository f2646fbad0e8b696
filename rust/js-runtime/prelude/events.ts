/**
 * `Event`, `CustomEvent` and `EventTarget`. There is no tree of targets: an event reaches the one that it is sent to.
 */

/** What listens. */
export type Listener = ((event: Event) => void) | { handleEvent(event: Event): void };

/** How somebody listens. */
export interface ListenerOptions {
  readonly once?: boolean;
  readonly capture?: boolean;
  readonly passive?: boolean;
  /** Stops listening when it is aborted. */
  readonly signal?: { readonly aborted: boolean; addEventListener(type: 'abort', listener: () => void, options: { once: boolean }): void };
}

/** How an event is made. */
export interface EventOptions {
  readonly bubbles?: boolean;
  readonly cancelable?: boolean;
  readonly composed?: boolean;
}

let begin: (event: Event, target: EventTarget) => void;
let end: (event: Event) => void;
let isStopped: (event: Event) => boolean;
let listen: (event: Event, isPassive: boolean, work: () => void) => void;

/** Something that happened. */
export class Event {
  static readonly NONE = 0;
  static readonly CAPTURING_PHASE = 1;
  static readonly AT_TARGET = 2;
  static readonly BUBBLING_PHASE = 3;

  readonly type: string;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  /** Milliseconds since the program began. */
  readonly timeStamp: number = performance.now();
  #target: EventTarget | null = null;
  #isSent = false;
  #isStopped = false;
  #isPrevented = false;
  #isPassive = false;

  static {
    begin = (event, target) => {
      if (event.#isSent) throw new TypeError('the event is being sent already; make another one');
      event.#target = target;
      event.#isSent = true;
    };
    end = (event) => {
      event.#isSent = false;
      event.#isStopped = false;
    };
    isStopped = (event) => event.#isStopped;
    listen = (event, isPassive, work) => {
      event.#isPassive = isPassive;
      try {
        work();
      } catch (error) {
        // Others hear of the event all the same. Nobody handles this rejection, so that the program ends with it.
        void Promise.reject(error);
      } finally {
        event.#isPassive = false;
      }
    };
  }

  constructor(type: string, { bubbles = false, cancelable = false, composed = false }: EventOptions = {}) {
    this.type = String(type);
    this.bubbles = Boolean(bubbles);
    this.cancelable = Boolean(cancelable);
    this.composed = Boolean(composed);
  }

  get target(): EventTarget | null {
    return this.#target;
  }

  get currentTarget(): EventTarget | null {
    return this.#isSent ? this.#target : null;
  }

  get eventPhase(): number {
    return this.#isSent ? Event.AT_TARGET : Event.NONE;
  }

  get defaultPrevented(): boolean {
    return this.#isPrevented;
  }

  get isTrusted(): boolean {
    return false;
  }

  composedPath(): EventTarget[] {
    return this.#isSent && this.#target !== null ? [this.#target] : [];
  }

  /** Has `dispatchEvent` answer false, where the event is cancelable. */
  preventDefault(): void {
    if (this.cancelable && !this.#isPassive) this.#isPrevented = true;
  }

  /** There is no other target that it would reach. */
  stopPropagation(): void {}

  /** No other listener hears of it. */
  stopImmediatePropagation(): void {
    this.#isStopped = true;
  }
}

/** An event with a value of the program's. */
export class CustomEvent<T = unknown> extends Event {
  readonly detail: T | null;

  constructor(type: string, options: EventOptions & { readonly detail?: T } = {}) {
    super(type, options);
    this.detail = options.detail ?? null;
  }
}

interface Registration {
  readonly listener: Listener;
  readonly capture: boolean;
  readonly once: boolean;
  readonly passive: boolean;
  isRemoved: boolean;
}

/** Something that can be listened to. */
export class EventTarget {
  readonly #listeners = new Map<string, Registration[]>();

  addEventListener(type: string, listener: Listener | null, options: boolean | ListenerOptions = {}): void {
    if (listener === null || listener === undefined) return;
    if (typeof listener !== 'function' && typeof listener !== 'object') {
      throw new TypeError(`a listener is a function, or an object with handleEvent, not ${typeof listener}`);
    }
    const given: ListenerOptions = typeof options === 'object' ? options : { capture: options };
    const { capture = false, once = false, passive = false, signal } = given;
    if (signal?.aborted === true) return;
    const registered = this.#listeners.get(String(type)) ?? [];
    if (registered.some((other) => other.listener === listener && other.capture === capture)) return;
    this.#listeners.set(String(type), [...registered, { listener, capture, once, passive, isRemoved: false }]);
    signal?.addEventListener('abort', () => this.removeEventListener(type, listener, { capture }), { once: true });
  }

  removeEventListener(type: string, listener: Listener | null, options: boolean | { readonly capture?: boolean } = {}): void {
    const capture = typeof options === 'object' ? (options.capture ?? false) : options;
    const registered = this.#listeners.get(String(type)) ?? [];
    const removed = registered.find((other) => other.listener === listener && other.capture === capture);
    if (removed === undefined) return;
    removed.isRemoved = true;
    const left = registered.filter((other) => other !== removed);
    if (left.length > 0) this.#listeners.set(String(type), left);
    else this.#listeners.delete(String(type));
  }

  /** Calls the listeners in the order in which they came; false where one has prevented what would follow. */
  dispatchEvent(event: Event): boolean {
    begin(event, this);
    // Who is added meanwhile hears of the next event, who is removed of no more.
    for (const registration of this.#listeners.get(event.type) ?? []) {
      if (registration.isRemoved) continue;
      const { listener, capture, once, passive } = registration;
      if (once) this.removeEventListener(event.type, listener, { capture });
      listen(event, passive, () => (typeof listener === 'function' ? listener.call(this, event) : listener.handleEvent(event)));
      if (isStopped(event)) break;
    }
    end(event);
    return !event.defaultPrevented;
  }
}
