/** The events of one process on their way to whoever reads them: a queue that the window of the process bounds. */

import { PieError, again } from './errors.js';
import { type LastEvent, type ProcessEvent, eventBytes, isLast } from './events.js';
import { Change } from './waiting.js';

// A server that does not keep to the window is cut off after this many times as much.
const WINDOWS_TOLERATED = 4;
// The most that `limits.queue_events` of a server may be, and as many again: events without a text count nothing in a
// window.
const MAX_WAITING = 1 << 21;

/** Told of what was taken: of which process, up to which event, and whether that cannot wait. */
export type Acknowledge = (pid: number, seq: number, now: boolean) => void;

/** Events that arrived and were not taken. The connection fills it and never waits; acks let the server send more. */
export class Stream {
  readonly pid: number;
  /** The last event, once it was taken. */
  last: LastEvent | null = null;
  /** Loops over the events that have begun and not ended. */
  nLoops = 0;
  /** Whether the last event has arrived. */
  isOver = false;
  readonly changed = new Change();
  readonly #windowBytes: number;
  readonly #acknowledge: Acknowledge;
  #seq: number;
  #takenBytes = 0;
  #waiting: ProcessEvent[] = [];
  /** How many of `#waiting` were taken: they are removed many at a time. */
  #nTaken = 0;
  #waitingBytes = 0;
  #end: PieError | null = null;

  constructor(pid: number, windowBytes: number, afterSeq: number, acknowledge: Acknowledge) {
    this.pid = pid;
    this.#windowBytes = windowBytes;
    this.#seq = afterSeq;
    this.#acknowledge = acknowledge;
  }

  /** Takes an event that arrived. PieError `protocol-error` from a server that sends far more than was acknowledged. */
  push(event: ProcessEvent): void {
    if (this.#end !== null || event.seq <= this.#seq) return;
    this.#seq = event.seq;
    const nWaiting = this.#waiting.length - this.#nTaken;
    if (this.#waitingBytes > WINDOWS_TOLERATED * this.#windowBytes || nWaiting >= MAX_WAITING) {
      const said = `${nWaiting} events of process ${this.pid} with ${this.#waitingBytes} bytes before they were read`;
      throw new PieError('protocol-error', `the server sent ${said}, beyond its window of ${this.#windowBytes} bytes`);
    }
    this.#waiting.push(event);
    this.isOver = isLast(event);
    this.#waitingBytes += eventBytes(event);
    this.changed.wake();
  }

  /** Whether loops read what has arrived, and will arrive. */
  get isLeftToLoops(): boolean {
    const isOver = this.#end !== null && this.#nTaken === this.#waiting.length;
    return this.nLoops > 0 && !isOver;
  }

  /** Ends the stream: a reader gets what has arrived, then the error. */
  fail(error: PieError): void {
    if (this.#end !== null) return;
    this.#end = error;
    this.changed.wake();
  }

  /** Ends the stream at once: what has arrived and was not read stays with the server. */
  abandon(error: PieError): void {
    this.#waiting = [];
    this.#nTaken = 0;
    this.#waitingBytes = 0;
    this.fail(error);
  }

  /** The next event; null after the last. The errors are those of `takeNow`. */
  async take(): Promise<ProcessEvent | null> {
    for (;;) {
      const event = this.takeNow();
      if (event !== null || this.last !== null) return event;
      await this.changed.wait();
    }
  }

  /**
   * The next event, if one has arrived. PieError `connection-failed` when the connection broke, `session-closed` after
   * `detach`.
   */
  takeNow(): ProcessEvent | null {
    const event = this.#waiting[this.#nTaken];
    if (event === undefined) {
      if (this.#end !== null && this.last === null) throw again(this.#end);
      return null;
    }
    this.#nTaken += 1;
    if (this.#nTaken * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#nTaken);
      this.#nTaken = 0;
    }
    this.#waitingBytes -= eventBytes(event);
    this.#takenBytes += eventBytes(event);
    if (isLast(event)) {
      this.last = event;
      this.changed.wake();
    }
    const isUrgent = this.last !== null || this.#takenBytes >= Math.floor(this.#windowBytes / 4);
    if (isUrgent) this.#takenBytes = 0;
    this.#acknowledge(this.pid, event.seq, isUrgent);
    return event;
  }
}
