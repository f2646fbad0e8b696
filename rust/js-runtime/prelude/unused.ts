/** What of the arguments of a launch no line of a program reads. Loaded where a launch has arguments. */

import * as host from 'pie:host';
import { nearest } from './nearest.js';
import { keysRead } from './parameter-uses.js';

/** How a program may read its arguments beside the parameter of `main`. */
const OTHER_WAYS = /\bargs\b/;

/** What to say of an argument that `main` of the file `entry` does not read; undefined where it may read them all. */
export function unread(entry: string, main: unknown, input: unknown): string | undefined {
  const text = host.programFile(entry);
  if (typeof main !== 'function' || typeof input !== 'object' || input === null || Array.isArray(input)) return undefined;
  if (text === undefined || OTHER_WAYS.test(text)) return undefined;
  const read = keysRead(Function.prototype.toString.call(main));
  // A field that no argument gave, as one that a manifest has a default for, is nobody's mistake.
  const given = new Set(host.args().filter((one) => one.startsWith('-')).map(nameOf));
  // Of words without a name the command line warns itself.
  const key = read === undefined ? undefined : Object.keys(input).find((name) => !read.includes(name) && given.has(name));
  if (read === undefined || key === undefined) return undefined;
  const near = nearest(key, read);
  return `nothing in ${entry} reads the argument --${key}${near === undefined ? '' : `; did you mean --${near}?`}`;
}

/** The key that an argument with a name has in the input. */
function nameOf(argument: string): string {
  return argument.split('=')[0]!.replace(/^-+/, '').replaceAll('-', '_');
}
