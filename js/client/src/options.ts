/** Options by their names: one that there is not is refused with the nearest one, before anything is sent. */

import { isPlain, refused } from './checks.js';
import { PieError } from './errors.js';

/** Longer names are not compared. */
const MAX_LETTERS = 64;
/** Names that differ in more than a third of their letters are not alike. */
const LETTERS_PER_CHANGE = 3;

/** Every name that options of a type may have. */
export type Names<T> = { readonly [N in keyof T]-?: true };

/** The options of a method, none of which has another name than those that are known. */
export function known<T extends object>(callee: string, options: T, names: Names<T>): T {
  const all = Object.keys(names);
  if (!isPlain(options)) throw refused('options', options, `${callee}() an object with any of ${all.join(', ')}`);
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(names, name)) continue;
    const near = nearest(name, all);
    const remedy = near === undefined ? `its options are ${all.join(', ')}` : `did you mean ${near}?`;
    throw new PieError('invalid-argument', `${callee}() has no option ${JSON.stringify(name.slice(0, MAX_LETTERS))}; ${remedy}`, { argument: name });
  }
  return options;
}

/** The name that is most like another; undefined where none is like it. Snake case and camel case are one. */
function nearest(name: string, candidates: readonly string[]): string | undefined {
  const wanted = plain(name);
  if (wanted.length > MAX_LETTERS) return undefined;
  let best: string | undefined;
  let least = Math.max(1, Math.floor(wanted.length / LETTERS_PER_CHANGE)) + 1;
  for (const candidate of candidates) {
    const n = changes(wanted, plain(candidate));
    if (n < least) [best, least] = [candidate, n];
  }
  return best;
}

function plain(name: string): string {
  return name.replaceAll('_', '').toLowerCase();
}

/** How many letters have to be changed, added or left out (Levenshtein). */
function changes(one: string, other: string): number {
  let last = Array.from({ length: other.length + 1 }, (_, place) => place);
  for (const [i, letter] of [...one].entries()) {
    const row = [i + 1];
    for (const [j, opposite] of [...other].entries()) {
      row.push(Math.min(last[j + 1]! + 1, row[j]! + 1, last[j]! + (letter === opposite ? 0 : 1)));
    }
    last = row;
  }
  return last.at(-1)!;
}
