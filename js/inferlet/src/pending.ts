/** Promises of the engine. All waiting of the SDK is here. */

import type { Settle, Wait } from 'pie:host';
import { leadsThroughProgram } from './errors.js';

/** Interest in an answer: of the engine, or of a generator that the program takes part in. */
export type Interest = Pick<Wait, 'subscribe' | 'unsubscribe'>;

/** Every step of a generator makes a promise: what they have in common is made once. */
const NEVER_SETTLED = (): void => {};

/**
 * A promise for an answer of the engine. Unlike another promise it can be given up: when it has lost a `Promise.race`
 * or `Promise.any` and the program has let go of it, the engine stops the work, so that a lost `session.receive()`
 * takes no message and a lost step is undone.
 *
 * It is a shell around the promise that is really settled. The engine holds only that one, and so can tell when nobody
 * holds this.
 * @internal
 */
export class Pending<T, A = T> extends Promise<T> {
  readonly #answer: Promise<T>;
  readonly #wait: Interest;

  /**
   * @param begin starts what is waited for.
   * @param convert makes the promise's value of the answer.
   */
  constructor(begin: (settle: Settle<A>) => Interest, convert: (answer: A) => T | PromiseLike<T>) {
    super(NEVER_SETTLED);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    // An answer comes out of the event loop, where no frame of the program is left; this is where it was asked for.
    const asked = new Error();
    this.#answer = promise;
    this.#wait = begin((error, answer) => {
      if (error === undefined) {
        try {
          resolve(convert(answer));
        } catch (thrown) {
          // What a step accepted goes to parts of the program, which may throw.
          if (thrown instanceof Error && asked.stack !== undefined && !leadsThroughProgram(thrown)) thrown.stack = asked.stack;
          reject(thrown);
        }
      } else {
        if (asked.stack !== undefined) error.stack = asked.stack;
        reject(error);
      }
    });
  }

  /** Promises that derive from this one are ordinary ones. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  override then<R = T, E = never>(
    onFulfilled?: ((value: T) => R | PromiseLike<R>) | null,
    onRejected?: ((reason: unknown) => E | PromiseLike<E>) | null,
  ): Promise<R | E> {
    this.#wait.subscribe();
    return this.#answer.then(onFulfilled, onRejected);
  }

  /**
   * An ordinary promise for the same answer, and what ends the interest in it.
   * @internal
   */
  lease(): [Promise<T>, () => void] {
    const wait = this.#wait;
    return [this.then(), () => wait.unsubscribe()];
  }
}

/** Makes a combinator that settles early give up those promises of the engine that came too late. */
function endsLosers(combine: (promises: Iterable<unknown>) => Promise<unknown>): (promises: Iterable<unknown>) => Promise<unknown> {
  return function (this: PromiseConstructor, promises) {
    const ends: (() => void)[] = [];
    const plain = Array.from(promises, (promise) => {
      if (!(promise instanceof Pending)) return promise;
      const [answer, end] = promise.lease();
      ends.push(end);
      return answer;
    });
    const result = combine.call(this, plain);
    if (ends.length === 0) return result;
    const endAll = (): void => {
      for (const end of ends) end();
    };
    return result.finally(endAll);
  };
}

for (const name of ['race', 'any'] as const) {
  Object.defineProperty(Promise, name, {
    value: Object.defineProperty(endsLosers(Promise[name]), 'name', { value: name }),
    writable: true,
    configurable: true,
  });
}
