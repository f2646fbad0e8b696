/** Values as text for people. */

import { ownLines } from './stacks.js';

const MAX_DEPTH = 4;
const MAX_ITEMS = 100;

/** A value as it would be read in a program; deep and long values are cut, cycles are named. */
export function inspect(value: unknown): string {
  return show(value, 0, []);
}

function show(value: unknown, depth: number, outer: object[]): string {
  if (typeof value === 'string') return depth === 0 ? value : JSON.stringify(value).toWellFormed();
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol') return value.toString();
  if (typeof value === 'function') return `[Function: ${value.name || '(anonymous)'}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (value instanceof Error) return showError(value);
  if (value instanceof Date || value instanceof RegExp) return String(value);
  if (value.constructor?.name === 'URL' && 'href' in value) return String(value.href);
  if (outer.includes(value)) return '[Circular]';
  if (depth > MAX_DEPTH) return Array.isArray(value) ? '[...]' : '{...}';
  const inner = [...outer, value];
  const item = (part: unknown): string => show(part, depth + 1, inner);
  if (value instanceof Map) return `Map ${braces(Array.from(value, ([key, part]) => `${item(key)} => ${item(part)}`))}`;
  if (value instanceof Set) return `Set ${braces(Array.from(value, item))}`;
  if (value instanceof Promise) return 'Promise { await it for its value }';
  if (Array.isArray(value)) return `[${cut(value, item)}]`;
  const name = value.constructor?.name ?? '';
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return `${name} [${cut(value as Uint8Array, item)}]`;
  const fields = Object.entries(value).map(([key, part]) => `${/^[\w$]+$/.test(key) ? key : JSON.stringify(key)}: ${item(part)}`);
  return name === '' || name === 'Object' ? braces(fields) : `${name} ${braces(fields)}`;
}

function showError(error: Error): string {
  return [`${error.name}: ${error.message}`, ...ownLines(error)].join('\n');
}

function cut(items: ArrayLike<unknown>, item: (part: unknown) => string): string {
  const shown = Array.from({ length: Math.min(items.length, MAX_ITEMS) }, (_, index) => item(items[index]));
  if (items.length > MAX_ITEMS) shown.push(`... ${items.length - MAX_ITEMS} more`);
  return shown.join(', ');
}

function braces(parts: string[]): string {
  if (parts.length === 0) return '{}';
  const shown = parts.length > MAX_ITEMS ? [...parts.slice(0, MAX_ITEMS), `... ${parts.length - MAX_ITEMS} more`] : parts;
  return `{ ${shown.join(', ')} }`;
}
