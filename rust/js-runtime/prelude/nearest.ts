/** Which name was meant, and which line of a source a frame names. */

import * as host from 'pie:host';

export { nearest } from 'pie:inferlet/nearest.js';

/** A place in a source of the program. */
export interface Place {
  /** The whole source, and how many characters of it stand before the place. */
  readonly text: string;
  readonly offset: number;
  /** The line of the place. */
  readonly line: string;
}

/** The place that the innermost frame names; undefined where it is of no file of the program. */
export function inSource(frames: string): Place | undefined {
  const found = /([^\s()]+):(\d+):(\d+)\)?$/.exec(frames.split('\n')[0] ?? '');
  if (found === null) return undefined;
  const [, path, number, column] = found as unknown as [string, string, string, string];
  const text = host.programFile(path);
  const lines = text?.split('\n') ?? [];
  const line = lines[Number(number) - 1];
  if (text === undefined || line === undefined) return undefined;
  const before = lines.slice(0, Number(number) - 1).reduce((sum, one) => sum + one.length + 1, 0);
  // QuickJS counts the columns of the first line from 0 on, and those of the others from 1 on.
  return { text, line, offset: before + withinLine(line, Number(column) - (number === '1' ? 0 : 1)) };
}

/** Where so many bytes of UTF-8 of a line end: QuickJS counts those. */
function withinLine(line: string, nBytes: number): number {
  let [nCharacters, n] = [0, 0];
  for (const character of line) {
    if (n >= nBytes) break;
    const code = character.codePointAt(0)!;
    n += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4;
    nCharacters += character.length;
  }
  return nCharacters;
}
