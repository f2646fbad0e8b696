/**
 * One connection to a server: requests and their answers, events to their streams, and what happens when it breaks.
 *
 * Whatever arrives is dealt with at once: answers settle promises, events go to the bounded queue of their process. A
 * request that was given up stays known until it is answered, so that its answer can be undone: giving up leaves the
 * connection as usable as before, and closing waits for such answers, for a while.
 */

import { Calls } from './calls.js';
import { PieError, again, broken } from './errors.js';
import { eventOf } from './events.js';
import { McpServers } from './mcp.js';
import type { Incoming, WebSocketLike } from './opening.js';
import { Outgoing } from './outgoing.js';
import { type Accept, type Pending, Request, type Undo } from './request.js';
import { Stream } from './stream.js';
import { Places, reasonOf } from './waiting.js';
import { type Fields, type Frame, type Hello, decode, encode, encodeBinary, errorOf, fieldsOf, numberOf, optionalText } from './wire.js';

// Of the requests that may be open at once, these are for taking back what was given up.
const RESERVED_REQUESTS = 8;
const CHUNK_BYTES = 256 << 10;
const MIN_CHUNK_BYTES = 1 << 10;
const FLUSH_MS = 2000;
const CLOSE_MS = 2000;
// Acks of a reader that keeps up are gathered for this long: one for many small events.
const ACK_DELAY_MS = 20;
const PING_MS = 20_000;
const SILENCE_MS = 60_000;
const CLOSE_NORMAL = 1000;
// Pages may close with 1000 and numbers from 3000 on alone.
const CLOSE_PROTOCOL_ERROR = 4002;
const CLOSE_POLICY = 1008;
const KEY_GONE = 'the key is no longer good';
const OF_MCP = ['mcp_start', 'mcp_line', 'mcp_stop'];

/** What a request may have beside its fields. */
export interface RequestOptions<T> {
  readonly signal?: AbortSignal | undefined;
  /** Takes back what was done for a caller that has given up. */
  readonly undo?: Undo<T>;
}

/** Frames of one request, and how it is ended early where not all were sent. */
interface Message {
  readonly id: number;
  readonly frames: Iterable<string | Uint8Array>;
  readonly cut?: Uint8Array;
}

/** An open connection; `close` ends it. */
export class Connection {
  readonly hello: Hello;
  /** Whether the server has said that it is about to end. */
  isDraining = false;
  /** What callers of the client wait for. */
  readonly calls = new Calls();
  /** The MCP servers that this client offers. */
  readonly mcp: McpServers;
  readonly #socket: WebSocketLike;
  readonly #outgoing: Outgoing;
  readonly #requests = new Map<number, Pending>();
  readonly #streams = new Map<number, Stream>();
  readonly #slots: Places;
  readonly #acks = new Map<number, number>();
  readonly #cuts: Uint8Array[] = [];
  readonly #posts: { kind: string; fields: Fields }[] = [];
  readonly #maxPosts: number;
  readonly #ended: Promise<void>;
  #hasEnded: () => void = () => undefined;
  #nOpenPosts = 0;
  #lastId = 0;
  #failure: PieError | null = null;
  /** Whether this side ends the connection: what nobody waits for any more is still answered. */
  #isClosing = false;
  #closing: Promise<void> | null = null;
  #flushing: Promise<void> | null = null;
  #ackTimer: ReturnType<typeof setTimeout> | null = null;
  #settled: () => void = () => undefined;
  #lastHeard = performance.now();
  readonly #keepAlive: ReturnType<typeof setInterval>;

