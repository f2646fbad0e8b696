/**
 * The globals of a program beside those of the language itself. Name them in `tsconfig.json`:
 * `"types": ["inferlet/globals"]`, with a `lib` of the language alone (`["ES2024", "ESNext.Disposable"]`), because the
 * types of browsers and of Node promise more.
 */

/** Calls back once, after `delay` milliseconds; answers the timer's number. */
declare function setTimeout<V extends unknown[]>(callback: (...values: V) => void, delay?: number, ...values: V): number;
/** So a promise can be waited with: `await new Promise((resolve) => setTimeout(resolve, 20))`. */
declare function setTimeout(callback: (_: void) => void, delay?: number): number;
/** Calls back again and again, every `delay` milliseconds; answers the timer's number. */
declare function setInterval<V extends unknown[]>(callback: (...values: V) => void, delay?: number, ...values: V): number;
/** The same for a function that takes one value, which may be left out. */
declare function setInterval(callback: (_: void) => void, delay?: number): number;
/** Gives a timer of `setTimeout` up. */
declare function clearTimeout(id: number | undefined): void;
/** Gives a timer of `setInterval` up. */
declare function clearInterval(id: number | undefined): void;
/** Calls back when what runs has run, before any timer. */
declare function queueMicrotask(callback: () => void): void;
/** A deep copy of data, cycles included. The buffers of `transfer` are taken away from what is copied. */
declare function structuredClone<T>(value: T, options?: { readonly transfer?: Iterable<ArrayBuffer> }): T;
/** A text of bytes (characters up to U+00FF) as base64. */
declare function btoa(text: string): string;
/** The text of bytes that base64 holds. */
declare function atob(text: string): string;

/**
 * `log`, `info`, `debug` and what has no other place write to stdout; `warn`, `error`, `trace` and `assert` to stderr.
 * A text in front is a format: `%s`, `%d`, `%i`, `%f`, `%j`, `%o`, `%O`, `%%`.
 */
declare const console: {
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  debug(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  trace(...values: unknown[]): void;
  dir(value: unknown): void;
  assert(condition: unknown, ...values: unknown[]): void;
  count(label?: string): void;
  countReset(label?: string): void;
  time(label?: string): void;
  timeLog(label?: string, ...values: unknown[]): void;
  timeEnd(label?: string): void;
  group(...values: unknown[]): void;
  groupCollapsed(...values: unknown[]): void;
  groupEnd(): void;
  table(rows: unknown, columns?: readonly string[]): void;
  clear(): void;
};

/** The time since the program began. */
declare const performance: {
  /** Milliseconds since the program began. */
  now(): number;
  readonly timeOrigin: number;
};

/** Random numbers are a stream from the launch seed, so that a launch can be repeated. */
declare const crypto: {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): string;
  readonly subtle: {
    /** By SHA-1, SHA-256, SHA-384 or SHA-512. */
    digest(algorithm: string | { readonly name: string }, data: ArrayBuffer | ArrayBufferView): Promise<ArrayBuffer>;
  };
};

/** Text to bytes in UTF-8. */
declare class TextEncoder {
  readonly encoding: string;
  encode(text?: string): Uint8Array;
  /** `read` is in UTF-16 units, `written` in bytes. */
  encodeInto(text: string, target: Uint8Array): { read: number; written: number };
}

/** Bytes in UTF-8 to text, whole or as a stream of parts. */
declare class TextDecoder {
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(input?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}

/** An error that is told by its name: `AbortError`, `TimeoutError`, `DataCloneError`. */
declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
}

/** How an event is made. */
interface EventInit {
  readonly bubbles?: boolean;
  readonly cancelable?: boolean;
  readonly composed?: boolean;
}

/** What is told to the listeners of an `EventTarget`. */
declare class Event {
  static readonly NONE: 0;
  static readonly CAPTURING_PHASE: 1;
  static readonly AT_TARGET: 2;
  static readonly BUBBLING_PHASE: 3;
  constructor(type: string, init?: EventInit);
  readonly type: string;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  /** Milliseconds since the program began. */
  readonly timeStamp: number;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly eventPhase: number;
  readonly defaultPrevented: boolean;
  readonly isTrusted: boolean;
  composedPath(): EventTarget[];
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
}

/** An event that carries a value, `detail`. */
declare class CustomEvent<T = unknown> extends Event {
  constructor(type: string, init?: EventInit & { readonly detail?: T });
  readonly detail: T | null;
}

/** Who is told of events: a function, or an object with the method `handleEvent`. */
type EventListener = ((event: Event) => void) | { handleEvent(event: Event): void };

