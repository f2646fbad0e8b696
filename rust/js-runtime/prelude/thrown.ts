/** What to say of something that a program threw and that is not an Error. Loaded where that happens. */

import * as host from 'pie:host';
import { printable } from 'pie:inferlet/failures.js';
import { mapped } from './source-map.js';

/** More places than these are not told apart: the value is thrown in several lines then. */
const MAX_PLACES = 100;

/** The message of a failure with such a thing. */
export function told(thrown: unknown): string {
  try {
    const place = placeOf(thrown);
    return worded(`${shown(thrown)}${place === undefined ? '' : ` (${place})`}`, errorClass(thrown));
  } catch {
    return worded(printable(thrown), undefined); // a getter or a Proxy may refuse to be asked
  }
}

function worded(what: string, name: string | undefined): string {
  const remedy = name === undefined ? 'write `throw new Error(...)`, or reject with one' : `write \`throw new ${name}(...)\``;
  return `the program threw ${what}, which is not an Error; ${remedy}`;
}

/** What was thrown, in words: the source of a function says less than its name, and JSON has no NaN. */
function shown(thrown: unknown): string {
  if (typeof thrown === 'number' || typeof thrown === 'bigint') return String(thrown);
  if (typeof thrown !== 'function') return printable(thrown);
  const name = nameOf(thrown);
  const isClass = isErrorClass(thrown) || /^class\b/.test(Function.prototype.toString.call(thrown));
  const kind = isClass ? 'class' : 'function';
  return name === undefined ? `a ${kind} without a name` : `the ${kind} ${name}`;
}

/** The name of a class of errors that was thrown itself, where an instance of it was meant. */
function errorClass(thrown: unknown): string | undefined {
  return typeof thrown === 'function' && isErrorClass(thrown) ? nameOf(thrown) : undefined;
}

function isErrorClass(thrown: Function): boolean {
  return thrown === Error || thrown.prototype instanceof Error;
}

/** The name of a function, where it is one that a source can write. */
function nameOf(thrown: Function): string | undefined {
  const name: unknown = thrown.name;
  return typeof name === 'string' && /^[A-Za-z_$][\w$]*$/.test(name) ? name : undefined;
}

/**
 * The one line of the program that throws such a value or rejects with it, as far as the words of its sources say;
 * undefined where there is none, or several: a wrong line is worse than none.
 */
function placeOf(thrown: unknown): string | undefined {
  const operands = operandsOf(thrown);
  if (operands.length === 0) return undefined;
  const pattern = patternOf(operands, thrown === undefined);
  const sources = host.programPaths().filter((path) => /\.[mc]?[jt]s$/.test(path));
  const frames = sources.flatMap((path) => throwsIn(path, host.programFile(path) ?? '', pattern));
  if (frames.length > MAX_PLACES) return undefined;
  const places = new Set(mapped(frames).map((frame) => frame.slice(1, -1).replace(/:\d+$/, '')));
  return places.size === 1 ? [...places][0] : undefined;
}

/** How a source may write a value; nothing where it does not write it in one way. */
function operandsOf(thrown: unknown): string[] {
  if (typeof thrown === 'string') return /\\|\$\{/.test(thrown) ? [] : [`'${thrown}'`, `"${thrown}"`, `\`${thrown}\``];
  if (typeof thrown === 'bigint') return [`${thrown}n`];
  if (typeof thrown === 'function') {
    const name = nameOf(thrown);
    return name === undefined ? [] : [name];
  }
  return typeof thrown === 'symbol' || (typeof thrown === 'object' && thrown !== null) ? [] : [String(thrown)];
}

/** Where one of these operands stands whole: what goes on behind it is another value. */
function patternOf(operands: readonly string[], isOptional: boolean): RegExp {
  const any = `(?:${operands.map((operand) => operand.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')})`;
  const thrown = String.raw`throw\b[ \t]*${any}[ \t]*(?=[;}]|$|\/[/*])`;
  const rejected = String.raw`reject\([ \t]*${any}${isOptional ? '?' : ''}[ \t]*\)`;
  return new RegExp(String.raw`(?<![\w$])(?:${thrown}|${rejected})`, 'gm');
}

/** The places of a pattern in a source, written as frames are. */
function throwsIn(path: string, text: string, pattern: RegExp): string[] {
  return Array.from(text.matchAll(pattern)).slice(0, MAX_PLACES + 1).flatMap(({ index }) => {
    const begin = text.lastIndexOf('\n', index) + 1;
    if (/\/[/*]|^\s*\*/.test(text.slice(begin, index))) return []; // it stands in a comment
    return [`(${path}:${text.slice(0, begin).split('\n').length}:${index - begin + 1})`];
  });
}