  constructor(socket: WebSocketLike, incoming: Incoming, hello: Hello) {
    this.hello = hello;
    this.#socket = socket;
    this.#outgoing = new Outgoing(socket);
    this.mcp = new McpServers((type, fields) => this.#outgoing.send(encode({ type, ...fields })), hello.limits.frameBytes);
    this.#maxPosts = Math.min(RESERVED_REQUESTS, Math.floor(hello.limits.openRequests / 2));
    this.#slots = new Places(Math.max(1, hello.limits.openRequests - this.#maxPosts));
    this.#ended = new Promise((resolve) => {
      this.#hasEnded = resolve;
    });
    this.#keepAlive = setInterval(() => this.#checkAlive(), PING_MS);
    // A timer of Node keeps its process alive; this one shall not.
    (this.#keepAlive as unknown as { unref?: () => void }).unref?.();
    incoming.handOn(
      (data) => this.#receive(data),
      (code, reason) => this.#fail(closed(code, reason)),
    );
  }

  /** Sends a request and waits for its answer. PieError: the error that the server answered, or `connection-failed`. */
  async request<T>(kind: string, fields: Fields, accept: Accept<T>, options: RequestOptions<T> = {}): Promise<T> {
    const id = this.#nextId();
    const frame = encode({ id, type: kind, ...fields });
    this.#checkSize(new TextEncoder().encode(frame).length);
    return await this.#exchange({ id, frames: [frame] }, accept, options);
  }

  /** Sends a request in one binary frame, and waits for its answer. */
  async transfer(header: Fields, payload: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
    const id = this.#nextId();
    const frame = encodeBinary({ id, ...header }, payload);
    this.#checkSize(frame.length);
    await this.#exchange({ id, frames: [frame] }, nothing, { signal });
  }

  /**
   * Sends what may be larger than a frame, in chunks. One that is given up is ended early: the server refuses what has
   * come until then, and drops it.
   */
  async upload(data: Uint8Array, fields: Fields, signal: AbortSignal | undefined): Promise<void> {
    const id = this.#nextId();
    const header = { id, type: 'upload', ...fields, bytes: data.length };
    const chunkBytes = Math.max(MIN_CHUNK_BYTES, Math.min(CHUNK_BYTES, Math.floor(this.hello.limits.frameBytes / 2)));
    const cut = encodeBinary({ ...header, offset: data.length, last: true }, new Uint8Array());
    await this.#exchange({ id, frames: chunks(header, data, chunkBytes), cut }, nothing, { signal });
  }

  /** Sends a request whose answer nobody waits for, soon. */
  post(kind: string, fields: Fields): void {
    this.#posts.push({ kind, fields });
    this.#flushSoon();
  }