/** How a listener listens. */
interface EventListenerOptions {
  readonly capture?: boolean;
  readonly once?: boolean;
  readonly passive?: boolean;
  /** Stops listening when it is aborted. */
  readonly signal?: AbortSignal;
}

/** What a listener throws ends the program as a rejection that nobody handled; the other listeners are called. */
declare class EventTarget {
  addEventListener(type: string, listener: EventListener | null, options?: boolean | EventListenerOptions): void;
  removeEventListener(type: string, listener: EventListener | null, options?: boolean | { readonly capture?: boolean }): void;
  dispatchEvent(event: Event): boolean;
}

/** Tells that work is to be given up; `fetch` takes one. */
declare class AbortSignal extends EventTarget {
  static abort(reason?: unknown): AbortSignal;
  static timeout(delayMs: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: unknown;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}

/** Aborts its `signal`. */
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}

/** Chunks that are read as they come. */
declare class ReadableStream<R = Uint8Array> implements AsyncIterable<R> {
  constructor(source?: {
    start?(controller: ReadableStreamController<R>): unknown;
    pull?(controller: ReadableStreamController<R>): unknown;
    cancel?(reason: unknown): unknown;
  });
  static from<R>(items: Iterable<R> | AsyncIterable<R>): ReadableStream<R>;
  readonly locked: boolean;
  getReader(): ReadableStreamReader<R>;
  cancel(reason?: unknown): Promise<void>;
  tee(): [ReadableStream<R>, ReadableStream<R>];
  values(options?: { preventCancel?: boolean }): AsyncGenerator<R, void, undefined>;
  [Symbol.asyncIterator](): AsyncGenerator<R, void, undefined>;
}

/** What the source of a stream hands its chunks to. */
declare interface ReadableStreamController<R> {
  readonly desiredSize: number | null;
  enqueue(chunk: R): void;
  close(): void;
  error(reason?: unknown): void;
}

/** Reads a stream chunk by chunk; nobody else reads it meanwhile. */
declare interface ReadableStreamReader<R> {
  readonly closed: Promise<undefined>;
  read(): Promise<{ readonly done: false; readonly value: R } | { readonly done: true; readonly value: undefined }>;
  cancel(reason?: unknown): Promise<void>;
  releaseLock(): void;
}

/** What a `Blob` is made of; text becomes UTF-8. */
type BlobPart = string | ArrayBuffer | ArrayBufferView | Blob;

/** The type of a `Blob`, and what becomes of the ends of lines in its text. */
interface BlobOptions {
  readonly type?: string;
  readonly endings?: 'transparent' | 'native';
}

/** Bytes with a type, in the memory of the program. */
declare class Blob {
  constructor(parts?: Iterable<BlobPart>, options?: BlobOptions);
  /** In bytes. */
  readonly size: number;
  readonly type: string;
  slice(start?: number, end?: number, type?: string): Blob;
  text(): Promise<string>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  stream(): ReadableStream;
}

/** A `Blob` with a name. It is in the memory of the program, not on a disk. */
declare class File extends Blob {
  constructor(parts: Iterable<BlobPart>, name: string, options?: BlobOptions & { readonly lastModified?: number });
  readonly name: string;
  readonly lastModified: number;
}

/** The value of a field of a form. */
type FormDataEntryValue = string | File;

/** The fields of a form. As a body it is `multipart/form-data`. */
declare class FormData implements Iterable<[string, FormDataEntryValue]> {
  append(name: string, value: string | Blob, filename?: string): void;
  set(name: string, value: string | Blob, filename?: string): void;
  get(name: string): FormDataEntryValue | null;
  getAll(name: string): FormDataEntryValue[];
  has(name: string): boolean;
  delete(name: string): void;
  forEach(callback: (value: FormDataEntryValue, name: string, form: FormData) => void, self?: unknown): void;
  entries(): Generator<[string, FormDataEntryValue], void, undefined>;
  keys(): Generator<string, void, undefined>;
  values(): Generator<FormDataEntryValue, void, undefined>;
  [Symbol.iterator](): Generator<[string, FormDataEntryValue], void, undefined>;
}

