/** `TextEncoder` and `TextDecoder`, for UTF-8. */

import * as host from 'pie:host';

const BYTE_ORDER_MARK = '\ufeff';

/** Text to UTF-8. */
export class TextEncoder {
  get encoding(): string {
    return 'utf-8';
  }

  encode(text = ''): Uint8Array {
    return host.encodeUtf8(String(text).toWellFormed());
  }

  /** Writes as much as there is room for, whole characters alone. `read` is in UTF-16 units, `written` in bytes. */
  encodeInto(text: string, target: Uint8Array): { read: number; written: number } {
    const whole = String(text).toWellFormed();
    // A unit takes a byte at least: what is behind cannot have room.
    const bytes = host.encodeUtf8(whole.slice(0, target.length).toWellFormed());
    let written = Math.min(bytes.length, target.length);
    // A byte within a character begins with the bits 10.
    while (written < bytes.length && written > 0 && (bytes[written]! & 0xc0) === 0x80) written--;
    // A pair of surrogates that the cut above went through became U+FFFD, for which there is no room.
    const [fitting] = host.decodeUtf8(bytes.slice(0, written), false, false) ?? [''];
    target.set(bytes.subarray(0, written));
    return { read: fitting.length, written };
  }
}

/** UTF-8 to text. */
export class TextDecoder {
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  #left = new Uint8Array();
  #begun = false;

  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    if (!['utf-8', 'utf8', 'unicode-1-1-utf-8'].includes(String(label).trim().toLowerCase())) {
      throw new RangeError(`the encoding '${label}' is not supported; only utf-8 is`);
    }
    this.fatal = Boolean(fatal);
    this.ignoreBOM = Boolean(ignoreBOM);
  }

  get encoding(): string {
    return 'utf-8';
  }

  /** With `stream`, a character that is not complete at the end waits for the next call. */
  decode(input: ArrayBuffer | ArrayBufferView = new Uint8Array(), { stream = false } = {}): string {
    const given = ArrayBuffer.isView(input)
      ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
      : new Uint8Array(input);
    const bytes = new Uint8Array(this.#left.length + given.length);
    bytes.set(this.#left);
    bytes.set(given, this.#left.length);
    const decoded = host.decodeUtf8(bytes, this.fatal, stream);
    if (decoded === undefined) throw new TypeError('the bytes are not UTF-8');
    const [text, left] = decoded;
    this.#left = bytes.slice(bytes.length - left);
    const first = !this.#begun;
    this.#begun = stream && (this.#begun || text !== '');
    return first && !this.ignoreBOM && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  }
}
