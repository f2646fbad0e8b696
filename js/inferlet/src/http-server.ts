/**
 * Requests by HTTP that this program answers (`pie run PROGRAM --port 8000`, `pie install --http PROGRAM`). A program
 * serves where its module has a default export with a function `fetch`:
 *
 *     export default {
 *       async fetch(request) {
 *         return Response.json({ hello: request.headers.get('x-name') });
 *       },
 *     };
 *
 * Where one instance answers all requests, they are answered side by side. `request.signal` is aborted when the client
 * goes, and the stream that is its answer is cancelled. What `fetch` throws goes to standard error, and its client gets
 * the status 500.
 */

import * as host from 'pie:host';
import { toCount, toText } from './arguments.js';
import { bytesOf } from './bytes.js';
import { InferletError, wrongType } from './errors.js';
import { printable, tell } from './failures.js';
import { toJson } from './json.js';
import { Request, Response, type ResponseInit, type Signal } from './request.js';
import { ReadableStream } from './streams.js';

/** What a program exports as its default. */
export interface Handler {
  /** Answers a request. What it throws goes to standard error, and its client gets the status 500. */
  fetch(request: Request): Response | Promise<Response>;
}

/** One event of a stream of server-sent events. */
export interface ServerEvent {
  /** A string as it is, anything else as JSON. */
  readonly data?: unknown;
  /** The name by which pages listen to it; `message` if not given. */
  readonly event?: string | undefined;
  /** What a page sends as `Last-Event-ID` when it connects again. */
  readonly id?: string | undefined;
  /** How long a page waits before it does, in milliseconds. */
  readonly retryMs?: number | undefined;
}

/** What is larger is handed on in several parts, each when the client takes it. */
const STRIDE_BYTES = 64 << 10;
const METHODS_WITHOUT_BODY = ['GET', 'HEAD'];

/** Of the runtime, which defines it after this module has run. */
declare const AbortController: new () => { readonly signal: Signal; abort(reason?: unknown): void };

/** Whether this program was launched to answer requests. */
export function isServing(): boolean {
  return host.isServing();
}

/**
 * Answers requests until no more come, side by side. A program with a default export needs no call of it.
 * @throws InferletError `not-serving` where the program was not launched to answer requests.
 */
export async function serve(handler: Handler): Promise<void> {
  const answers = new Set<Promise<void>>();
  for (;;) {
    const incoming = await new Promise<host.IncomingRequestHandle | undefined>((resolve, reject) => void host.nextRequest(settling(resolve, reject)));
    if (incoming === undefined) break;
    const answered: Promise<void> = answer(handler, incoming).finally(() => answers.delete(answered));
    answers.add(answered);
  }
  await Promise.all(answers);
}

/**
 * An answer that is a stream of server-sent events. `source` gives them: each is the data of one, or a `ServerEvent`
 * that `serverEvent` has made.
 * @throws TypeError where one of a list is undefined; of another source the stream fails with it.
 */
export function events(source: AsyncIterable<unknown> | Iterable<unknown>, init: ResponseInit = {}): Response {
  // Those of a list are looked at before the answer begins.
  if (Array.isArray(source)) source.forEach(checkEvent);
  const response = new Response(ReadableStream.from(texts(source)), init);
  if (!response.headers.has('content-type')) response.headers.set('content-type', 'text/event-stream');
  if (!response.headers.has('cache-control')) response.headers.set('cache-control', 'no-store');
  return response;
}

/** An event with more than data, for `events`. */
export function serverEvent(event: ServerEvent): ServerEvent {
  return new CheckedEvent(event);
}

class CheckedEvent implements ServerEvent {
  readonly data: unknown;
  readonly event: string | undefined;
  readonly id: string | undefined;
  readonly retryMs: number | undefined;

  constructor({ data = '', event, id, retryMs }: ServerEvent) {
    this.data = data;
    this.event = event === undefined ? undefined : line('event', event);
    this.id = id === undefined ? undefined : line('id', id);
    this.retryMs = retryMs === undefined ? undefined : toCount(retryMs, 'retryMs');
  }

  /** The event as it is sent. */
  text(): string {
    const data = typeof this.data === 'string' ? this.data : toJson(this.data, 'the event', 'invalid-argument');
    const lines = data.split(/\r\n|\r|\n/).map((part) => `data: ${part}\n`);
    if (this.retryMs !== undefined) lines.unshift(`retry: ${this.retryMs}\n`);
    if (this.id !== undefined) lines.unshift(`id: ${this.id}\n`);
    if (this.event !== undefined) lines.unshift(`event: ${this.event}\n`);
    return `${lines.join('')}\n`;
  }
}