  /** A stream for the events of a process, which begin after `afterSeq`. */
  attach(pid: number, windowBytes: number, afterSeq: number): Stream {
    const stream = new Stream(pid, windowBytes, afterSeq, (of, seq, now) => this.#acknowledge(of, seq, now));
    this.#streams.set(pid, stream);
    if (afterSeq > 0) this.#acknowledge(pid, afterSeq, true);
    return stream;
  }

  /** Forgets a stream: its events are passed over from now on. */
  drop(stream: Stream): void {
    if (this.#streams.get(stream.pid) === stream) this.#streams.delete(stream.pid);
  }

  /** Sends at once what was to be sent soon: acks, and requests whose answers nobody waits for. */
  async settle(): Promise<void> {
    this.#flushSoon();
    await this.#flushing;
  }

  /**
   * Ends the connection: open requests and streams get `connection-failed`. A second call waits for the first. What an
   * unanswered request may have done at the server is taken back first, if its answer comes soon.
   */
  async close(): Promise<void> {
    this.#closing ??= this.#end();
    await this.#closing;
  }

  async #end(): Promise<void> {
    if (this.#failure === null) {
      this.#isClosing = true;
      this.calls.excuse();
      this.#fail(new PieError('connection-failed', 'this client has closed the connection; connect again'));
      await withinMs(FLUSH_MS, this.#finish());
    }
    this.#socket.close(CLOSE_NORMAL);
    await withinMs(CLOSE_MS, this.#ended);
    await this.mcp.close();
  }

  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  /** Refuses here what the server would close the connection for. */
  #checkSize(nBytes: number): void {
    const limit = this.hello.limits.frameBytes;
    if (nBytes > limit) {
      throw new PieError('limit-message', `a message of ${nBytes} bytes is larger than the server takes (${limit}); send it in parts`);
    }
  }

  async #exchange<T>(message: Message, accept: Accept<T>, { signal, undo }: RequestOptions<T>): Promise<T> {
    await this.#slots.acquire(signal);
    if (this.#failure !== null) throw again(this.#failure);
    if (signal?.aborted === true) {
      this.#slots.release();
      throw reasonOf(signal);
    }
    const request = new Request(accept, undo);
    this.#requests.set(message.id, request);
    const aborted = (): void => request.giveUp(reasonOf(signal));
    signal?.addEventListener('abort', aborted, { once: true });
    try {
      await this.#sendAll(message, request);
      return await request.answer;
    } finally {
      signal?.removeEventListener('abort', aborted);
    }
  }

  /** Sends the frames of a request. One that is refused or given up before all were sent is ended early. */
  async #sendAll({ frames, cut }: Message, request: Pending): Promise<void> {
    const coming = iterated(frames);
    let frame = coming.next();
    while (!frame.done && !request.isSettled) {
      const following = coming.next();
      await Promise.race([this.#outgoing.send(frame.value), request.ended]);
      frame = following;
    }
    if (!frame.done && cut !== undefined) {
      this.#cuts.push(cut);
      this.#flushSoon();
    }
  }

  #receive(data: unknown): void {
    if (this.#failure !== null && !this.#isClosing) return;
    this.#lastHeard = performance.now();
    try {
      this.#dispatch(decode(data));
    } catch (error) {
      const failure = error instanceof PieError ? error : broken(String(error));
      this.#fail(failure);
      this.#socket.close(CLOSE_PROTOCOL_ERROR, failure.code);
    }
  }

  #dispatch(frame: Frame): void {
    const { fields } = frame;
    const type = optionalText(fields, 'type');
    const error = errorOf(fields);
    if (type === 'event') {
      const stream = this.#streams.get(numberOf(fields, 'pid'));
      stream?.push(eventOf(fields, numberOf(fields, 'seq'), frame.payload));
      if (stream?.isOver === true) this.drop(stream);
    } else if (type === 'draining') {
      this.isDraining = true;
    } else if (type !== null && OF_MCP.includes(type)) {
      this.mcp.take(type, fields);
    } else if (fields['id'] != null) {
      this.#answer(frame, numberOf(fields, 'id'), error);
    } else if (error !== null) {
      throw error;
    } else if (type === null) {
      throw broken('a message that has neither a type nor an id');
    }
  }

  #answer(frame: Frame, id: number, error: PieError | null): void {
    const request = this.#requests.get(id);
    if (request === undefined) {
      if (this.#isClosing) return; // who asked was told of the end
      throw broken(`an answer to the request ${id}, which is not open`);
    }
    if (error !== null) request.fail(error);
    else request.settle(fieldsOf(frame.fields['ok'], `an answer to the request ${id} with a result`), frame);
    this.#forget(id, request);
  }

  #forget(id: number, request: Pending): void {
    this.#requests.delete(id);
    if (request.isPost) {
      this.#nOpenPosts -= 1;
      this.#flushSoon();
    } else {
      this.#slots.release();
    }
    this.#settled();
  }

  /** Ends every open request and every stream. Only the first reason counts. */
  #fail(error: PieError): void {
    if (!this.#isClosing || this.#failure !== null) {
      this.#outgoing.end();
      this.#hasEnded();
      this.#settled();
    }
    if (this.#failure !== null) return;
    this.#failure = error;
    clearInterval(this.#keepAlive);
    if (this.#ackTimer !== null) clearTimeout(this.#ackTimer);
    for (const [id, request] of [...this.#requests]) {
      // When this side closes, requests that their answers undo stay known.
      const isUndone = this.#isClosing && request.undoes;
      if (isUndone) request.giveUp(again(error));
      else {
        request.fail(again(error));
        this.#forget(id, request);
      }
    }
    this.mcp.stop();
    this.#slots.open();
    for (const stream of this.#streams.values()) stream.fail(error);
    this.#streams.clear();
  }

  #acknowledge(pid: number, seq: number, now: boolean): void {
    if (this.#failure !== null) return;
    this.#acks.set(pid, seq);
    if (now) this.#flushSoon();
    else this.#ackTimer ??= setTimeout(() => this.#flushSoon(), ACK_DELAY_MS);
  }

  #flushSoon(): void {
    if (this.#ackTimer !== null) clearTimeout(this.#ackTimer);
    this.#ackTimer = null;
    this.#flushing ??= Promise.resolve()
      .then(() => this.#flush())
      .finally(() => {
        this.#flushing = null;
        if (this.#hasToFlush()) this.#flushSoon();
      });
  }

  #hasToFlush(): boolean {
    const canPost = this.#posts.length > 0 && this.#nOpenPosts < this.#maxPosts;
    return !this.#outgoing.hasEnded && (this.#cuts.length > 0 || canPost || this.#acks.size > 0);
  }

  async #flush(): Promise<void> {
    while (this.#hasToFlush()) {
      const cut = this.#cuts.shift();
      if (cut !== undefined) {
        await this.#outgoing.send(cut);
        continue;
      }
      const post = this.#nOpenPosts < this.#maxPosts ? this.#posts.shift() : undefined;
      if (post !== undefined) {
        const id = this.#nextId();
        this.#requests.set(id, Request.unread());
        this.#nOpenPosts += 1;
        await this.#outgoing.send(encode({ id, type: post.kind, ...post.fields }));
        continue;
      }
      for (const [pid, seq] of this.#acks) {
        this.#acks.delete(pid);
        await this.#outgoing.send(encode({ type: 'ack', pid, seq }));
      }
    }
  }

  /** Sends what is still to be sent, and takes back what was given up as the answers come. */
  async #finish(): Promise<void> {
    for (;;) {
      await this.settle();
      const isDone = this.#posts.length === 0 && this.#nOpenPosts === 0 && this.#requests.size === 0;
      if (isDone || this.#outgoing.hasEnded) return;
      await new Promise<void>((resolve) => {
        this.#settled = resolve;
      });
    }
  }

  /** A server that has gone without a word is told from one that has nothing to say. */
  #checkAlive(): void {
    if (performance.now() - this.#lastHeard > SILENCE_MS) {
      this.#fail(closed(0, `nothing was heard for ${SILENCE_MS / 1000} s`));
      this.#socket.close(CLOSE_NORMAL);
    } else {
      this.post('ping', {});
    }
  }
}

/** Reads an answer that says no more than that the request was done. */
export function nothing(): void {
  // The answer is empty.
}

function* chunks(header: Fields, data: Uint8Array, chunkBytes: number): Generator<Uint8Array> {
  let offset = 0;
  do {
    const chunk = data.subarray(offset, offset + chunkBytes);
    yield encodeBinary({ ...header, offset, last: offset + chunk.length === data.length }, chunk);
    offset += chunkBytes;
  } while (offset < data.length);
}

function iterated<T>(values: Iterable<T>): Iterator<T, unknown> {
  return values[Symbol.iterator]();
}

/** Waits for a promise, but no longer than that. */
async function withinMs(limit: number, work: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limit);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}

/** Why the connection ended. */
function closed(code: number, reason: string): PieError {
  if (code === CLOSE_POLICY && reason === KEY_GONE) {
    const message = 'the server closed the connection: the key was revoked or has expired; ask the operator of the server for another one';
    return new PieError('authentication-failed', message);
  }
  const remedy = 'check that `pie serve` runs, connect again and attach to your processes';
  const said = [code > 0 ? String(code) : '', reason].filter((part) => part !== '').join(': ');
  return new PieError('connection-failed', `the connection to the server has ended${said === '' ? '' : ` (${said})`}; ${remedy}`);
}
