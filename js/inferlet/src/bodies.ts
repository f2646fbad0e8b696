/** Bodies of requests and answers. */

import * as host from 'pie:host';
import { isDisturbed, ReadableStream } from './streams.js';

/** What a body is made of. */
export type BodyInit = string | ArrayBuffer | ArrayBufferView | ReadableStream | AsyncIterable<Uint8Array | string>;

const TEXT_TYPE = 'text/plain;charset=UTF-8';

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
  const bytes = bytesOf(init);
  const isText = !(init instanceof ArrayBuffer) && !ArrayBuffer.isView(init);
  return { body: streamOf(bytes), bytes, type: isText ? TEXT_TYPE : undefined };
}

/**
 * The bytes of a chunk, a copy where somebody else could change them.
 * @internal
 */
export function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk.slice(0));
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength).slice();
  return host.encodeUtf8(String(chunk).toWellFormed());
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
    let length = 0;
    for await (const chunk of this.#body) {
      if (!(chunk instanceof Uint8Array)) throw new TypeError('a chunk of the body is no Uint8Array');
      chunks.push(chunk);
      length += chunk.length;
    }
    if (chunks.length === 1) return chunks[0]!;
    const bytes = new Uint8Array(length);
    let offset = 0;
    for (const chunk of chunks) {
      bytes.set(chunk, offset);
      offset += chunk.length;
    }
    return bytes;
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = await this.bytes();
    const isAll = bytes.byteOffset === 0 && bytes.byteLength === bytes.buffer.byteLength;
    return (isAll ? bytes.buffer : bytes.slice().buffer) as ArrayBuffer;
  }

  async text(): Promise<string> {
    const [text] = host.decodeUtf8(await this.bytes(), false, false) ?? [''];
    return text.startsWith('\ufeff') ? text.slice(1) : text;
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }

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
