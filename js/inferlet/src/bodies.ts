/** Bodies of requests and answers. */

import { Blob, bytesOfBlob } from './blob.js';
import { bufferOf, bytesOf, joined, textOf } from './bytes.js';
import { FormData } from './form-data.js';
import { refuseInJson } from './json.js';
import { readForm, writeMultipart } from './multipart.js';
import { isDisturbed, ReadableStream } from './streams.js';
import { URLSearchParams } from './url.js';

/** What a body is made of that is known from the beginning. */
type WholeInit = string | ArrayBuffer | ArrayBufferView | Blob | FormData | URLSearchParams;

/** What a body is made of. */
export type BodyInit = WholeInit | ReadableStream | AsyncIterable<Uint8Array | string>;

const TEXT_TYPE = 'text/plain;charset=UTF-8';
const FORM_TYPE = 'application/x-www-form-urlencoded;charset=UTF-8';

/**
 * A body, and the type that it says of itself.
 * @internal
 */
export interface Extracted {
  readonly body: ReadableStream | null;
  /** All of it, where it is known. */
  readonly bytes: Uint8Array | undefined;
  readonly type: string | undefined;
}

/** @internal */
export function extract(init: BodyInit | null | undefined): Extracted {
  if (init === null || init === undefined) return { body: null, bytes: undefined, type: undefined };
  if (init instanceof ReadableStream) {
    if (init.locked || isDisturbed(init)) throw new TypeError('the stream was read already; a body is read once');
    return { body: init, bytes: undefined, type: undefined };
  }
  if (typeof init === 'object' && Symbol.asyncIterator in init) return { body: ReadableStream.from(init as AsyncIterable<Uint8Array>), bytes: undefined, type: undefined };
  return whole(init as WholeInit);
}

function whole(init: WholeInit): Extracted {
  const of = (bytes: Uint8Array, type: string | undefined): Extracted => ({ body: streamOf(bytes), bytes, type });
  if (init instanceof Blob) return of(bytesOfBlob(init), init.type === '' ? undefined : init.type);
  if (init instanceof URLSearchParams) return of(bytesOf(init.toString()), FORM_TYPE);
  if (init instanceof FormData) {
    const { bytes, type } = writeMultipart(init);
    return of(bytes, type);
  }
  return of(bytesOf(init), init instanceof ArrayBuffer || ArrayBuffer.isView(init) ? undefined : TEXT_TYPE);
}

function streamOf(bytes: Uint8Array): ReadableStream {
  return new ReadableStream({
    start(controller) {
      if (bytes.length > 0) controller.enqueue(bytes);
      controller.close();
    },
  });
}

/** What requests and answers have in common: a body that is read once. */
export abstract class Body {
  #body: ReadableStream | null;

  /** @internal */
  constructor(body: ReadableStream | null) {
    this.#body = body;
  }

  get body(): ReadableStream | null {
    return this.#body;
  }

  /** Whether the body was read. */
  get bodyUsed(): boolean {
    return this.#body !== null && isDisturbed(this.#body);
  }

  async bytes(): Promise<Uint8Array> {
    if (this.#body === null) return new Uint8Array();
    if (this.bodyUsed || this.#body.locked) throw new TypeError('the body was read already; clone the answer before reading it twice');
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.#body) {
      if (!(chunk instanceof Uint8Array)) throw new TypeError('a chunk of the body is not a Uint8Array');
      chunks.push(chunk);
    }
    return joined(chunks);
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return bufferOf(await this.bytes());
  }

  async text(): Promise<string> {
    return textOf(await this.bytes());
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }

  /** The body with the type that the headers say. */
  async blob(): Promise<Blob> {
    return new Blob([await this.bytes()], { type: this.contentType() });
  }

  /** The form that the body holds, by the type that the headers say. */
  async formData(): Promise<FormData> {
    return readForm(await this.bytes(), this.contentType());
  }

  /**
   * What the headers say of the body; empty where they say nothing.
   * @internal
   */
  protected abstract contentType(): string;

  /**
   * The body for a copy, which this one keeps too.
   * @internal
   */
  protected teeBody(): ReadableStream | null {
    if (this.#body === null) return null;
    if (this.bodyUsed || this.#body.locked) throw new TypeError('the body was read already; clone before reading');
    const [own, other] = this.#body.tee();
    this.#body = own;
    return other;
  }
}

refuseInJson(Body, 'send what it holds: `await response.json()` or `await response.text()`');
