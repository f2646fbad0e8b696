/** How calls wait for each other: for a change, and for a place among few. */

/** Has everybody who waits look again. */
export class Change {
  #waiting: (() => void)[] = [];

  /** Waits for the next `wake`. */
  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  wake(): void {
    const woken = this.#waiting;
    this.#waiting = [];
    for (const resolve of woken) resolve();
  }
}

/** A number of places, which are given in the order in which they were asked for. */
export class Places {
  #free: number;
  #waiting: (() => void)[] = [];
  #isOpen = false;

  constructor(free: number) {
    this.#free = free;
  }

  /** Waits for a place. Where the signal aborts before, its reason is thrown, and none is taken. */
  async acquire(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#isOpen) return;
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const given = (): void => {
        signal?.removeEventListener('abort', aborted);
        resolve();
      };
      const aborted = (): void => {
        this.#waiting = this.#waiting.filter((one) => one !== given);
        reject(reasonOf(signal));
      };
      this.#waiting.push(given);
      signal?.addEventListener('abort', aborted, { once: true });
    });
  }

  /** Gives a place back, to whoever has waited the longest. */
  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }

  /** Lets everybody in, from now on: what the places were for has ended. */
  open(): void {
    this.#isOpen = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const given of waiting) given();
  }
}

/** Why a signal was aborted, as an error. */
export function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error(String(reason));
}
