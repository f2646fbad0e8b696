/** Promises of the engine. All waiting of the SDK is here. */
/**
 * A promise for an answer of the engine. Unlike another promise it can be given up: when it has lost a `Promise.race` or
 * `Promise.any` and the program has let go of it, the engine stops the work, so that a lost `session.receive()` takes no message and a
 * lost step is undone.
 *
 * It is a shell around the promise that is really settled. The engine holds only that one, and so can tell when nobody holds this.
 * @internal
 */
export class Pending extends Promise {
    #answer;
    #wait;
    /**
     * @param begin starts what is waited for.
     * @param convert makes the promise's value of the answer.
     */
    constructor(begin, convert) {
        super(() => { });
        const { promise, resolve, reject } = Promise.withResolvers();
        // An answer comes out of the event loop, where no frame of the program is left; this is where it was asked for.
        const asked = new Error();
        this.#answer = promise;
        this.#wait = begin((error, answer) => {
            if (error === undefined) {
                resolve(convert(answer));
            }
            else {
                if (asked.stack !== undefined)
                    error.stack = asked.stack;
                reject(error);
            }
        });
    }
    /** Promises that derive from this one are ordinary ones. */
    static get [Symbol.species]() {
        return Promise;
    }
    then(onFulfilled, onRejected) {
        this.#wait.subscribe();
        return this.#answer.then(onFulfilled, onRejected);
    }
    /**
     * An ordinary promise for the same answer, and what ends the interest in it.
     * @internal
     */
    lease() {
        const wait = this.#wait;
        return [this.then(), () => wait.unsubscribe()];
    }
}
/** Makes a combinator that settles early give up those promises of the engine that came too late. */
function endsLosers(combine) {
    return function (promises) {
        const ends = [];
        const plain = Array.from(promises, (promise) => {
            if (!(promise instanceof Pending))
                return promise;
            const [answer, end] = promise.lease();
            ends.push(end);
            return answer;
        });
        const result = combine.call(this, plain);
        if (ends.length === 0)
            return result;
        const endAll = () => {
            for (const end of ends)
                end();
        };
        return result.finally(endAll);
    };
}
for (const name of ['race', 'any']) {
    Object.defineProperty(Promise, name, {
        value: Object.defineProperty(endsLosers(Promise[name]), 'name', { value: name }),
        writable: true,
        configurable: true,
    });
}
