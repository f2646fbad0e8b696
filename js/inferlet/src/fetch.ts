/**
 * `fetch`, to servers that the operator of the engine allows. What fails rejects with a TypeError, as everywhere, whose
 * `code` and `cause` say why: `net-denied`, `net-unreachable`, `http-protocol`, `http-redirects`, or a limit.
 */

import * as host from 'pie:host';
import { bytesOf } from './bytes.js';
import { InferletError } from './errors.js';
import { Request, Response, type RequestInit, type Signal } from './request.js';
import { ReadableStream } from './streams.js';

export { Blob, File } from './blob.js';
export { FormData } from './form-data.js';
export { Headers } from './headers.js';
export { Request, Response } from './request.js';
export { ReadableStream } from './streams.js';

const REDIRECTS = { follow: 'follow', error: 'fail', manual: 'keep' } as const;

/** Sends a request and waits for the head of its answer, whose body is read as it comes. */
export async function fetch(input: string | { readonly href: string } | Request, init: RequestInit = {}): Promise<Response> {
  const request = new Request(input, init);
  const { signal } = request;
  if (signal?.aborted === true) throw signal.reason;
  // Where it was asked for: what comes out of the event loop has no place in the program.
  const asked = new Error();
  let exchange: host.ExchangeHandle;
  try {
    exchange = host.exchangeStart({
      method: request.method,
      url: request.url,
      headers: [...request.headers].map(([name, value]) => ({ name, value })),
      body: bodyOf(request),
      redirects: REDIRECTS[request.redirect],
      timeouts: { connectMs: undefined, firstByteMs: undefined, idleMs: undefined, wholeMs: undefined },
    });
  } catch (error) {
    throw failed(error, asked);
  }
  const abort = new Aborting(exchange, signal);
  const sending = request.body !== null && request.whole === undefined ? send(exchange, request.body, abort) : undefined;
  // Whatever it fails with is told by the answer, but what the program itself threw.
  sending?.catch((error: unknown) => abort.give(error));
  try {
    // Whoever asks has the promise of `fetch`: it is that which has to be awaited.
    const head = await abort.or(new Promise<host.Head>((resolve, reject) => exchange.head(settling(resolve, reject)).subscribe()));
    return Response.of(head, answer(exchange, abort, asked));
  } catch (error) {
    abort.end();
    throw failed(error, asked);
  }
}

function bodyOf(request: Request): host.Body {
  if (request.whole !== undefined) return { type: 'whole', value: request.whole };
  return request.body === null ? { type: 'none' } : { type: 'streamed' };
}

function settling<T>(resolve: (value: T) => void, reject: (reason: unknown) => void): host.Settle<T> {
  return (error, value) => (error === undefined ? resolve(value) : reject(error));
}

/** What ends a request before its time: a signal, or an error of the program that writes its body. */
class Aborting {
  readonly #exchange: host.ExchangeHandle;
  readonly #signal: Signal | null;
  readonly #listener: () => void;
  readonly #given = Promise.withResolvers<never>();
  #isGiven = false;

  constructor(exchange: host.ExchangeHandle, signal: Signal | null) {
    this.#exchange = exchange;
    this.#signal = signal;
    this.#listener = () => this.give(signal?.reason);
    this.#given.promise.catch(() => {});
    signal?.addEventListener('abort', this.#listener, { once: true });
  }

  /** Ends the request with a reason. */
  give(reason: unknown): void {
    if (this.#isGiven) return;
    this.#isGiven = true;
    this.end();
    this.#given.reject(reason);
    this.#exchange.cancel();
  }

  /** What a promise gives, or the reason for which the request ended. */
  or<T>(promise: Promise<T>): Promise<T> {
    // The loser of this race is rejected by the engine, which nobody looks at.
    promise.catch(() => {});
    return Promise.race([promise, this.#given.promise]);
  }

  get isGiven(): boolean {
    return this.#isGiven;
  }

  /** The request is over, and is not ended any more. */
  end(): void {
    this.#signal?.removeEventListener('abort', this.#listener);
  }
}

/** Hands the body of a request on as it comes. */
async function send(exchange: host.ExchangeHandle, body: ReadableStream, abort: Aborting): Promise<void> {
  const reader = body.getReader();
  while (!abort.isGiven) {
    const { done, value } = await reader.read();
    if (done) {
      exchange.finish();
      return;
    }
    const part = bytesOf(value);
    const failure = await new Promise<Error | undefined>((resolve) => void exchange.writePart(part, resolve));
    if (failure === undefined) continue;
    await reader.cancel();
    // A server that has answered wants no more: its answer says what became of the request.
    if (failure instanceof InferletError && failure.code === 'http-protocol') return;
    throw failure;
  }
}

/** The body of an answer. */
function answer(exchange: host.ExchangeHandle, abort: Aborting, asked: Error): ReadableStream {
  return new ReadableStream({
    async pull(controller) {
      try {
        const read = new Promise<Uint8Array | undefined>((resolve, reject) => void exchange.read(settling(resolve, reject)));
        const part = await abort.or(read);
        if (part !== undefined) {
          controller.enqueue(part);
          return;
        }
        abort.end();
        controller.close();
      } catch (error) {
        abort.end();
        throw failed(error, asked);
      }
    },
    cancel() {
      abort.end();
      exchange.cancel();
    },
  });
}

/** An error of the engine as one of `fetch`; others are as they are. */
function failed(error: unknown, asked: Error): unknown {
  if (!(error instanceof InferletError)) return error;
  const { code, details } = error;
  const failure = Object.assign(new TypeError(error.message, { cause: error }), { code, details });
  if (asked.stack !== undefined) failure.stack = asked.stack;
  return failure;
}
