/** Frames of the protocol: what travels, and what is not one. `docs/reference/protocol.md` describes each message. */

import { type Details, PieError, broken } from './errors.js';

export const PROTOCOL = 1;

const HEADER_LENGTH_BYTES = 4;
const MAX_HEADER_BYTES = 64 << 10;
const MAX_SHOWN_CHARS = 80;

/** The fields of a message. */
export type Fields = Readonly<Record<string, unknown>>;

/** A message of a server. */
export interface Frame {
  readonly fields: Fields;
  /** Its JSON text, for integers that a number cannot hold. */
  readonly text: string;
  /** Empty unless the frame is binary. */
  readonly payload: Uint8Array;
}

/** What one server takes: sizes in bytes, and the number of requests that may be open at once. */
export interface ServerLimits {
  readonly frameBytes: number;
  readonly messageBytes: number;
  readonly uploadBytes: number;
  readonly windowBytes: number;
  readonly openRequests: number;
}

/** The first message of a server. */
export interface Hello {
  readonly server: string;
  readonly instance: string;
  readonly user: string;
  readonly role: string;
  readonly limits: ServerLimits;
}

/** A text frame. Bigints are written with all of their digits, and a `Raw` as the JSON that it holds. */
export function encode(fields: Fields): string {
  const inner = Object.entries(fields).map(([name, value]) => `${JSON.stringify(name)}:${encoded(value)}`);
  return `{${inner.join(',')}}`;
}

/** JSON text that is a field of a message as it stands. */
export class Raw {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }
}

function encoded(value: unknown): string {
  if (value instanceof Raw) return value.json;
  return typeof value === 'bigint' ? value.toString() : JSON.stringify(value);
}

/** A binary frame: the length of the header (32 bits, little-endian), the header, the payload. */
export function encodeBinary(header: Fields, payload: Uint8Array): Uint8Array {
  const text = new TextEncoder().encode(encode(header));
  const frame = new Uint8Array(HEADER_LENGTH_BYTES + text.length + payload.length);
  new DataView(frame.buffer).setUint32(0, text.length, true);
  frame.set(text, HEADER_LENGTH_BYTES);
  frame.set(payload, HEADER_LENGTH_BYTES + text.length);
  return frame;
}

/** A frame of a server. PieError `protocol-error` for anything else. */
export function decode(data: unknown): Frame {
  if (typeof data === 'string') return { fields: parse(data), text: data, payload: new Uint8Array() };
  if (!(data instanceof ArrayBuffer)) throw broken('a frame that is neither text nor bytes');
  if (data.byteLength < HEADER_LENGTH_BYTES) throw broken(`a binary frame of ${data.byteLength} bytes has no header`);
  const nBytes = new DataView(data).getUint32(0, true);
  const end = HEADER_LENGTH_BYTES + nBytes;
  if (nBytes > MAX_HEADER_BYTES || end > data.byteLength) {
    throw broken(`a binary frame of ${data.byteLength} bytes names a header of ${nBytes} bytes`);
  }
  const text = new TextDecoder().decode(new Uint8Array(data, HEADER_LENGTH_BYTES, nBytes));
  return { fields: parse(text), text, payload: new Uint8Array(data, end) };
}

/** The error that a message carries, if it carries one. */
export function errorOf(fields: Fields): PieError | null {
  if (fields['error'] === undefined || fields['error'] === null) return null;
  const error = fieldsOf(fields['error'], 'an error');
  const details: unknown = error['details'];
  return new PieError(textOf(error, 'code'), textOf(error, 'message'), details == null ? {} : (fieldsOf(details, 'details') as Details));
}

/** The hello in a message. */
export function helloOf(fields: Fields): Hello {
  const limits = fieldsOf(fields['limits'], 'limits');
  return {
    server: textOf(fields, 'server'),
    instance: textOf(fields, 'instance'),
    user: textOf(fields, 'user'),
    role: optionalText(fields, 'role') ?? 'user',
    limits: {
      frameBytes: numberOf(limits, 'frame_bytes'),
      messageBytes: numberOf(limits, 'message_bytes'),
      uploadBytes: numberOf(limits, 'upload_bytes'),
      windowBytes: numberOf(limits, 'window_bytes'),
      openRequests: numberOf(limits, 'open_requests'),
    },
  };
}

/** An object. */
export function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw broken(`${what} that is not an object`);
  return value as Fields;
}

/** A field that is a text. */
export function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== 'string') throw broken(`the field ${name} is not a text`);
  return value;
}

/** A field that is a text, or null, or left out. */
export function optionalText(fields: Fields, name: string): string | null {
  return fields[name] == null ? null : textOf(fields, name);
}

/** A field that is a number. */
export function numberOf(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value !== 'number') throw broken(`the field ${name} is not a number`);
  return value;
}

/** A field that is a number, or null, or left out. */
export function optionalNumber(fields: Fields, name: string): number | null {
  return fields[name] == null ? null : numberOf(fields, name);
}

/** A field that is a truth value. */
export function flagOf(fields: Fields, name: string): boolean {
  const value = fields[name];
  if (typeof value !== 'boolean') throw broken(`the field ${name} is not true or false`);
  return value;
}

/** A field that is a list of objects. */
export function listOf(fields: Fields, name: string): readonly Fields[] {
  const value = fields[name];
  if (!Array.isArray(value)) throw broken(`the field ${name} is not a list`);
  return value.map((one: unknown) => fieldsOf(one, `an entry of ${name}`));
}

/**
 * An integer of up to 64 bits in the text of a message that holds no text of a user, so that the name of the field
 * stands there once: `JSON.parse` would round it.
 */
export function wideOf(frame: Frame, name: string): bigint {
  const found = new RegExp(`"${name}":\\s*(\\d+)`).exec(frame.text);
  if (found?.[1] === undefined) throw broken(`the field ${name} is not a whole number`);
  return BigInt(found[1]);
}

function parse(text: string): Fields {
  try {
    return fieldsOf(JSON.parse(text), 'a message');
  } catch (error) {
    if (error instanceof PieError) throw error;
    throw broken(`${JSON.stringify(text.slice(0, MAX_SHOWN_CHARS))} (${String(error)})`);
  }
}
