/** Forms as bodies: `multipart/form-data` and `application/x-www-form-urlencoded`, written and read. */

import * as host from 'pie:host';
import { File, bytesOfBlob } from './blob.js';
import { bytesOf, joined, textOf } from './bytes.js';
import { FormData } from './form-data.js';

/** More headers than this in front of a part are not those of a form. */
const MAX_HEAD_BYTES = 16 << 10;
const CRLF = bytesOf('\r\n');
const HEAD_END = bytesOf('\r\n\r\n');

/**
 * The bytes of a form, and the type that names the boundary between its parts.
 * @internal
 */
export function writeMultipart(form: FormData): { readonly bytes: Uint8Array; readonly type: string } {
  const letters = Array.from(host.randomBytes(16), (byte) => byte.toString(16).padStart(2, '0')).join('');
  const boundary = `----pie-form-${letters}`;
  const chunks: Uint8Array[] = [];
  for (const [name, value] of form) {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escaped(name)}"`;
    if (value instanceof File) {
      const type = value.type === '' ? 'application/octet-stream' : value.type;
      chunks.push(bytesOf(`${head}; filename="${escaped(value.name)}"\r\nContent-Type: ${type}\r\n\r\n`), bytesOfBlob(value), CRLF);
    } else {
      chunks.push(bytesOf(`${head}\r\n\r\n${value.replace(/\r\n?|\n/g, '\r\n')}\r\n`));
    }
  }
  chunks.push(bytesOf(`--${boundary}--\r\n`));
  return { bytes: joined(chunks), type: `multipart/form-data; boundary=${boundary}` };
}

/** A name within quotes, as browsers write it. */
function escaped(name: string): string {
  return name.replace(/\r\n?|\n/g, '%0D%0A').replaceAll('"', '%22');
}

/**
 * The form that a body of this type holds. TypeError for a type that is not one of a form, and for a damaged body.
 * @internal
 */
export function readForm(bytes: Uint8Array, type: string): FormData {
  const kind = type.split(';', 1)[0]!.trim().toLowerCase();
  if (kind === 'application/x-www-form-urlencoded') {
    const form = new FormData();
    for (const [name, value] of host.parseForm(textOf(bytes))) form.append(name, value);
    return form;
  }
  const boundary = kind === 'multipart/form-data' ? parameter(type, 'boundary') : undefined;
  if (boundary === undefined || boundary === '') {
    const wanted = 'multipart/form-data with a boundary, or application/x-www-form-urlencoded';
    throw new TypeError(`the body is of the type ${JSON.stringify(type.slice(0, 200))}; a form is of ${wanted}`);
  }
  return readMultipart(bytes, boundary);
}

function readMultipart(bytes: Uint8Array, boundary: string): FormData {
  const form = new FormData();
  const [delimiter, first] = [bytesOf(`\r\n--${boundary}`), bytesOf(`--${boundary}`)];
  let at = find(bytes, first, 0);
  if (at < 0) throw damaged('it has no boundary');
  at += first.length;
  while (!(bytes[at] === 0x2d && bytes[at + 1] === 0x2d)) {
    at = find(bytes, CRLF, at);
    // An empty head ends where it begins.
    const headEnd = at < 0 ? -1 : find(bytes, HEAD_END, at);
    if (headEnd < 0 || headEnd - at > MAX_HEAD_BYTES) throw damaged('a part has no head');
    const start = headEnd + HEAD_END.length;
    // An empty part is followed by the line break of its head.
    const end = find(bytes, delimiter, start - CRLF.length);
    if (end < 0) throw damaged('its last boundary is missing');
    add(form, textOf(bytes.subarray(at + CRLF.length, headEnd)), bytes.slice(start, Math.max(start, end)));
    at = end + delimiter.length;
  }
  return form;
}

function add(form: FormData, head: string, content: Uint8Array): void {
  const headers = new Map<string, string>();
  for (const line of head.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  const disposition = headers.get('content-disposition') ?? '';
  const name = parameter(disposition, 'name');
  if (name === undefined) throw damaged('a part has no name');
  const filename = parameter(disposition, 'filename');
  if (filename === undefined) form.append(unescaped(name), textOf(content));
  else form.append(unescaped(name), new File([content], unescaped(filename), { type: headers.get('content-type') ?? 'text/plain' }));
}

function unescaped(name: string): string {
  return name.replaceAll('%0D%0A', '\r\n').replaceAll('%22', '"');
}

/** A parameter of a header, within quotes or without; none where there is none. */
function parameter(header: string, name: string): string | undefined {
  const found = new RegExp(`;[ \\t]*${name}=(?:"([^"]*)"|([^;\\s]*))`, 'i').exec(header);
  return found === null ? undefined : (found[1] ?? found[2]);
}

/** Where the wanted bytes begin; -1 where they are not. */
function find(bytes: Uint8Array, wanted: Uint8Array, from: number): number {
  const last = bytes.length - wanted.length;
  for (let at = bytes.indexOf(wanted[0]!, from); at >= 0 && at <= last; at = bytes.indexOf(wanted[0]!, at + 1)) {
    let n = 1;
    while (n < wanted.length && bytes[at + n] === wanted[n]) n++;
    if (n === wanted.length) return at;
  }
  return -1;
}

function damaged(what: string): TypeError {
  return new TypeError(`the body is not a form: ${what}`);
}
