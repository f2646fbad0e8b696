/**
 * What is called at a place of a source, and what there is a promise that nothing awaited, as far as the words of the
 * source say.
 */

import type { Place } from './nearest.js';

/** More of a source around a place is not looked at. */
const MAX_CHARS = 2000;

/** A call as it stands in a source. */
export interface Callee {
  /** What stands before the last dot; undefined where there is none, with `..` in front where it is no plain name. */
  readonly owner: string | undefined;
  readonly name: string;
  /** Where it begins in the source. */
  readonly begin: number;
  /** Whether the place lies in it, and not only in its line. */
  readonly isNear: boolean;
}

const CALL = /([A-Za-z_$][\w$]*(?:\s*\??\.\s*[A-Za-z_$][\w$]*)*)\s*(?:\?\.)?\(/g;

const NO_CALLEES = new Set([
  'async', 'await', 'case', 'catch', 'delete', 'do', 'else', 'for', 'function', 'if', 'in', 'instanceof', 'new', 'of', 'return', 'super',
  'switch', 'throw', 'typeof', 'void', 'while', 'with', 'yield',
]);

/**
 * What is called at a place, the likeliest first. QuickJS names the last name that was read before a call, which stands
 * between the parentheses of the call, or else the name of the function itself.
 */
export function callees({ text, line, offset }: Place): Callee[] {
  const first = Math.max(0, offset - MAX_CHARS);
  const around = openAround(text, offset);
  const lineBegin = text.lastIndexOf('\n', offset - 1) + 1;
  const found = [...text.slice(first, offset + MAX_CHARS).matchAll(CALL)].map((match) => {
    const begin = first + match.index;
    const open = begin + match[0]!.length - 1;
    const isNamed = begin <= offset && offset <= open;
    const depth = around.indexOf(open);
    const isNear = isNamed || depth >= 0;
    const distance = offset < begin ? begin - offset : offset - open;
    return { whole: match[1]!, begin, isNear, order: isNamed ? -1 : isNear ? depth : around.length + distance };
  });
  const inLine = found.filter(({ begin, isNear }) => isNear || (begin >= lineBegin && begin <= lineBegin + line.length));
  return inLine.toSorted((one, other) => one.order - other.order).flatMap(({ whole, begin, isNear }) => {
    const parts = whole.split('.').map((part) => part.replace('?', '').trim());
    const name = parts.pop()!;
    if (parts.length === 0 && NO_CALLEES.has(name)) return [];
    const follows = /\.\s*$/.test(text.slice(Math.max(0, begin - MAX_CHARS), begin));
    const owner = [...(follows ? ['..'] : []), ...parts].join('.');
    return [{ owner: owner === '' ? undefined : owner, name, begin, isNear }];
  });
}

/** Where the parentheses open that are open at an offset within one function, the innermost first. */
function openAround(text: string, offset: number): number[] {
  const found: number[] = [];
  const first = Math.max(0, offset - MAX_CHARS);
  let nClosed = 0;
  for (let at = offset - 1; at >= first; at--) {
    const character = text[at]!;
    if (`'"\``.includes(character)) {
      at = at === 0 ? -1 : text.lastIndexOf(character, at - 1);
    } else if (')]}'.includes(character)) {
      nClosed++;
    } else if ('([{'.includes(character)) {
      if (nClosed > 0) nClosed--;
      else if (character === '(') found.push(at);
      else if (text.slice(at - 1, at + 1) === '${') at = text.lastIndexOf('`', at);
      else if (character === '{' && /(?:=>|[);{}]|\b(?:do|else|finally|try))\s*$/.test(text.slice(first, at))) break;
    }
  }
  return found;
}

/** Functions of the SDK and of the Web that give promises, by their last names. */
const GIVE_PROMISES = /^(?:\w+Async|arrayBuffer|ask|blob|bytes|collect[A-Z]\w*|execute|fetch|flush|formData|json|pull|receive\w*|text|wait)$/;

/** Functions of classes with such a name that give what they make at once. */
const GIVE_AT_ONCE = /^[A-Z]\w*\.json$/;

