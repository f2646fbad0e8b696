/** `Request` and `Response` of the Web. */

import { Body, extract, type BodyInit } from './bodies.js';
import { InferletError } from './errors.js';
import { Headers, type HeadersInit } from './headers.js';
import type { ReadableStream } from './streams.js';
import { toJson } from './json.js';

/** What can be aborted: an `AbortSignal`. */
export interface Signal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** How a request is sent. */
export interface RequestInit {
  readonly method?: string;
  readonly headers?: HeadersInit;
  readonly body?: BodyInit | null;
  readonly redirect?: 'follow' | 'error' | 'manual';
  readonly signal?: Signal | null;
}

const REDIRECTS = ['follow', 'error', 'manual'];
const USUAL = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'];
const NULL_BODY = [101, 103, 204, 205, 304];
const REDIRECT_STATUS = [301, 302, 303, 307, 308];

/** What is asked of a server. */
export class Request extends Body {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly redirect: 'follow' | 'error' | 'manual';
  readonly signal: Signal | null;
  /** The address of the client, where a program answers the request. */
  readonly remoteAddress: string | undefined;
  /** All of the body, where it is known. @internal */
  readonly whole: Uint8Array | undefined;

  constructor(input: string | { readonly href: string } | Request, init: RequestInit = {}) {
    const from = input instanceof Request ? input : undefined;
    const method = methodOf(init.method ?? from?.method ?? 'GET');
    const isOwnBody = init.body !== undefined && init.body !== null;
    if (isOwnBody && (method === 'GET' || method === 'HEAD')) throw new TypeError(`a request by ${method} has no body`);
    if (from !== undefined && !isOwnBody && from.bodyUsed) throw new TypeError('the body of the request was read already; clone it before');
    const extracted = isOwnBody ? extract(init.body) : { body: from?.body ?? null, bytes: from?.whole, type: undefined };
    super(extracted.body);
    this.url = from?.url ?? (typeof input === 'string' ? input : String((input as { readonly href: string }).href));
    this.method = method;
    this.headers = new Headers(init.headers ?? from?.headers);
    if (extracted.type !== undefined && !this.headers.has('content-type')) this.headers.set('content-type', extracted.type);
    this.redirect = init.redirect ?? from?.redirect ?? 'follow';
    if (!REDIRECTS.includes(this.redirect)) throw new TypeError(`redirect is ${JSON.stringify(this.redirect)}; it is one of ${REDIRECTS.join(', ')}`);
    this.signal = init.signal === undefined ? (from?.signal ?? null) : init.signal;
    this.remoteAddress = from?.remoteAddress;
    this.whole = extracted.bytes;
  }

  /** @internal */
  protected override contentType(): string {
    return this.headers.get('content-type') ?? '';
  }

  clone(): Request {
    const { method, headers, redirect, signal } = this;
    const body = this.whole ?? this.teeBody();
    if (this.bodyUsed) throw new TypeError('the body of the request was read already; clone it before');
    return new Request(this.url, { method, headers, redirect, signal, ...(body === null ? {} : { body }) });
  }
}

/** How an answer is made. */
export interface ResponseInit {
  readonly status?: number;
  readonly statusText?: string;
  readonly headers?: HeadersInit;
}

/** An answer. */
export class Response extends Body {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  /** Where it comes from, behind all redirects; empty where a program made it. */
  readonly url: string = '';
  /** Whether there was a redirect. */
  readonly redirected: boolean = false;
  readonly type: 'default' | 'error' = 'default';

  constructor(body: BodyInit | null = null, { status = 200, statusText = '', headers }: ResponseInit = {}) {
    if (!Number.isInteger(status) || status < 200 || status > 599) throw new RangeError(`${status} is not a status of an answer; give a number from 200 to 599`);
    if (body !== null && NULL_BODY.includes(status)) throw new TypeError(`an answer of the status ${status} has no body`);
    const extracted = extract(body);
    super(extracted.body);
    this.status = status;
    this.statusText = String(statusText);
    this.headers = new Headers(headers);
    if (extracted.type !== undefined && !this.headers.has('content-type')) this.headers.set('content-type', extracted.type);
  }

  /**
   * One that a server gave.
   * @internal
   */
  static of(head: Head, body: ReadableStream | null): Response {
    const response = new Response(NULL_BODY.includes(head.status) ? null : body);
    const headers = head.headers.map(({ name, value }): [string, string] => [name, value]);
    return Object.assign(response, {
      status: head.status,
      statusText: head.statusText,
      headers: new Headers(headers),
      url: head.url,
      redirected: head.isRedirected,
    });
  }

  /** One whose body is a JSON value. */
  static json(value: unknown, init: ResponseInit = {}): Response {
    const response = new Response(toJson(value, 'the body', 'invalid-argument'), init);
    if (new Headers(init.headers).has('content-type')) return response;
    response.headers.set('content-type', 'application/json');
    return response;
  }

  /** One that sends the request on. */
  static redirect(url: string | { readonly href: string }, status = 302): Response {
    if (!REDIRECT_STATUS.includes(status)) throw new RangeError(`${status} is not a status of a redirect; give one of ${REDIRECT_STATUS.join(', ')}`);
    return new Response(null, { status, headers: { location: typeof url === 'string' ? url : url.href } });
  }

  /** Whether the status says that it succeeded. */
  get ok(): boolean {
    return this.status >= 200 && this.status <= 299;
  }

  /** @internal */
  protected override contentType(): string {
    return this.headers.get('content-type') ?? '';
  }

  clone(): Response {
    const copy = new Response(this.teeBody());
    const { status, statusText, url, redirected, type } = this;
    return Object.assign(copy, { status, statusText, url, redirected, type, headers: new Headers(this.headers) });
  }
}

/** The head of an answer. @internal */
export interface Head {
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  readonly isRedirected: boolean;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
}

function methodOf(method: string): string {
  const text = String(method);
  const upper = text.toUpperCase();
  if (['CONNECT', 'TRACE', 'TRACK'].includes(upper)) throw new InferletError('invalid-argument', `programs cannot ask by ${upper}; use GET, POST or another method`);
  return USUAL.includes(upper) ? upper : text;
}
