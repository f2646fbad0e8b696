/** What `main` takes apart that its input lacks. Loaded where a program fails for something that is not there. */

/** Where the pattern of the one parameter begins, in the source of a function. */
const HEAD = /^(?:async\b\s*)?(?:function\b\s*\*?\s*[\w$]*\s*)?\(\s*\{/;

/** A part of a pattern that is a pattern in turn. */
const NESTED = /^\s*(?:([\w$]+)|'([^'\\]*)'|"([^"\\]*)")\s*:\s*(?=[{[])/;

/** Characters of a pattern, and keys of an input, that a message shows. */
const MAX_SHOWN_CHARS = 60;
const MAX_SHOWN_KEYS = 10;

/** What to say where `main` of the file `entry` takes apart what its input lacks; undefined where it lacks nothing. */
export function lacked(entry: string, main: unknown, input: unknown): string | undefined {
  const source = Function.prototype.toString.call(main);
  const head = HEAD.exec(source)?.[0];
  if (head === undefined) return undefined;
  if (input === null) return `the input is null, and main in ${entry} takes it apart; give an object`;
  const given = Object(input) as Record<string, unknown>;
  for (const part of partsOf(source, head.length)) {
    const found = NESTED.exec(part);
    if (found === null) continue;
    const key = (found[1] ?? found[2] ?? found[3])!;
    const begin = found[0]!.length;
    const end = endOf(part, begin);
    if (given[key] === null) return `'${key}' of the input is null, and main in ${entry} takes it apart; give an object or a list`;
    // With a default behind it, nothing is lacking.
    if (given[key] !== undefined || /^\s*=/.test(part.slice(end))) continue;
    const keys = Object.keys(given).slice(0, MAX_SHOWN_KEYS);
    const had = keys.length === 0 ? 'it is empty' : `it has ${keys.map((one) => `'${one}'`).join(', ')}`;
    return `the input lacks '${key}', which main in ${entry} takes apart; ${had}. Give it, or write a default: ${withDefault(part.slice(0, begin).trim(), part.slice(begin, end))}`;
  }
  return undefined;
}

function withDefault(name: string, pattern: string): string {
  const isList = pattern.startsWith('[');
  const isShort = pattern.length <= MAX_SHOWN_CHARS && !pattern.includes('\n');
  const shown = isShort ? pattern : isList ? '[...]' : '{ ... }';
  return `\`main({ ${name} ${shown} = ${isList ? '[]' : '{}'} })\``;
}

/** The parts of the pattern whose inside begins at an offset, as they stand in a source. */
function partsOf(source: string, begin: number): string[] {
  const parts: string[] = [];
  for (let at = begin; at < source.length; ) {
    const end = endOfPart(source, at);
    parts.push(source.slice(at, end));
    if (source[end] !== ',') break;
    at = end + 1;
  }
  return parts;
}

/** Where a part of a pattern ends: at a comma or the brace behind it. */
function endOfPart(source: string, begin: number): number {
  let at = begin;
  while (at < source.length && !',}'.includes(source[at]!)) at = endOf(source, at);
  return at;
}

/** Where what begins at an offset ends: a text, something in brackets with all that stands in them, or one sign. */
function endOf(source: string, begin: number): number {
  const sign = source[begin]!;
  if ('\'"`'.includes(sign)) {
    let at = begin + 1;
    while (at < source.length && source[at] !== sign) at += source[at] === '\\' ? 2 : 1;
    return at + 1;
  }
  if (!'([{'.includes(sign)) return begin + 1;
  let at = begin + 1;
  while (at < source.length && !')]}'.includes(source[at]!)) at = endOf(source, at);
  return at + 1;
}
