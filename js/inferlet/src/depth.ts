/** How deep JSON of a program may nest: as deep as clients of every language can hold and give back. */

/**
 * Levels of lists and objects around a value.
 * @internal
 */
export const MAX_DEPTH = 500;

/**
 * Whether a compact JSON text nests deeper.
 * @internal
 */
export function nestsTooDeep(text: string): boolean {
  // Texts with too few brackets are not read: they are most of them.
  if (text.length <= 2 * MAX_DEPTH || count(text, '[') + count(text, '{') <= MAX_DEPTH) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text[at]) {
      case '"':
        at = endOfString(text, at);
        break;
      case '[':
      case '{':
        // An empty one is as deep as a number in its place.
        if (text[at + 1] === ']' || text[at + 1] === '}') at += 1;
        else depth += 1;
        if (depth > MAX_DEPTH) return true;
        break;
      case ']':
      case '}':
        depth -= 1;
        break;
    }
  }
  return false;
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}

/** The place of the quote that ends the string which begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let first = end;
    while (text[first - 1] === '\\') first -= 1;
    if ((end - first) % 2 === 0) return end;
  }
}