/** Names and values behind the `?` of an address, or of a form. */
declare class URLSearchParams implements Iterable<[string, string]> {
  constructor(init?: string | URLSearchParams | Iterable<readonly [string, string]> | Readonly<Record<string, string>>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(callback: (value: string, name: string, params: URLSearchParams) => void, self?: unknown): void;
  entries(): Generator<[string, string], void, undefined>;
  keys(): Generator<string, void, undefined>;
  values(): Generator<string, void, undefined>;
  [Symbol.iterator](): Generator<[string, string], void, undefined>;
  toString(): string;
}

/** An address, by the rules of the WHATWG. */
declare class URL {
  constructor(url: string | { toString(): string }, base?: string | { toString(): string });
  static canParse(url: string | { toString(): string }, base?: string | { toString(): string }): boolean;
  static parse(url: string | { toString(): string }, base?: string | { toString(): string }): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}

/** What `Headers` are made of. */
type HeadersInit = Headers | Iterable<readonly [string, string]> | Readonly<Record<string, string>>;
/** What the body of a request or an answer is made of; text becomes UTF-8. */
type BodyInit =
  | string
  | ArrayBuffer
  | ArrayBufferView
  | Blob
  | FormData
  | URLSearchParams
  | ReadableStream
  | AsyncIterable<Uint8Array | string>;

/** Headers by names in any case; they are listed in the order of their names. */
declare class Headers implements Iterable<[string, string]> {
  constructor(init?: HeadersInit | null);
  append(name: string, value: string): void;
  set(name: string, value: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  delete(name: string): void;
  forEach(callback: (value: string, name: string, headers: Headers) => void, self?: unknown): void;
  entries(): Generator<[string, string], void, undefined>;
  keys(): Generator<string, void, undefined>;
  values(): Generator<string, void, undefined>;
  [Symbol.iterator](): Generator<[string, string], void, undefined>;
}

/** How a request is made. */
interface RequestInit {
  readonly method?: string;
  readonly headers?: HeadersInit;
  readonly body?: BodyInit | null;
  readonly redirect?: 'follow' | 'error' | 'manual';
  readonly signal?: AbortSignal | null;
}

/** How an answer is made. */
interface ResponseInit {
  readonly status?: number;
  readonly statusText?: string;
  readonly headers?: HeadersInit;
}

/** The body of a request or an answer. It is read once. */
interface Body {
  readonly body: ReadableStream | null;
  /** Whether the body was read. */
  readonly bodyUsed: boolean;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  bytes(): Promise<Uint8Array>;
  /** A form in `multipart/form-data` or `application/x-www-form-urlencoded`. */
  formData(): Promise<FormData>;
  json(): Promise<unknown>;
  text(): Promise<string>;
}

interface Request extends Body {}

/** A request, to be sent by `fetch`, or that the program answers. */
declare class Request {
  constructor(input: string | { readonly href: string } | Request, init?: RequestInit);
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly redirect: 'follow' | 'error' | 'manual';
  readonly signal: AbortSignal | null;
  /** The address of the client, where the program answers the request. */
  readonly remoteAddress: string | undefined;
  clone(): Request;
}

interface Response extends Body {}

/** An answer, of a server or of the program. */
declare class Response {
  constructor(body?: BodyInit | null, init?: ResponseInit);
  static json(value: unknown, init?: ResponseInit): Response;
  static redirect(url: string | { readonly href: string }, status?: number): Response;
  readonly status: number;
  readonly statusText: string;
  readonly ok: boolean;
  readonly headers: Headers;
  readonly url: string;
  readonly redirected: boolean;
  readonly type: 'default' | 'error';
  clone(): Response;
}

/**
 * Sends a request to a server that the operator of the engine allows (`pie run --allow-net HOST`). What fails rejects
 * with a TypeError that has a `code`: `net-denied`, `net-unreachable`, `http-protocol`, `http-redirects`,
 * `limit-http-requests`, `limit-http-bytes`, `limit-http-headers` or `limit-http-time`.
 */
declare function fetch(input: string | { readonly href: string } | Request, init?: RequestInit): Promise<Response>;

/**
 * Files: the program's own in `/scratch`, and those that it is given to read. A call suspends the program until it is
 * done. What fails rejects with an error that has the `code` of Node (`ENOENT`, `EDQUOT`); where the engine refused
 * something, its `cause` is the `InferletError` that says why.
 */
declare module 'node:fs/promises' {
  /** A path, or a `file:` URL. */
  type Path = string | { readonly href: string };
  /** What is written: text as UTF-8, or bytes. */
  type Data = string | ArrayBuffer | ArrayBufferView;
  /** How a file is opened: `r` to read, `w` to write anew, `a` to append, `+` for both, `x` where there is none yet. */
  type Flag = 'r' | 'r+' | 'w' | 'wx' | 'w+' | 'wx+' | 'a' | 'ax' | 'a+' | 'ax+';
  /** What has a file read as text. */
  type Text = 'utf8' | 'utf-8' | { readonly encoding: 'utf8' | 'utf-8'; readonly flag?: Flag };
  /** What has a file read as bytes. */
  type Bytes = null | { readonly encoding?: null; readonly flag?: Flag };
  /** How text is written, and how the file is opened. */
  type Writing = 'utf8' | 'utf-8' | null | { readonly encoding?: 'utf8' | 'utf-8' | null; readonly flag?: Flag };

