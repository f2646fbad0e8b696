/** `btoa` and `atob`: bytes as base64. A text of bytes has one character, up to U+00FF, for each. */

import * as host from 'pie:host';
import { DOMException } from './dom-exception.js';

/** A text of bytes as base64. */
export function btoa(text: string): string {
  const encoded = host.encodeBase64(String(text).toWellFormed());
  if (encoded !== undefined) return encoded;
  const remedy = 'encode the text first: btoa(String.fromCharCode(...new TextEncoder().encode(text)))';
  throw new DOMException(`the text has a character beyond U+00FF, which is not a byte; ${remedy}`, 'InvalidCharacterError');
}

/** The text of bytes that base64 holds. */
export function atob(text: string): string {
  const decoded = host.decodeBase64(String(text).toWellFormed());
  if (decoded !== undefined) return decoded;
  throw new DOMException('the text is not base64', 'InvalidCharacterError');
}
