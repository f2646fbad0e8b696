/** Frames on their way to the socket, which buffers without a bound: whoever sends waits until it has sent enough. */

import type { WebSocketLike } from './opening.js';

const BUFFER_BYTES = 1 << 20;
// A socket does not tell when its buffer has room.
const POLL_MS = 5;

/** Sends frames in the order in which they were given. */
export class Outgoing {
  hasEnded = false;
  readonly #socket: WebSocketLike;
  readonly #waiting: { frame: string | Uint8Array; sent: () => void }[] = [];
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(socket: WebSocketLike) {
    this.#socket = socket;
  }

  /** Hands a frame to the socket, once its buffer has room. After the end nothing is sent, and nobody waits. */
  send(frame: string | Uint8Array): Promise<void> {
    if (this.hasEnded) return Promise.resolve();
    if (this.#waiting.length === 0 && this.#hasRoom()) {
      this.#socket.send(frame);
      return Promise.resolve();
    }
    return new Promise((sent) => {
      this.#waiting.push({ frame, sent });
      this.#timer ??= setTimeout(() => this.#drain(), POLL_MS);
    });
  }

  /** Lets go of everybody who waits. */
  end(): void {
    this.hasEnded = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const { sent } of this.#waiting.splice(0)) sent();
  }

  #hasRoom(): boolean {
    return this.#socket.bufferedAmount < BUFFER_BYTES;
  }

  #drain(): void {
    this.#timer = null;
    while (this.#waiting.length > 0 && this.#hasRoom()) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#socket.send(next.frame);
      next.sent();
    }
    if (this.#waiting.length > 0) this.#timer = setTimeout(() => this.#drain(), POLL_MS);
  }
}