  /** What a file or folder is. */
  export interface Stats {
    /** In bytes. */
    readonly size: number;
    readonly nlink: number;
    readonly atimeMs: number;
    readonly mtimeMs: number;
    readonly ctimeMs: number;
    readonly atime: Date;
    readonly mtime: Date;
    readonly ctime: Date;
    isFile(): boolean;
    isDirectory(): boolean;
    isSymbolicLink(): boolean;
  }

  /** An entry of a folder. */
  export interface Dirent {
    readonly name: string;
    readonly parentPath: string;
    isFile(): boolean;
    isDirectory(): boolean;
    isSymbolicLink(): boolean;
  }

  /** A file that is open. */
  export interface FileHandle {
    read<B extends Uint8Array>(
      buffer: B,
      offset?: number,
      length?: number,
      position?: number | null,
    ): Promise<{ bytesRead: number; buffer: B }>;
    write(data: string, position?: number | null): Promise<{ bytesWritten: number; buffer: string }>;
    write<B extends Uint8Array>(
      data: B,
      offset?: number | null,
      length?: number,
      position?: number | null,
    ): Promise<{ bytesWritten: number; buffer: B }>;
    readFile(options?: Bytes): Promise<Uint8Array>;
    readFile(options: Text): Promise<string>;
    writeFile(data: Data, options?: Writing): Promise<void>;
    appendFile(data: Data, options?: Writing): Promise<void>;
    stat(): Promise<Stats>;
    truncate(length?: number): Promise<void>;
    sync(): Promise<void>;
    datasync(): Promise<void>;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
  }

  /** For `access` and `copyFile`. */
  export const constants: Readonly<{ F_OK: 0; X_OK: 1; W_OK: 2; R_OK: 4; COPYFILE_EXCL: 1 }>;
  /** Opens a file, to read unless the flag says otherwise. */
  export function open(path: Path, flag?: Flag): Promise<FileHandle>;
  /** Reads a file whole: bytes, or text where an encoding is given. */
  export function readFile(path: Path | FileHandle, options?: Bytes): Promise<Uint8Array>;
  export function readFile(path: Path | FileHandle, options: Text): Promise<string>;
  /** Writes a file whole, in place of what it holds. */
  export function writeFile(path: Path | FileHandle, data: Data, options?: Writing): Promise<void>;
  /** Writes behind what a file holds. */
  export function appendFile(path: Path | FileHandle, data: Data, options?: Writing): Promise<void>;
  /** Cuts a file to so many bytes, or fills it up with zeros; 0 if not given. */
  export function truncate(path: Path, length?: number): Promise<void>;
  /** What a file or folder is; a link is followed. */
  export function stat(path: Path): Promise<Stats>;
  /** What a file, folder or link is; a link is not followed. */
  export function lstat(path: Path): Promise<Stats>;
  /** Rejects where the path is not there, or may not be used so. */
  export function access(path: Path, mode?: number): Promise<void>;
  /** With `recursive`: the first folder that it made, where it made one. */
  export function mkdir(path: Path, options?: number | { readonly recursive?: boolean }): Promise<string | undefined>;
  /** In the order of their names; with `recursive`, paths from the folder on. */
  export function readdir(path: Path, options?: 'utf8' | { readonly recursive?: boolean; readonly withFileTypes?: false }): Promise<string[]>;
  export function readdir(path: Path, options: { readonly recursive?: boolean; readonly withFileTypes: true }): Promise<Dirent[]>;
  /** Removes an empty folder. */
  export function rmdir(path: Path): Promise<void>;
  /** Removes a file or a link. */
  export function unlink(path: Path): Promise<void>;
  /** Removes a file, or with `recursive` a folder and all that it holds; with `force` it need not be there. */
  export function rm(path: Path, options?: { readonly recursive?: boolean; readonly force?: boolean }): Promise<void>;
  /** Moves a file or folder, in place of a file that is there. */
  export function rename(old: Path, path: Path): Promise<void>;
  /** Copies a file, in place of one that is there unless `COPYFILE_EXCL` says otherwise. */
  export function copyFile(from: Path, to: Path, mode?: number): Promise<void>;
  /** Makes a link to a path. */
  export function symlink(target: string, path: Path): Promise<void>;
  /** The path that a link leads to. */
  export function readlink(path: Path): Promise<string>;
  /** A new folder whose name begins so. */
  export function mkdtemp(prefix: string): Promise<string>;
}
