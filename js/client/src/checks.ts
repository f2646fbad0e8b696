/** Checks of what callers give, before anything is sent. An error names the argument, its value and what it may be. */

import { PieError } from './errors.js';
import { type McpServer, isCommand } from './mcp.js';
import { checkProcesses } from './mcp-process.js';

const MCP_SERVER = 'an object with a `command`, or one with a method `connect`';
const MAX_SHOWN_CHARS = 80;
const MAX_DEPTH = 500;
const MAX_WHOLE = 2n ** 64n - 1n;
// Timers of JavaScript count milliseconds in 31 bits; longer ones end at once.
const MAX_TIME_S = 2_147_483;
const MAX_CREDITS = 1_000_000_000;

/** The error of an argument that cannot be what it is. */
export function refused(name: string, value: unknown, expected: string): PieError {
  return new PieError('invalid-argument', `${name} is ${shown(value)}; give ${expected}`, { argument: name });
}

/** A text that can be written as UTF-8. */
export function text(name: string, value: unknown, expected = 'a string'): string {
  if (typeof value !== 'string') throw refused(name, value, expected);
  if (!value.isWellFormed()) throw refused(name, value, `${expected} without half a character`);
  return value;
}

/** A truth value. */
export function flag(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw refused(name, value, 'true or false');
  return value;
}

/** A whole number of up to 64 bits; beyond 2^53 it has to be a bigint, since numbers are inexact there. */
export function whole(name: string, value: unknown, least = 0n): bigint {
  const number = typeof value === 'bigint' ? value : Number.isSafeInteger(value) ? BigInt(value as number) : -1n;
  if (number < least || number > MAX_WHOLE) {
    throw refused(name, value, `a whole number from ${least} to ${MAX_WHOLE}, as a bigint beyond 2 ** 53 - 1`);
  }
  return number;
}

/** A length of time in seconds, above zero and no longer than a timer can be. */
export function timeS(name: string, value: unknown): number {
  if (typeof value !== 'number' || !(value > 0 && value <= MAX_TIME_S)) {
    throw refused(name, value, `a number of seconds above 0, and up to ${MAX_TIME_S}`);
  }
  return value;
}

/** An amount of credits. */
export function credits(name: string, value: unknown): number {
  if (typeof value !== 'number' || !(value >= 0 && value <= MAX_CREDITS)) {
    throw refused(name, value, `a number of credits from 0 to ${MAX_CREDITS}`);
  }
  return value;
}

/** A class, or a function that makes objects. */
export function classOf<T extends new (...given: never[]) => unknown>(name: string, value: T): T {
  if (typeof value !== 'function') throw refused(name, value, 'a class');
  return value;
}

/** Bytes. */
export function content(name: string, value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw refused(name, value, 'a Uint8Array');
  return value;
}

/** A list of texts. */
export function texts(name: string, value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw refused(name, value, 'an array of strings');
  return Array.from(value, (one: unknown, place) => text(`${name}[${place}]`, one));
}

/** Limits by their names; which there are and how far they reach is for the server to say. */
export function limits(name: string, value: unknown): Record<string, number | null> {
  const given = record(name, value, 'an object of limits by their names, as in { cpu_s: 10 }');
  for (const [key, limit] of Object.entries(given)) {
    text(`a name in ${name}`, key);
    if (limit !== null && !Number.isFinite(limit)) throw refused(`${name}.${key}`, limit, 'a number, or null for no limit');
  }
  return given as Record<string, number | null>;
}

/** What programs are called at a server, by the names that a launch calls them by. */
export function programs(name: string, value: unknown): Record<string, string> {
  const given = record(name, value, "an object of programs by their names, as in { count: 'count@1.0.0' }");
  for (const [key, program] of Object.entries(given)) {
    text(`a name in ${name}`, key);
    text(`${name}.${key}`, program, 'a string: NAME@VERSION, NAME, or what `upload` answered');
  }
  return given as Record<string, string>;
}

/** An MCP server: a command, on a platform that starts processes, or an object that serves. */
export function mcpServer(name: string, value: McpServer): McpServer {
  if (typeof value !== 'object' || value === null) throw refused(name, value, MCP_SERVER);
  if (!isCommand(value)) {
    if (typeof value.connect !== 'function') throw refused(name, value, MCP_SERVER);
    return value;
  }
  text(`${name}.command`, value.command);
  texts(`${name}.args`, value.args ?? []);
  if (value.cwd !== undefined) text(`${name}.cwd`, value.cwd);
  const env = record(`${name}.env`, value.env ?? {}, 'an object of variables by their names');
  for (const [key, variable] of Object.entries(env)) text(`${name}.env.${key}`, variable);
  checkProcesses();
  return value;
}

/** The JSON text of a value that JSON holds as it is; a bigint is written with all of its digits. */
export function json(name: string, value: unknown): string {
  return written(name, value, 0);
}

function written(name: string, value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) {
    const message = `${name} nests deeper than ${MAX_DEPTH} levels, or holds itself; give it flatter`;
    throw new PieError('invalid-argument', message, { argument: name });
  }
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'string') return JSON.stringify(text(within(name, depth), value));
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw refused(within(name, depth), value, 'a finite number: JSON has no other');
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) return `[${Array.from(value, (one: unknown) => written(name, one, depth + 1)).join(',')}]`;
  if (!isPlain(value)) {
    throw refused(within(name, depth), value, 'JSON: null, booleans, numbers, strings, or arrays and objects of these');
  }
  const fields = Object.entries(value).filter(([, one]) => one !== undefined);
  const inner = fields.map(([key, one]) => {
    return `${JSON.stringify(text(`a key in ${name}`, key))}:${written(name, one, depth + 1)}`;
  });
  return `{${inner.join(',')}}`;
}

function within(name: string, depth: number): string {
  return depth === 0 ? name : `a value in ${name}`;
}

function record(name: string, value: unknown, expected: string): Record<string, unknown> {
  if (!isPlain(value)) throw refused(name, value, expected);
  return value;
}

/** Whether a value is an object without a class of its own. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object of another window has a prototype of its own, which has none in turn.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > MAX_SHOWN_CHARS ? `${value.slice(0, MAX_SHOWN_CHARS)}…` : value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'object' && value !== null) {
    return Array.isArray(value) ? 'an array' : `an object (${value.constructor?.name ?? 'without a class'})`;
  }
  return typeof value === 'function' ? 'a function' : String(value);
}
