/** Where the frames of a bundled program come from, by the source map that was built with it (ECMA-426). */

import * as host from 'pie:host';

/** A larger map is not read: a failure is told at once, with the places in the bundle. */
const MAX_MAP_CHARS = 16 << 20;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const VALUES = new Map(Array.from(LETTERS, (letter, value) => [letter.charCodeAt(0), value]));
const SEMICOLON = 0x3b;
const COMMA = 0x2c;

interface SourceMap {
  readonly sourceRoot?: string;
  readonly sources: readonly string[];
  readonly mappings: string;
}

/** Something that was made of a place: its column, and the index, line and column of its source, all from 0. */
interface Segment {
  readonly column: number;
  readonly source: number;
  readonly sourceLine: number;
  readonly sourceColumn: number;
}

/** Frames, each a line that ends with `file:line:column`, with the places of the sources where a map has them. */
export function mapped(frames: readonly string[]): string[] {
  const maps = new Map<string, SourceMap | undefined>();
  return frames.map((frame) => {
    const found = /^(.*[( ])([^( ]+):(\d+):(\d+)(\)?)$/.exec(frame);
    if (found === null) return frame;
    const [, head, file, line, column, tail] = found as unknown as [string, string, string, string, string, string];
    if (!maps.has(file)) maps.set(file, mapOf(file));
    const map = maps.get(file);
    const place = map === undefined ? undefined : placeOf(map, Number(line) - 1, Number(column) - 1);
    return place === undefined ? frame : `${head}${joined(file, place)}${tail}`;
  });
}

/** The map that lies beside a file of the program; undefined where there is none that can be read. */
function mapOf(file: string): SourceMap | undefined {
  const text = host.programFile(`${file}.map`);
  if (text === undefined || text.length > MAX_MAP_CHARS) return undefined;
  try {
    const map = JSON.parse(text) as Partial<SourceMap> | null;
    const isMap = map !== null && typeof map.mappings === 'string' && Array.isArray(map.sources);
    return isMap ? (map as SourceMap) : undefined;
  } catch {
    return undefined; // it is a file of the program's own that happens to have this name
  }
}

/** A path that is written from where the map lies, from the folder of the program on. */
function joined(file: string, path: string): string {
  const parts = file.split('/').slice(0, -1);
  for (const part of path.split('/')) {
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return parts.join('/');
}

function placeOf({ sourceRoot, sources, mappings }: SourceMap, line: number, column: number): string | undefined {
  const segment = segmentsOf(mappings, line).findLast((candidate) => candidate.column <= column);
  const source = segment === undefined ? undefined : sources[segment.source];
  if (segment === undefined || typeof source !== 'string') return undefined;
  const root = typeof sourceRoot === 'string' ? `${sourceRoot}/` : '';
  return `${root}${source}:${segment.sourceLine + 1}:${segment.sourceColumn + 1}`;
}

/**
 * The segments of a line. Each number is the difference to the one before it, which for all but the column may stand in
 * a line above: everything in front is read.
 */
function segmentsOf(mappings: string, wanted: number): Segment[] {
  const segments: Segment[] = [];
  let [line, column, source, sourceLine, sourceColumn] = [0, 0, 0, 0, 0];
  let at = 0;
  const numbers: number[] = [];
  while (at < mappings.length && line <= wanted) {
    numbers.length = 0;
    while (at < mappings.length && mappings.charCodeAt(at) !== COMMA && mappings.charCodeAt(at) !== SEMICOLON) {
      let [value, shift] = [0, 0];
      for (let digit = 32; (digit & 32) !== 0 && at < mappings.length; at++) {
        digit = VALUES.get(mappings.charCodeAt(at)) ?? 0;
        value += (digit & 31) * 2 ** shift;
        shift += 5;
      }
      numbers.push(value % 2 === 1 ? -Math.floor(value / 2) : value / 2);
    }
    column += numbers[0] ?? 0;
    if (numbers.length >= 4) {
      source += numbers[1]!;
      sourceLine += numbers[2]!;
      sourceColumn += numbers[3]!;
      if (line === wanted) segments.push({ column, source, sourceLine, sourceColumn });
    }
    if (mappings.charCodeAt(at) === SEMICOLON) {
      line++;
      column = 0;
    }
    at++;
  }
  return segments;
}
