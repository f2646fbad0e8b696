/** Bytes of what bodies and blobs are made of. */

import * as host from 'pie:host';

/**
 * The bytes of a chunk, a copy where somebody else could change them.
 * @internal
 */
export function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk.slice(0));
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength).slice();
  return host.encodeUtf8(String(chunk).toWellFormed());
}

/**
 * Chunks as one; a single one is not copied.
 * @internal
 */
export function joined(chunks: readonly Uint8Array[]): Uint8Array {
  if (chunks.length === 1) return chunks[0]!;
  const bytes = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

/**
 * UTF-8 as text, without a byte order mark; what is damaged becomes U+FFFD.
 * @internal
 */
export function textOf(bytes: Uint8Array): string {
  const [text] = host.decodeUtf8(bytes, false, false) ?? [''];
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/**
 * A buffer that holds these bytes and no others.
 * @internal
 */
export function bufferOf(bytes: Uint8Array): ArrayBuffer {
  const isAll = bytes.byteOffset === 0 && bytes.byteLength === bytes.buffer.byteLength;
  return (isAll ? bytes.buffer : bytes.slice().buffer) as ArrayBuffer;
}
