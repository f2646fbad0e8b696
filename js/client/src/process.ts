/** A process of a server, as the client that is attached to it sees it. */

import { type Calls, countCalls } from './calls.js';
import * as checks from './checks.js';
import { type Connection, nothing } from './connection.js';
import { PieError, described } from './errors.js';
import type { LastEvent, ProcessEvent } from './events.js';
import { type Names, known } from './options.js';
import type { Stream } from './stream.js';
import { reasonOf } from './waiting.js';

/** What every call may have. */
export interface CallOptions {
  /** Gives the call up: it throws the reason of the signal, and what it did at the server is taken back. */
  readonly signal?: AbortSignal;
}

export const CALL: Names<CallOptions> = { signal: true };

/** The events of a process in order, up to its last, `return` or `error`. Leaving the loop loses none. */
class Events implements AsyncIterableIterator<ProcessEvent, undefined> {
  readonly #stream: Stream;
  readonly #calls: Calls;
  /** The older of two iterators has the lower number, and keeps the events. */
  readonly #number: number;
  #nWaits = 0;
  #state: 'new' | 'begun' | 'ended' = 'new';

  static {
    countCalls(Events.prototype, (events) => events.#calls);
  }

  constructor(stream: Stream, calls: Calls) {
    this.#stream = stream;
    this.#calls = calls;
    this.#number = stream.newReader();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<ProcessEvent, undefined>> {
    if (this.#state === 'ended') return { done: true, value: undefined };
    const isNew = this.#state === 'new';
    if (isNew) {
      this.#state = 'begun';
      this.#stream.nLoops += 1;
    }
    let event: ProcessEvent | null;
    try {
      event = await this.#take(isNew);
    } catch (error) {
      this.#end();
      throw error;
    }
    if (event === null || this.#stream.last !== null) this.#end();
    return event === null ? { done: true, value: undefined } : { done: false, value: event };
  }

  return(): Promise<IteratorResult<ProcessEvent, undefined>> {
    this.#end();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Waits as the one iterator that does. */
  async #take(isNew: boolean): Promise<ProcessEvent | null> {
    this.#stream.enter(this.#number, isNew);
    this.#nWaits += 1;
    try {
      return await this.#stream.take(this.#number);
    } finally {
      this.#nWaits -= 1;
      if (this.#nWaits === 0) this.#stream.leave(this.#number);
    }
  }

  #end(): void {
    if (this.#state === 'begun') {
      this.#stream.nLoops -= 1;
      this.#stream.changed.wake();
    }
    this.#state = 'ended';
  }
}

/**
 * A launched program. One client at a time is attached to it and reads its events; each event is read once.
 *
 * Every method throws PieError `connection-failed` when the connection broke (the process may go on, so attach to it
 * again), and `invalid-argument` for an argument of the wrong type, before anything is sent.
 */
export class Process {
  /**
   * The seed from which every unseeded draw derives; launching with it again repeats the run. Null where another
   * launched it.
   */
  readonly launchSeed: bigint | null;
  readonly #connection: Connection;
  readonly #stream: Stream;

  static {
    countCalls(Process.prototype, (process) => process.#connection.calls);
  }

  /** @internal */
  constructor(connection: Connection, stream: Stream, launchSeed: bigint | null) {
    this.#connection = connection;
    this.#stream = stream;
    this.launchSeed = launchSeed;
  }

  /** Its number, which its server gives to no other process, also after it has started again. */
  get pid(): number {
    return this.#stream.pid;
  }

  /**
   * The events that were not read yet, in order; what is not read in time holds the program up, and nobody else. End a
   * loop by `break`, or by `return()` where you call `next()` yourself. They are read in one place: of two loops the
   * first gets all of them.
   * @throws PieError `connection-failed` when the connection breaks, `session-closed` after `detach`, `future-taken`
   * while another iterator waits for an event, and in the later of two loops.
   */
  events(): AsyncIterableIterator<ProcessEvent, undefined> {
    return new Events(this.#stream, this.#connection.calls);
  }

  /**
   * Waits for the end and answers what the program returned; an error of the program is a PieError with its code, whose
   * `details` have its parts: `kind`, `message`, `traceback` and the `pid`.
   *
   * Events that nobody reads are passed over; while an iterator over `events` has begun and not ended, they are left to
   * it. Where nobody waits in that, they are kept for it, up to 16 windows.
   */
  async result(options: CallOptions = {}): Promise<unknown> {
    const { signal } = known('result', options, CALL);
    const last = await this.#lastEvent(signal);
    if (last.type === 'return') return last.value;
    const details = { kind: last.kind, message: last.message, traceback: last.traceback, pid: this.pid };
    throw new PieError(last.code, described(last.code, last.message, last.kind), details);
  }

  /** Waits for the last event; takes those before where no iterator does. */
  async #lastEvent(signal: AbortSignal | undefined): Promise<LastEvent> {
    const stream = this.#stream;
    const aborted = (): void => stream.changed.wake();
    signal?.addEventListener('abort', aborted, { once: true });
    try {
      for (;;) {
        const last = stream.nLoops > 0 ? stream.arrived : stream.last;
        if (last !== null) return last;
        if (signal?.aborted === true) throw reasonOf(signal);
        if (stream.nLoops > 0) stream.sendOn();
        else if (stream.takeNow() !== null) continue;
        await stream.changed.wait();
      }
    } finally {
      signal?.removeEventListener('abort', aborted);
    }
  }

  /**
   * Sends a message, which the program receives with `session.receive`.
   * @throws PieError `limit-queue` when its queue is full (send again after it has received some), `limit-message` for
   * a text that is too long, `session-closed` when the program has ended or the input was closed.
   */
  async send(text: string, options: CallOptions = {}): Promise<void> {
    const { signal } = known('send', options, CALL);
    await this.#connection.request('send', { pid: this.pid, text: checks.text('text', text) }, nothing, { signal });
  }

  /** Sends a signal: a message that the program receives with the others, in order. Throws what `send` throws. */
  async signal(text: string, options: CallOptions = {}): Promise<void> {
    const { signal } = known('signal', options, CALL);
    await this.#connection.request('signal', { pid: this.pid, text: checks.text('text', text) }, nothing, { signal });
  }

  /** Sends a file, which the program receives with `session.receiveFile`. Throws what `send` throws. */
  async transferFile(data: Uint8Array, options: CallOptions = {}): Promise<void> {
    const { signal } = known('transferFile', options, CALL);
    await this.#connection.transfer({ type: 'file', pid: this.pid }, checks.content('data', data), signal);
  }

  /** Says that no message and no file will follow: when the program has received what waits, `receive` fails. */
  async closeInput(options: CallOptions = {}): Promise<void> {
    const { signal } = known('closeInput', options, CALL);
    await this.#connection.request('close_input', { pid: this.pid }, nothing, { signal });
  }

  /** Ends the program; its last event is the error `cancelled`, unless it has ended before. */
  async terminate(options: CallOptions = {}): Promise<void> {
    const { signal } = known('terminate', options, CALL);
    await this.#connection.request('terminate', { pid: this.pid }, nothing, { signal });
  }

  /** Leaves the process running for whoever attaches next. Events that were not read here are kept for them. */
  async detach(options: CallOptions = {}): Promise<void> {
    const { signal } = known('detach', options, CALL);
    // Also where the caller has given up: the server has let go.
    const accept = (): void => {
      this.#connection.drop(this.#stream);
      const message = `this client has detached from process ${this.pid}; attach to it again`;
      this.#stream.abandon(new PieError('session-closed', message));
    };
    await this.#connection.settle();
    await this.#connection.request('detach', { pid: this.pid }, accept, { signal });
  }
}
