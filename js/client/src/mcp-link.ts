/** What links of MCP servers have in common, and lines out of bytes that come in pieces. */

/** Links at once: at least as many as a server of Pie opens, and as many that are ending. */
export const MAX_LINKS = 1024;
// Lines that wait for a server that does not read: of one link, and their bytes of one link and of all.
const MAX_LINES = 1024;
const MAX_LINK_BYTES = 16 << 20;
const MAX_WAITING_BYTES = 64 << 20;
/** What is kept of a line that is too long: its beginning, which may tell whose it is. */
export const HEAD_BYTES = 4 << 10;

const INTERNAL_ERROR = -32603;
const ID = /"id"\s*:\s*(\d{1,20})/;
const NEWLINE = 10;

/** Sends what a server writes, line by line. */
export type Carry = (line: string) => Promise<void>;

/** A server that runs, for one link. */
export interface Running {
  /** Why it has ended. It never rejects. */
  readonly ended: Promise<string>;
  /** A line for the server. It never waits. */
  put(line: string): void;
  /** Ends the server, soon. */
  stop(): void;
}

/** What waits for the servers of one connection. */
export interface Waiting {
  /** Bytes of all lines that no server has read yet. */
  nBytes: number;
}

/** The lines that wait for one server, beside those of the other servers of its connection. */
export class Queue {
  readonly #all: Waiting;
  #nLines = 0;
  #nBytes = 0;
  #hasEnded = false;

  constructor(all: Waiting) {
    this.#all = all;
  }

  /** A further line waits. Answers which bound it would be beyond, and does not wait then; null where it waits. */
  enter(line: string): string | null {
    if (this.#nLines >= MAX_LINES) return `${MAX_LINES} lines wait, the most of one server at this client (limit-mcp-calls)`;
    const nBytes = bytesOf(line);
    const bounds: [number, number, string][] = [
      [this.#nBytes + nBytes, MAX_LINK_BYTES, 'one server'],
      [this.#all.nBytes + nBytes, MAX_WAITING_BYTES, 'all servers'],
    ];
    for (const [n, most, whose] of bounds) {
      if (n > most) return `${n} bytes would wait, of at most ${most} of ${whose} at this client (limit-mcp-bytes)`;
    }
    this.#count(1, nBytes);
    return null;
  }

  /** A line that waited was read. */
  leave(line: string): void {
    if (!this.#hasEnded) this.#count(-1, -bytesOf(line));
  }

  /** Nothing waits any more. */
  end(): void {
    this.#hasEnded = true;
    this.#count(-this.#nLines, -this.#nBytes);
  }

  #count(nLines: number, nBytes: number): void {
    this.#nLines += nLines;
    this.#nBytes += nBytes;
    this.#all.nBytes += nBytes;
  }
}

/** Bytes of a line with its end. */
function bytesOf(line: string): number {
  return new TextEncoder().encode(line).length + 1;
}

/** Why a server ends for which more waits than may. */
export function doesNotRead(bound: string): string {
  return `it does not read what it is sent: ${bound}`;
}

/** What stands for an answer that cannot be carried; `id` is JSON. */
export function tooLong(id: string, most: number): string {
  const message = `the answer is longer than the ${most} bytes that this client carries; ask for less`;
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code: INTERNAL_ERROR, message })}}`;
}

/** Messages out of what a process writes, which may be logs too. None is longer than `most` bytes. */
export class Lines {
  readonly #most: number;
  #parts: Uint8Array[] = [];
  #nBytes = 0;
  #isTooLong = false;

  constructor(most: number) {
    this.#most = most;
  }

  /** The messages that end in the next bytes. */
  *feed(piece: Uint8Array): Generator<string> {
    let begin = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, begin)) {
      this.#add(piece.subarray(begin, end));
      const message = this.#finish();
      if (message !== null) yield message;
      begin = end + 1;
    }
    this.#add(piece.subarray(begin));
  }

  #add(bytes: Uint8Array): void {
    if (this.#isTooLong) return;
    // A copy: the piece may be one of a buffer that is used again.
    this.#parts.push(bytes.slice());
    this.#nBytes += bytes.length;
    if (this.#nBytes <= this.#most) return;
    this.#isTooLong = true;
    this.#parts = [this.#joined().slice(0, HEAD_BYTES)];
    this.#nBytes = this.#parts[0]?.length ?? 0;
  }

  /** The message in the line that has ended; null where there is none. */
  #finish(): string | null {
    const [line, isTooLong] = [this.#joined(), this.#isTooLong];
    this.#parts = [];
    this.#nBytes = 0;
    this.#isTooLong = false;
    const text = decoded(line, isTooLong);
    if (text === null || !text.trimStart().startsWith('{')) return null;
    if (!isTooLong) return text;
    const id = ID.exec(text)?.[1];
    return id === undefined ? null : tooLong(id, this.#most);
  }

  #joined(): Uint8Array {
    const whole = new Uint8Array(this.#nBytes);
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }
}

/** A text; null for bytes that are not one. What is cut off may end within a character. */
function decoded(line: Uint8Array, isCut: boolean): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: !isCut }).decode(line);
  } catch {
    return null;
  }
}