async function* texts(source: AsyncIterable<unknown> | Iterable<unknown>): AsyncGenerator<Uint8Array, void, undefined> {
  let index = 0;
  for await (const item of source) {
    checkEvent(item, index++);
    const event = item instanceof CheckedEvent ? item : new CheckedEvent({ data: item });
    yield host.encodeUtf8(event.text().toWellFormed());
  }
}

/** Refuses what cannot be an event. */
function checkEvent(event: unknown, index: number): void {
  if (event !== undefined) return;
  throw wrongType(`the event ${index} is undefined; give null for nothing, and await what it is read from: (await step.execute()).tokens`);
}

function line(name: string, value: string): string {
  if (/[\r\n\0]/.test(toText(value, name))) {
    throw new InferletError('invalid-argument', `${name} of an event is ${JSON.stringify(value)}; it is a text of one line`);
  }
  return value;
}

/** What ends the work on a request before its time: its client goes. */
class Leaving {
  readonly #left = Promise.withResolvers<never>();
  readonly #controller = new AbortController();

  constructor(incoming: host.IncomingRequestHandle) {
    this.#left.promise.catch(() => {});
    void incoming.gone(() => {
      const reason = new InferletError('client-gone', 'the client has gone, or has all of its answer; stop working on it');
      this.#left.reject(reason);
      this.#controller.abort(reason);
    });
  }

  get signal(): Signal {
    return this.#controller.signal;
  }

  /** What a promise gives, unless the client goes before. */
  or<T>(promise: T | Promise<T>): Promise<T> {
    const awaited = Promise.resolve(promise);
    // Nobody looks at what comes too late.
    awaited.catch(() => {});
    return Promise.race([awaited, this.#left.promise]);
  }
}

/** Answers one request, unless its client goes before. */
async function answer(handler: Handler, incoming: host.IncomingRequestHandle): Promise<void> {
  const leaving = new Leaving(incoming);
  try {
    const response = await leaving.or(handler.fetch(requestOf(incoming, leaving.signal)));
    if (!(response instanceof Response)) throw new TypeError(`fetch returned ${printable(response)}; ${insteadOf(response)}`);
    incoming.respond(response.status, [...response.headers].map(([name, value]) => ({ name, value })));
    if (response.body !== null) await send(incoming, response.body, leaving);
    incoming.finish();
  } catch (error) {
    // Told first: its client goes when it hears that there is no answer, and the server may end the process then.
    try {
      if (!isClientGone(error)) tell(error);
    } finally {
      incoming.abandon();
    }
  }
}

/** Whether a request ended because its client went. What a handler threw may refuse to be asked, as a Proxy does. */
function isClientGone(error: unknown): boolean {
  try {
    return error instanceof InferletError && error.code === 'client-gone';
  } catch {
    return false;
  }
}

/** What to return in the place of something that is no answer. */
function insteadOf(value: unknown): string {
  if (value === undefined) return 'write `return` in front of the Response that it has made';
  return `it returns a Response: write \`return ${typeof value === 'string' ? 'new Response(text)' : 'Response.json(value)'}\``;
}

/** Hands the body of an answer on as the client takes it. */
async function send(incoming: host.IncomingRequestHandle, body: ReadableStream, leaving: Leaving): Promise<void> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await leaving.or(reader.read());
      if (done) return;
      const bytes = bytesOf(value);
      for (let start = 0; start < bytes.length; start += STRIDE_BYTES) {
        await written(incoming, bytes.subarray(start, start + STRIDE_BYTES));
      }
    }
  } catch (error) {
    // What the stream holds, as a context, is given up with it, once what it waits for has come.
    reader.cancel(error).catch(() => {});
    throw error;
  }
}

function written(incoming: host.IncomingRequestHandle, part: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => void incoming.writePart(part, settling(resolve, reject)));
}

function requestOf(incoming: host.IncomingRequestHandle, signal: Signal): Request {
  const { method, url, headers, remoteAddress } = incoming.head();
  const pairs = headers.map(({ name, value }): [string, string] => [name, value]);
  const body = METHODS_WITHOUT_BODY.includes(method) ? null : bodyOf(incoming);
  const request = new Request(url, { method, headers: pairs, signal, body });
  return Object.assign(request, { remoteAddress });
}

function bodyOf(incoming: host.IncomingRequestHandle): ReadableStream {
  return new ReadableStream({
    async pull(controller) {
      const part = await new Promise<Uint8Array | undefined>((resolve, reject) => void incoming.read(settling(resolve, reject)));
      if (part === undefined) controller.close();
      else controller.enqueue(part);
    },
  });
}

function settling<T>(resolve: (value: T) => void, reject: (reason: unknown) => void): host.Settle<T> {
  return (error, value) => (error === undefined ? resolve(value) : reject(error));
}
