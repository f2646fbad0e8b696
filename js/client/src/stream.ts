/** The events of one process on their way to whoever reads them: a queue that the window of the process bounds. */

import { PieError, again } from './errors.js';
import { type LastEvent, type ProcessEvent, eventBytes, isLast } from './events.js';
import { Change } from './waiting.js';

// A server that does not keep to the window is cut off after this many times as much.
const WINDOWS_TOLERATED = 4;
// What waits for an iterator that nobody reads, while somebody waits for the result.
const WINDOWS_KEPT = 16;
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
  /** The last event, once it has arrived, whether it was taken or not. */
  arrived: LastEvent | null = null;
  /** Iterators over the events that have begun and not ended. */
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
  /** Up to which event the server was told to go on though nobody had taken it, and the bytes of those that wait. */
  #keptSeq = 0;
  #keptBytes = 0;
  #end: PieError | null = null;
  /** How many iterators there were, and the numbers of the one that waits and of the one that has read last. */
  #nIterators = 0;
  #reader: number | null = null;
  #lastReader = 0;

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
    if (this.#waitingBytes - this.#keptBytes > WINDOWS_TOLERATED * this.#windowBytes || nWaiting >= MAX_WAITING) {
      const said = `${nWaiting} events of process ${this.pid} with ${this.#waitingBytes} bytes before they were read`;
      throw new PieError('protocol-error', `the server sent ${said}, beyond its window of ${this.#windowBytes} bytes`);
    }
    this.#waiting.push(event);
    if (isLast(event)) {
      this.arrived = event;
      this.isOver = true;
    }
    this.#waitingBytes += eventBytes(event);
    this.changed.wake();
  }

  /** The number of a further iterator. PieError `future-taken` while another one waits. */
  newReader(): number {
    if (this.#reader !== null) throw this.#readAlready();
    this.#nIterators += 1;
    return this.#nIterators;
  }

  /**
   * Has an iterator wait. PieError `future-taken` while an older one does, and where an older one has read since this
   * one did; a younger one that waits gets that error.
   */
  enter(reader: number, isNew: boolean): void {
    const isWaiting = this.#reader !== null && this.#reader < reader;
    if (isWaiting || (!isNew && this.#lastReader < reader)) throw this.#readAlready();
    this.#lastReader = reader;
    if (this.#reader === reader) return;
    this.#reader = reader;
    this.changed.wake();
  }

  /** An iterator waits no more. */
  leave(reader: number): void {
    if (this.#reader !== reader) return;
    this.#reader = null;
    this.changed.wake();
  }

  /**
   * Has the server send on where iterators are held and nobody waits in them, up to some windows: what they have not
   * taken waits here. PieError where the stream has ended.
   */
  sendOn(): void {
    if (this.#end !== null) throw again(this.#end);
    const nBytes = this.#waitingBytes - this.#keptBytes;
    const newest = this.#waiting.at(-1);
    if (this.#reader !== null || newest === undefined || nBytes < Math.floor(this.#windowBytes / 4)) return;
    if (this.#waitingBytes > WINDOWS_KEPT * this.#windowBytes) return;
    this.#keptSeq = newest.seq;
    this.#keptBytes = this.#waitingBytes;
    this.#takenBytes = 0;
    this.#acknowledge(this.pid, newest.seq, true);
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
    this.#keptBytes = 0;
    this.arrived = this.last;
    this.fail(error);
  }

  /**
   * The next event, for an iterator that has entered; null after the last. The errors are those of `takeNow`, and
   * PieError `future-taken` where an older iterator has entered meanwhile.
   */
  async take(reader: number): Promise<ProcessEvent | null> {
    for (;;) {
      if (this.#reader !== reader) throw this.#readAlready();
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
    if (isLast(event)) {
      this.last = event;
      this.changed.wake();
    }
    if (event.seq <= this.#keptSeq) {
      this.#keptBytes -= eventBytes(event);
      return event;
    }
    this.#takenBytes += eventBytes(event);
    const isUrgent = this.last !== null || this.#takenBytes >= Math.floor(this.#windowBytes / 4);
    if (isUrgent) this.#takenBytes = 0;
    this.#acknowledge(this.pid, event.seq, isUrgent);
    return event;
  }

  #readAlready(): PieError {
    const words = 'are read already, by another loop, which gets all of them; read them in one place';
    return new PieError('future-taken', `the events of process ${this.pid} ${words}`);
  }
}
