/** `Blob` and `File`: bytes with a type. They lie in the memory of the program. */

import { bufferOf, bytesOf, joined, textOf } from './bytes.js';
import { refuseInJson } from './json.js';
import { ReadableStream } from './streams.js';

/** What a blob is made of. */
export type BlobPart = string | ArrayBuffer | ArrayBufferView | Blob;

/** How a blob is made. */
export interface BlobOptions {
  readonly type?: string;
  /** Whether line breaks of texts become those of the machine, which are `\n`. */
  readonly endings?: 'transparent' | 'native';
}

let bytesIn: (blob: Blob) => Uint8Array;
let viewed: (bytes: Uint8Array, type: string) => Blob;

/** Bytes that do not change, with a type. */
export class Blob {
  #bytes: Uint8Array;
  readonly type: string;

  static {
    bytesIn = (blob) => blob.#bytes;
    viewed = (bytes, type) => {
      const blob = new Blob([], { type });
      blob.#bytes = bytes;
      return blob;
    };
  }

  constructor(parts: Iterable<BlobPart> = [], { type = '', endings = 'transparent' }: BlobOptions = {}) {
    if (typeof parts !== 'object' || parts === null || !(Symbol.iterator in parts)) {
      throw new TypeError('the parts of a blob are a list: new Blob([text])');
    }
    const native = (part: BlobPart): BlobPart =>
      endings === 'native' && typeof part === 'string' ? part.replace(/\r\n?/g, '\n') : part;
    this.#bytes = joined([...parts].map((part) => (part instanceof Blob ? part.#bytes : bytesOf(native(part)))));
    this.type = typeOf(type);
  }

  /** In bytes. */
  get size(): number {
    return this.#bytes.length;
  }

  /** A part of it, which shares its bytes. Negative places count from the end. */
  slice(start = 0, end = this.size, type = ''): Blob {
    return viewed(this.#bytes.subarray(start, end), typeOf(type));
  }

  async text(): Promise<string> {
    return textOf(this.#bytes);
  }

  async bytes(): Promise<Uint8Array> {
    return this.#bytes.slice();
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return bufferOf(this.#bytes.slice());
  }

  stream(): ReadableStream {
    const bytes = this.#bytes;
    return new ReadableStream({
      start(controller) {
        if (bytes.length > 0) controller.enqueue(bytes.slice());
        controller.close();
      },
    });
  }
}

/** A blob with a name. */
export class File extends Blob {
  readonly name: string;
  /** In milliseconds since 1970. */
  readonly lastModified: number;

  constructor(parts: Iterable<BlobPart>, name: string, options: BlobOptions & { readonly lastModified?: number } = {}) {
    super(parts, options);
    this.name = String(name).toWellFormed();
    this.lastModified = Math.trunc(Number(options.lastModified ?? Date.now())) || 0;
  }
}

/** A type as it stands in a header; one that could not stand there is none. */
function typeOf(type: string): string {
  const text = String(type);
  return /^[\x20-\x7e]*$/.test(text) ? text.toLowerCase() : '';
}

/**
 * The bytes of a blob, which nobody changes.
 * @internal
 */
export function bytesOfBlob(blob: Blob): Uint8Array {
  return bytesIn(blob);
}

refuseInJson(Blob, 'send what it holds: `await blob.text()` or `await blob.bytes()`');
