/** JSON whose whole numbers keep all of their digits: `JSON.parse` rounds those beyond 2^53. */

/** More would hold up a browser for minutes: the time grows faster than the digits. */
const MAX_DIGITS = 4300;

/**
 * As `JSON.parse`, but whole numbers beyond 2^53 - 1 are bigints. Throws as `JSON.parse` does, and a `RangeError` for
 * one of more than 4300 digits.
 */
export function parseExactly(text: string): unknown {
  const rounded: unknown = JSON.parse(text);
  // A number beyond has 16 digits or more.
  if (!/\d{16}/.test(text)) return rounded;
  const marked = mark(text);
  return marked === null ? rounded : JSON.parse(marked, (_, value: unknown) => (typeof value === 'string' ? restored(value) : value));
}

/**
 * A text that is JSON, with each wide number as the text `n` and its digits, and with an `s` before each other text;
 * keys are left alone. Null where there is no wide number.
 */
function mark(text: string): string | null {
  const starts = /["\d]/g;
  const number = /\d+(\.\d+)?([eE][+-]?\d+)?/y;
  const pieces: string[] = [];
  let kept = 0;
  let isWide = false;
  for (let start = starts.exec(text); start !== null; start = starts.exec(text)) {
    const at = start.index;
    let end: number;
    if (start[0] === '"') {
      end = endOfText(text, at);
      if (!isKey(text, end)) {
        pieces.push(text.slice(kept, at + 1), 's');
        kept = at + 1;
      }
    } else {
      number.lastIndex = at;
      const found = number.exec(text);
      const digits = found?.[0] ?? '';
      end = at + Math.max(digits.length, 1);
      if (found?.[1] === undefined && found?.[2] === undefined && !Number.isSafeInteger(Number(digits))) {
        if (digits.length > MAX_DIGITS) throw new RangeError(`a whole number of ${digits.length} digits; ${MAX_DIGITS} are read at most`);
        const begin = text[at - 1] === '-' ? at - 1 : at;
        pieces.push(text.slice(kept, begin), `"n${text.slice(begin, end)}"`);
        kept = end;
        isWide = true;
      }
    }
    starts.lastIndex = end;
  }
  return isWide ? pieces.join('') + text.slice(kept) : null;
}

/** Where the text ends that begins with the quote at `at`: behind its last quote. */
function endOfText(text: string, at: number): number {
  for (let quote = text.indexOf('"', at + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let first = quote;
    while (text[first - 1] === '\\') first -= 1;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return text.length;
}

/** Whether the text that ends at `end` is the name of a field. */
function isKey(text: string, end: number): boolean {
  const next = /[^ \t\r\n]/g;
  next.lastIndex = end;
  return next.exec(text)?.[0] === ':';
}

function restored(marked: string): unknown {
  return marked.startsWith('n') ? BigInt(marked.slice(1)) : marked.slice(1);
}
