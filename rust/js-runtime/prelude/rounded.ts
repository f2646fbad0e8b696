/** Which whole numbers of an input JavaScript does not hold. Loaded where an input has a long number. */

/** Characters of a number or a key that a warning shows. */
const MAX_SHOWN_CHARS = 40;

/** What to say of the first whole number of a JSON text that JavaScript changes; undefined where it changes none. */
export function rounded(text: string): string | undefined {
  const signs = /["\d{}[\]]/g;
  const number = /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
  /** The keys under which what is open stands, from the outside in. */
  const outer: (string | undefined)[] = [];
  let key: string | undefined;
  for (let sign = signs.exec(text); sign !== null; sign = signs.exec(text)) {
    const at = sign.index;
    const found = sign[0]!;
    let end = at + 1;
    if (found === '"') {
      end = endOfText(text, at);
      if (isKey(text, end)) key = JSON.parse(text.slice(at, end)) as string;
    } else if (found === '{' || found === '[') {
      outer.push(key);
    } else if (found === '}' || found === ']') {
      key = outer.pop();
    } else {
      number.lastIndex = at;
      const digits = number.exec(text)![0]!;
      end = at + digits.length;
      if (isChanged(digits)) return told(`${text[at - 1] === '-' ? '-' : ''}${digits}`, key);
    }
    signs.lastIndex = end;
  }
  return undefined;
}

/** Whether a number is whole, and another one once it is read. */
function isChanged(digits: string): boolean {
  return /^\d+$/.test(digits) && !Number.isSafeInteger(Number(digits)) && String(Number(digits)) !== digits;
}

function told(number: string, key: string | undefined): string {
  const place = key === undefined ? '' : ` at the key '${shown(key)}'`;
  const becomes = `the input has ${shown(number)}${place}, which becomes ${Number(number)}`;
  return `${becomes}: JavaScript holds whole numbers up to ${Number.MAX_SAFE_INTEGER}; give it as a text, as in "${shown(number)}"`;
}

function shown(text: string): string {
  return (text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text).toWellFormed();
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

/** Whether the text that ends at `end` is a key. */
function isKey(text: string, end: number): boolean {
  const colon = /\s*:/y;
  colon.lastIndex = end;
  return colon.test(text);
}
