/** A request without its answer. */

import { again, type PieError } from './errors.js';
import type { Fields, Frame } from './wire.js';

/** Reads an answer. It runs as the answer comes, so that what comes right behind finds what it set up. */
export type Accept<T> = (ok: Fields, frame: Frame) => T;

/** Takes back what was done for a caller that has given up. */
export type Undo<T> = (result: T) => void;

/** Where one stands: `open`, `settled` (its caller has the answer), or `given up` (its caller has gone). */
type State = 'open' | 'settled' | 'given up';

/** A request, whatever its answer is. */
export interface Pending {
  /** Whether nobody ever waited for the answer. */
  readonly isPost: boolean;
  /** Whether its caller waits no more. */
  readonly isSettled: boolean;
  /** Resolves when its caller waits no more. */
  readonly ended: Promise<void>;
  /** Whether an answer is taken back where its caller has gone. */
  readonly undoes: boolean;
  /** The answer has come. */
  settle(ok: Fields, frame: Frame): void;
  /** It was refused, or the connection has ended. */
  fail(error: PieError): void;
  /** Its caller gets the error, and what the answer says is taken back. */
  giveUp(error: Error): void;
}

/** A request that was sent, or is being sent. */
export class Request<T> implements Pending {
  readonly answer: Promise<T>;
  readonly ended: Promise<void>;
  readonly isPost: boolean;
  #state: State = 'open';
  readonly #accept: Accept<T>;
  readonly #undo: Undo<T> | undefined;
  #resolve: (result: T) => void = () => undefined;
  #reject: (error: Error) => void = () => undefined;

  constructor(accept: Accept<T>, undo: Undo<T> | undefined, isPost = false) {
    this.#accept = accept;
    this.#undo = undo;
    this.isPost = isPost;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Whoever asked may still be sending when the answer comes.
    const ignored = (): void => undefined;
    this.ended = this.answer.then(ignored, ignored);
  }

  /** One whose answer nobody reads. */
  static unread(): Request<unknown> {
    const request = new Request<unknown>(() => undefined, undefined, true);
    request.#state = 'given up';
    return request;
  }

  get isSettled(): boolean {
    return this.#state !== 'open';
  }

  get undoes(): boolean {
    return this.#undo !== undefined;
  }

  settle(ok: Fields, frame: Frame): void {
    const result = this.#accept(ok, frame);
    if (this.#state === 'given up') this.#undo?.(result);
    else this.#resolve(result);
    this.#state = this.#state === 'open' ? 'settled' : this.#state;
  }

  fail(error: PieError): void {
    this.#reject(again(error));
    this.#state = this.#state === 'open' ? 'settled' : this.#state;
  }

  giveUp(error: Error): void {
    if (this.#state !== 'open') return;
    this.#state = 'given up';
    this.#reject(error);
  }
}