/** Whether a function gives a promise: one of the SDK, or one that the source declares so. */
function givesPromise(name: string, text: string): boolean {
  if (GIVE_PROMISES.test(name)) return true;
  const word = escaped(name);
  return new RegExp(`\\basync\\s+function\\s+${word}\\b|\\b${word}\\s*=\\s*async\\b`).test(text);
}

/** The function that gave what a name before the offset holds, or what stands before the dot there, unawaited. */
export function giverOf(owner: string, begin: number, text: string): string | undefined {
  const before = text.slice(Math.max(0, begin - MAX_CHARS), begin);
  if (owner === '..') {
    const end = /\)\s*(?:\??\.)?\s*$/.exec(before);
    const open = end === null ? undefined : openAround(text, begin - before.length + end.index)[0];
    return open === undefined ? undefined : giverAt(text.slice(Math.max(0, open - MAX_CHARS), open), text);
  }
  const made = valueOf(owner, begin, text);
  return made === undefined ? undefined : giverIn(text, made);
}

/** Whether what a name before the offset holds is certainly not a promise. */
export function isPlain(owner: string, begin: number, text: string): boolean {
  const made = valueOf(owner, begin, text);
  return made !== undefined && /^(?:await\b|new\b|[[{'"`\d])/.test(text.slice(made));
}

/** Where the value begins that a name before the offset is declared with. */
function valueOf(name: string, begin: number, text: string): number | undefined {
  if (!/^[\w$]+$/.test(name)) return undefined;
  const declaration = new RegExp(`\\b(?:const|let|var)\\s+${escaped(name)}\\s*(?::[^=;\\n]*)?=\\s*`, 'g');
  const made = [...text.slice(0, begin).matchAll(declaration)].at(-1);
  return made === undefined ? undefined : made.index + made[0]!.length;
}

/** The function whose promise an expression is that begins at an offset. */
export function giverIn(text: string, begin: number): string | undefined {
  const expression = expressionAt(text, begin).trimEnd();
  if (/^(?:await|new)\b/.test(expression) || !expression.endsWith(')')) return undefined;
  const open = openAround(expression, expression.length - 1)[0];
  return open === undefined ? undefined : giverAt(expression.slice(0, open), text);
}

/** The function at the end of a text, where it gives a promise: with what stands before its dots, if that is plain. */
function giverAt(text: string, source: string): string | undefined {
  const whole = /([\w$]+(?:\.[\w$]+)*)(?:<[^()]*>)?\s*$/.exec(text)?.[1];
  if (whole === undefined || GIVE_AT_ONCE.test(whole)) return undefined;
  return givesPromise(whole.split('.').at(-1)!, source) ? whole : undefined;
}

/** An expression from its beginning on, to where it ends outside of all brackets. */
function expressionAt(text: string, begin: number): string {
  let nOpen = 0;
  const last = Math.min(text.length, begin + MAX_CHARS);
  for (let at = begin; at < last; at++) {
    const character = text[at]!;
    if (`'"\``.includes(character)) {
      const end = text.indexOf(character, at + 1);
      if (end < 0) return '';
      at = end;
    } else if ('([{'.includes(character)) {
      nOpen++;
    } else if (')]}'.includes(character)) {
      if (nOpen === 0) return text.slice(begin, at);
      nOpen--;
    } else if (nOpen === 0 && (';,'.includes(character) || (character === '\n' && !/^\s*[.?]/.test(text.slice(at, last))))) {
      return text.slice(begin, at);
    }
  }
  return text.slice(begin, last);
}

/** Whether a source declares or imports a function of a name, as far as its words say. */
export function declares(name: string, text: string): boolean {
  const word = escaped(name);
  return new RegExp(`\\bfunction\\s*\\*?\\s*${word}\\b|\\b${word}\\s*=\\s*(?:async\\b|function\\b|\\(|[\\w$]+\\s*=>)|\\bimport\\b[^;'"]*\\b${word}\\b`).test(text);
}

/** A name in a regular expression. */
export function escaped(name: string): string {
  return name.replaceAll('$', '\\$');
}
