/**
 * What the runtime lends beside the engine, of which `host.d.ts` speaks: `rust/js-runtime/src/bridge/mod.rs` lists it.
 * Only the SDK and the runtime's own modules can import it; programs use the SDK.
 */
declare module 'pie:host' {
  /** Receives the answer of something that waits: an error, or a value. */
  export type Settle<T> = (error: Error | undefined, value: T) => void;

  /**
   * What a promise of the SDK holds of its wait, which is cancelled when its race is lost and nobody else could ask for
   * it.
   */
  export interface Wait {
    /** Somebody waits for the answer. */
    subscribe(): void;
    /** A race for the answer is over. */
    unsubscribe(): void;
    /** Blocks the whole program until the answer is there, and calls back with it. */
    block(): void;
  }

  /** Registers how exceptions are made of the engine's errors; `details` is a JSON object. */
  export function registerErrors(make: (code: string, message: string, details: string) => Error): void;

  /** Returns the timer's number. */
  export function startTimer(callback: () => void, delayMs: number, repeat: boolean): number;
  export function stopTimer(id: number): void;
  export function elapsedMs(): number;
  export function randomBytes(nBytes: number): Uint8Array;
  /** In [0, 1). */
  export function randomUnit(): number;
  export function write(stream: 'stdout' | 'stderr', text: string): void;
  export function encodeUtf8(text: string): Uint8Array;
  /** `[text, bytes left at the end]`, or with `fatal` undefined where the bytes are not UTF-8. */
  export function decodeUtf8(bytes: Uint8Array, fatal: boolean, more: boolean): [string, number] | undefined;
  /** Loads a module of the runtime at its first use. */
  export function importNow(name: string): unknown;
  /** The text of a file of the program; undefined where there is none, or where it is not UTF-8. */
  export function programFile(path: string): string | undefined;

  /** The paths of the files of the program, sorted. */
  export function programPaths(): string[];

  /** The parts of an address, as `URL` shows them. */
  export interface UrlParts {
    readonly href: string;
    readonly origin: string;
    readonly protocol: string;
    readonly username: string;
    readonly password: string;
    readonly host: string;
    readonly hostname: string;
    readonly port: string;
    readonly pathname: string;
    readonly search: string;
    readonly hash: string;
  }

  /** The parts of an address by the rules of the WHATWG; undefined where it is not one. */
  export function parseUrl(text: string, base: string | undefined): UrlParts | undefined;
  /** The parts of an address with another value of one; undefined where the value does not fit. */
  export function changeUrl(href: string, part: Exclude<keyof UrlParts, 'href' | 'origin'>, value: string): UrlParts | undefined;
  /** The names and values of `application/x-www-form-urlencoded`. */
  export function parseForm(text: string): [string, string][];
  export function writeForm(pairs: readonly (readonly [string, string])[]): string;
  /** A text of bytes as base64; undefined where a character is beyond U+00FF. */
  export function encodeBase64(text: string): string | undefined;
  /** The text of bytes that base64 holds; undefined where it is damaged. */
  export function decodeBase64(text: string): string | undefined;
  /** By `SHA-1`, `SHA-256`, `SHA-384` or `SHA-512`; undefined for another algorithm. */
  export function digest(algorithm: string, bytes: Uint8Array): Uint8Array | undefined;

  /** What is at a path. */
  export interface PathStat {
    readonly kind: 'file' | 'folder' | 'link' | 'other';
    readonly size: number;
    readonly links: number;
    readonly accessedMs: number;
    readonly modifiedMs: number;
    readonly changedMs: number;
  }

  /** A file or folder that is open. What fails throws an error whose message is the name of its code. */
  export interface OpenFile {
    read(nBytes: number, position: number): Uint8Array;
    write(bytes: Uint8Array, position: number): void;
    setSize(nBytes: number): void;
    sync(): void;
    stat(): PathStat;
    entries(): [string, PathStat['kind']][];
    close(): void;
  }

  /** `flags` are letters: read, write, create, exclusive (x), truncate, directory. */
  export function openFile(path: string, flags: string): OpenFile;
  export function statPath(path: string, follow: boolean): PathStat;
  export function makeFolder(path: string): void;
  export function removeFolder(path: string): void;
  export function removeFile(path: string): void;
  export function readLink(path: string): string;
  export function makeLink(target: string, path: string): void;
  export function renamePath(old: string, path: string): void;
}
