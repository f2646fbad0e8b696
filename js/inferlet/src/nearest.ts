/** Which name was meant by one that there is not. */

/** Names that differ in more than a third of their letters are not alike. */
const LETTERS_PER_CHANGE = 3;
/** Shorter names are all alike, and longer ones are not compared. */
const MIN_LETTERS = 3;
const MAX_LETTERS = 64;

/**
 * The name among `candidates` that is most like `name`; undefined where none is like it.
 * @internal
 */
export function nearest(name: string, candidates: readonly string[]): string | undefined {
  const wanted = plain(name);
  if (wanted.length < MIN_LETTERS || wanted.length > MAX_LETTERS) return undefined;
  let [best, least] = [undefined as string | undefined, Math.max(1, Math.floor(wanted.length / LETTERS_PER_CHANGE)) + 1];
  for (const candidate of candidates) {
    if (candidate === name || candidate.length > MAX_LETTERS) continue;
    const n = changes(wanted, plain(candidate));
    if (n < least) [best, least] = [candidate, n];
  }
  return best;
}

/** Snake case and camel case are one. */
function plain(name: string): string {
  return name.replaceAll('_', '').toLowerCase();
}

/** How many letters have to be changed, added, left out or swapped with their neighbour (optimal string alignment). */
function changes(one: string, other: string): number {
  let [before, last] = [[] as number[], Array.from({ length: other.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      let n = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) n = Math.min(n, before[j - 2]! + 1);
      row.push(n);
    }
    [before, last] = [last, row];
  }
  return last[other.length]!;
}
