/** What the runtime needs of JavaScript to run a program: its globals, its answer, its failure. */

import './globals.js';
import * as host from 'pie:host';
import { ERROR_CODES } from 'pie:inferlet/error-codes.js';
import { printable, tellBy } from 'pie:inferlet/failures.js';
import { toJson } from 'pie:inferlet/json.js';
import { ownLines } from './stacks.js';

/** How a program failed, as the engine reports it. */
interface FailureRecord {
  readonly kind: string;
  readonly message: string;
  readonly code: string | undefined;
  /**
   * The program's own frames, below a first line like `TypeError: message`; empty where nothing was thrown by the
   * program's code.
   */
  readonly traceback: string;
}

/** The JSON text of what `main` answered. */
export function toAnswer(value: unknown): string {
  return toJson(value, 'the value that main returned', 'invalid-output');
}

/** A function of one parameter that is a plain name: the name, and what it is without an argument. */
const LONE_PARAMETER =
  /^(?:async\b\s*)?(?:function\b\s*[\w$]*\s*)?\(?\s*([A-Za-z_$][\w$]*)\s*(?:=(?!>)\s*('[^'\n]*'|"[^"\n]*"|-?\d[\w.]*|true\b|false\b))?\s*(?:[,)]|=)/;

/** Characters of an input that a warning shows. */
const MAX_SHOWN_CHARS = 60;

/** What the engine called, by which a failure is explained. */
let called: { readonly entry: string; readonly main: unknown; readonly input: unknown } | undefined;

/**
 * What to say of a `main` whose one parameter gets the whole input, and seems to want a part of it; undefined where
 * there is nothing to say. Where `main` seems to put such an input into a text, it is told of that when it does.
 */
export function doubt(entry: string, main: unknown, input: unknown): string | undefined {
  called = { entry, main, input };
  if (typeof main !== 'function' || typeof input !== 'object' || input === null || Array.isArray(input)) return undefined;
  const source = Function.prototype.toString.call(main);
  const found = LONE_PARAMETER.exec(source);
  if (found === null) return undefined;
  const [, name, value] = found as unknown as [string, string, string | undefined];
  const remedy = `take its parts by name, as in \`main({ ${value === undefined ? name : `${name} = ${value}`} })\``;
  const reason =
    value !== undefined
      ? `the default of \`${name}\` is never used`
      : isKey(name, input) && !readsPart(name, source)
        ? `\`${name}\` is one of its keys`
        : undefined;
  if (reason !== undefined) return `main in ${entry} has one parameter, which gets the whole input, ${shown(input)}, and ${reason}; ${remedy}`;
  if (putsIntoTexts(name, source)) tellOfTexts(input, entry, remedy);
  return undefined;
}

function shown(input: object): string {
  const text = printable(input);
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text;
}

/** Whether a parameter is called as a key. Words without a name are the key `input`, as many a parameter is called. */
function isKey(name: string, input: object): boolean {
  return name !== 'input' && Object.hasOwn(input, name);
}

/** Whether a function reads the part of a parameter that is called as the parameter is. */
function readsPart(name: string, source: string): boolean {
  const uses = host.importNow('pie:runtime/parameter-uses.js') as { readsPart: (name: string, source: string) => boolean };
  return uses.readsPart(name, source);
}

/** What makes a text, a number or a comparison of what stands beside it. */
const OPERATOR = String.raw`(?:[-+*/%<]|(?<!=)>)`;

/**
 * Whether a function seems to put a parameter into a text, a sum or a comparison. No other input is changed to tell of
 * it: a library that checks one may look at every property that it has.
 */
function putsIntoTexts(name: string, source: string): boolean {
  const word = name.replaceAll('$', '\\$');
  const behind = `(?:\\$\\{|\\bString\\(|${OPERATOR}=?)\\s*${word}(?![\\w$]|\\s*(?:\\??\\.|\\[|\\())`;
  return new RegExp(`${behind}|(?<![\\w$.])${word}\\s*${OPERATOR}`).test(source);
}

/** Has an input tell of it, once, where it is put into a text: `[object Object]` is never meant. */
function tellOfTexts(input: object, entry: string, remedy: string): void {
  let isTold = false;
  const value = (hint: string): string | number => {
    if (!isTold) {
      isTold = true;
      const place = /([^\s()]+:\d+:\d+)\)?$/.exec(ownFrames(new Error()).split('\n')[0] ?? '')?.[1];
      const happened = `the whole input, ${shown(input)}, was put into a text, a sum or a comparison`;
      const told = `${happened}${place === undefined ? '' : ` (${place})`}: main in ${entry} gets it as one object; ${remedy}`;
      host.write('stderr', `warning: ${told}\n`.toWellFormed());
    }
    return hint === 'number' ? NaN : '[object Object]';
  };
  Object.defineProperty(input, Symbol.toPrimitive, { value, writable: true, configurable: true });
}

/** Describes what a program threw. */
export function describe(thrown: unknown): FailureRecord {
  if (!isError(thrown)) return describeOther(thrown);
  const kind = kindOf(thrown);
  const code = codeOf(thrown);
  const frames = ownFrames(thrown);
  const place = code === 'invalid-program' && thrown instanceof SyntaxError ? /at (.+:\d+:\d+)/.exec(frames)?.[1] : undefined;
  const note = code === 'limit-stack' && thrown instanceof RangeError ? STACK_NOTE : place === undefined ? '' : ` (${place})`;
  const said = explained(thrown, frames) ?? messageOf(thrown);
  return { kind, message: said + note, code, traceback: traceback(thrown, 0, said) };
}

/** Whether something is an Error. A Proxy may refuse to be asked. */
function isError(thrown: unknown): thrown is Error {
  try {
    return thrown instanceof Error;
  } catch {
    return false;
  }
}

let others: { told: (thrown: unknown) => string } | undefined;

/** Describes what a program threw that is not an Error, and so has neither a message nor, most often, a stack. */
function describeOther(thrown: unknown): FailureRecord {
  others ??= host.importNow('pie:runtime/thrown.js') as { told: (thrown: unknown) => string };
  const message = others.told(thrown).toWellFormed();
  return { kind: 'Error', message, code: undefined, traceback: `Error: ${message}\n${framesOf(thrown)}` };
}

/** The frames of something that is not an Error; none where it has no stack. */
function framesOf(thrown: unknown): string {
  try {
    const isObject = typeof thrown === 'object' && thrown !== null;
    return isObject && typeof (thrown as Error).stack === 'string' ? ownFrames(thrown as Error) : '';
  } catch {
    return ''; // a getter or a Proxy may refuse to be asked
  }
}

tellBy((thrown) => describe(thrown).traceback);

let hints: { explained: (message: string, frames: string) => string | undefined } | undefined;

/** Words of QuickJS for something that is not there and was to be taken apart. */
const NOT_THERE = /^cannot convert undefined or null to object$|is not iterable$|Symbol\.iterator/i;

/** What `main` takes apart that its input lacks, where an error may be of that. */
function lackedPart(message: string): string | undefined {
  if (called === undefined || !NOT_THERE.test(message)) return undefined;
  const parts = host.importNow('pie:runtime/taken-apart.js') as { lacked: (entry: string, main: unknown, input: unknown) => string | undefined };
  return parts.lacked(called.entry, called.main, called.input);
}

/** The message of an error of the language with what to do about it; undefined where its own says enough. */
function explained(error: Error, frames: string): string | undefined {
  if (!(error instanceof TypeError || error instanceof ReferenceError || error instanceof SyntaxError)) return undefined;
  try {
    hints ??= host.importNow('pie:runtime/hints.js') as { explained: (message: string, frames: string) => string | undefined };
    const message = String(error.message);
    return lackedPart(message) ?? hints.explained(message, frames);
  } catch {
    return undefined; // the program may have changed what this stands on, and its own error comes first
  }
}

/**
 * What QuickJS leaves out: how much it was, and what to do. The runtime sets the size (`STACK_BYTES` in `program.rs`).
 */
const STACK_NOTE = ': JavaScript has 256 KiB of stack, whatever engine.stack_bytes is; recurse less deeply, or use a loop';

/** Causes of causes beyond this depth are left out; a cause may contain itself. */
const MAX_CAUSES = 8;

function traceback(error: Error, depth: number, message: string): string {
  const text = `${kindOf(error)}: ${message}\n${ownFrames(error)}`;
  const { cause } = error;
  if (depth < MAX_CAUSES && cause instanceof Error) return `${text}caused by ${traceback(cause, depth + 1, messageOf(cause))}`;
  if (error instanceof AggregateError) return text + error.errors.map((inner) => `- ${inner}\n`).join('');
  return text;
}

/** The message of an error, with the SDK called by the name under which programs import it. */
function messageOf(error: Error): string {
  return String(error.message).replaceAll('pie:inferlet/index.js', 'inferlet').toWellFormed();
}

/** The class of an error; its name where that says more than the class. */
function kindOf(error: Error): string {
  const kind = error.constructor?.name ?? '';
  return ['', 'Error', 'DOMException'].includes(kind) ? String(error.name) : kind;
}

/** The code of an error of the engine, and of what the engine would have reported with one. */
function codeOf(error: Error): string | undefined {
  if ('code' in error && (ERROR_CODES as readonly unknown[]).includes(error.code)) return String(error.code);
  if ('syscall' in error && error.cause instanceof Error) return codeOf(error.cause);
  if (error instanceof RangeError && error.message.startsWith('Maximum call stack size')) return 'limit-stack';
  if (error.name === 'InternalError' && error.message === 'out of memory') return 'limit-memory';
  if (error instanceof SyntaxError && error.message.startsWith('Could not find export')) return 'invalid-program';
  return undefined;
}

let sourceMaps: { mapped: (frames: readonly string[]) => string[] } | undefined;

/** The frames of the program's own files, by the source map of a bundle those of what was bundled. */
export function ownFrames(error: Error): string {
  const own = ownLines(error);
  if (own.length === 0) return '';
  sourceMaps ??= host.importNow('pie:runtime/source-map.js') as { mapped: (frames: readonly string[]) => string[] };
  return sourceMaps.mapped(own).map((line) => `${line}\n`).join('');
}
