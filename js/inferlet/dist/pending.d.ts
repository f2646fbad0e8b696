/** Promises of the engine. All waiting of the SDK is here. */
import type { Settle, Wait } from 'pie:host';
/**
 * A promise for an answer of the engine. Unlike another promise it can be given up: when it has lost a `Promise.race` or
 * `Promise.any` and the program has let go of it, the engine stops the work, so that a lost `session.receive()` takes no message and a
 * lost step is undone.
 *
 * It is a shell around the promise that is really settled. The engine holds only that one, and so can tell when nobody holds this.
 */
export declare class Pending<T, A = T> extends Promise<T> {
    #private;
    /**
     * @param begin starts what is waited for.
     * @param convert makes the promise's value of the answer.
     */
    constructor(begin: (settle: Settle<A>) => Wait, convert: (answer: A) => T);
    /** Promises that derive from this one are ordinary ones. */
    static get [Symbol.species](): PromiseConstructor;
    then<R = T, E = never>(onFulfilled?: ((value: T) => R | PromiseLike<R>) | null, onRejected?: ((reason: unknown) => E | PromiseLike<E>) | null): Promise<R | E>;
}
