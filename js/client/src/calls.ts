/**
 * The calls of a client that go on. When the client itself ends the connection, each of them fails, and nobody may wait
 * for it any more: such a failure is not reported as an unhandled rejection, which would hide the error for which the
 * caller closes the client. Any other failure that nobody handles is.
 */

const AsyncFunction = (async () => undefined).constructor as FunctionConstructor;

/** Calls that have not ended. */
export class Calls {
  readonly #open = new Set<Promise<unknown>>();

  /** Makes a call; it is known until it ends. */
  make<T>(work: () => Promise<T>): Promise<T> {
    const call: Promise<T> = made(work, () => this.#open.delete(call));
    this.#open.add(call);
    return call;
  }

  /** Lets those that go on fail without a word, where nobody waits for them. Whoever does is told as ever. */
  excuse(): void {
    for (const call of this.#open) call.catch(() => undefined);
  }
}

/** The end is told from within: whoever waited for the promise instead would have handled its failure. */
async function made<T>(work: () => Promise<T>, ended: () => void): Promise<T> {
  try {
    return await work();
  } finally {
    ended();
  }
}

/** Has the `async` methods of a class be calls that are known while they go on, but for one. */
export function countCalls<T extends object>(prototype: T, callsOf: (owner: T) => Calls, other: string | null = null): void {
  for (const name of Object.getOwnPropertyNames(prototype)) {
    const property = Object.getOwnPropertyDescriptor(prototype, name);
    const method: unknown = property?.value;
    if (!(method instanceof AsyncFunction) || name === other) continue;
    const counted = function (this: T, ...given: unknown[]): Promise<unknown> {
      return callsOf(this).make(() => Reflect.apply(method, this, given) as Promise<unknown>);
    };
    Object.defineProperty(prototype, name, { ...property, value: counted });
  }
}
