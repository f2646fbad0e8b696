/**
 * `node:fs/promises`, as far as there are files: the program's own in `/scratch`, and those that it is given to read.
 *
 * A call suspends the program until it is done. Its promise is settled then, as that of any other call.
 */

import * as host from 'pie:host';
import { checkOptions } from 'pie:inferlet/arguments.js';
import { type InferletError, wrongType } from 'pie:inferlet/errors.js';
import { refusal } from 'pie:inferlet/files.js';
import { refuseInJson } from 'pie:inferlet/json.js';
import { TextDecoder, TextEncoder } from './text.js';

type Kind = host.PathStat['kind'];
type Data = string | ArrayBuffer | ArrayBufferView;
type Path = string | { readonly href: string };
type Encoding = string | null | undefined;
type Options = Encoding | { readonly encoding?: Encoding; readonly flag?: string };

/** The code of Node for each of `wasi:filesystem`, and what it says. */
const CODES: Readonly<Record<string, readonly [string, string]>> = {
  access: ['EACCES', 'permission denied'],
  'bad-descriptor': ['EBADF', 'bad file descriptor'],
  busy: ['EBUSY', 'resource busy or locked'],
  'cross-device': ['EXDEV', 'cross-device link not permitted'],
  exist: ['EEXIST', 'file already exists'],
  'file-too-large': ['EFBIG', 'file too large'],
  'insufficient-memory': ['ENOMEM', 'not enough memory'],
  'insufficient-space': ['ENOSPC', 'no space left on device'],
  invalid: ['EINVAL', 'invalid argument'],
  io: ['EIO', 'i/o error'],
  'is-directory': ['EISDIR', 'illegal operation on a directory'],
  loop: ['ELOOP', 'too many symbolic links encountered'],
  'name-too-long': ['ENAMETOOLONG', 'name too long'],
  'no-entry': ['ENOENT', 'no such file or directory'],
  'not-directory': ['ENOTDIR', 'not a directory'],
  'not-empty': ['ENOTEMPTY', 'directory not empty'],
  'not-permitted': ['EPERM', 'operation not permitted'],
  quota: ['EDQUOT', 'disk quota exceeded'],
  'read-only': ['EROFS', 'read-only file system'],
  unsupported: ['ENOTSUP', 'operation not supported'],
};

/** The letters of `pie:host` for the flags of Node. */
const FLAGS: Readonly<Record<string, string>> = {
  r: 'r',
  'r+': 'rw',
  w: 'wct',
  wx: 'wctx',
  'w+': 'rwct',
  'wx+': 'rwctx',
  a: 'wc',
  ax: 'wcx',
  'a+': 'rwc',
  'ax+': 'rwcx',
};

/** What the calls take that read or write a file whole. */
const FILE_OPTIONS = ['encoding', 'flag'];
/** Options of Node that change nothing here: files have no modes, and a call is done before another one begins. */
const WITHOUT_EFFECT = ['mode', 'flush', 'signal', 'maxRetries', 'retryDelay'];

/** Bytes that `readFile` reads at once. */
const PART_BYTES = 1 << 20;

const NO_FILES = 'a program has no files of the machine but in folders given by `pie run --mount DIR=/data`; it ';
const OWN_FILES = 'keeps its own below /scratch, and ';
const OTHER_FILES = 'gets others by its input or from its client (session.receiveFile)';

/** Whether a path is that of the program's own folder, or `/`, in which that folder would be. */
function isOfScratch(path: string): boolean {
  return /^\/+(scratch(\/|$)|$)/.test(path);
}

/** What to do where something is missing at a path elsewhere. */
function elsewhere(): string {
  return `${NO_FILES}${refusal()?.code === 'files-off' ? '' : OWN_FILES}${OTHER_FILES}`;
}

/** An error as Node throws them; where the engine refused something, `cause` says why. */
class SystemError extends Error {
  readonly code: string;
  readonly syscall: string;
  readonly path: string | undefined;
  /** Where something was to be moved to. */
  readonly dest: string | undefined;

  constructor(name: string, syscall: string, path: string | undefined, cause: InferletError | undefined, dest?: string) {
    const [code, what] = CODES[name] ?? ['EIO', name];
    const place = path === undefined ? '' : ` ${quoted(path)}${dest === undefined ? '' : ` -> ${quoted(dest)}`}`;
    const missing = code === 'ENOENT' ? atFault(path, dest) : undefined;
    const isElsewhere = missing !== undefined && !missing.startsWith('/scratch');
    const why = cause !== undefined ? `: ${cause.message}` : isElsewhere ? `: ${elsewhere()}` : '';
    super(`${code}: ${what}, ${syscall}${place}${why}`, cause === undefined ? {} : { cause });
    this.name = 'Error';
    this.code = code;
    this.syscall = syscall;
    this.path = path;
    this.dest = dest;
  }
}

function quoted(path: string): string {
  return `'${path.length > 200 ? `${path.slice(0, 200)}...` : path}'`;
}

/** The path at which something is missing: where something is to be moved that is there, it is the other one. */
function atFault(path: string | undefined, dest: string | undefined): string | undefined {
  return path !== undefined && dest !== undefined && isThere(path) ? dest : path;
}

function isThere(path: string): boolean {
  try {
    host.statPath(path, false);
    return true;
  } catch {
    return false;
  }
}

/** Why the engine refused what has this code and path, where it was the engine. */
function reason(name: string, path: string | undefined, dest: string | undefined): InferletError | undefined {
  const why = refusal();
  if (why === undefined) return undefined;
  if (why.code === 'files-off') {
    const missing = name === 'no-entry' ? atFault(path, dest) : undefined;
    return missing !== undefined && isOfScratch(missing) ? why : undefined;
  }
  if (why.code === 'files-stalled') return name === 'io' ? why : undefined;
  return name === 'quota' || name === 'insufficient-memory' || name === 'name-too-long' ? why : undefined;
}

/** Calls the engine; what fails throws as Node does. */
function call<T>(syscall: string, path: string | undefined, work: () => T, dest?: string): T {
  try {
    return work();
  } catch (error) {
    const name = error instanceof Error ? error.message : '';
    if (!(name in CODES) && !/^[a-z-]+$/.test(name)) throw error;
    throw new SystemError(name, syscall, path, reason(name, path, dest), dest);
  }
}

function toPath(path: Path): string {
  const text = typeof path === 'object' && path !== null && 'href' in path ? decodeURIComponent(path.href.replace(/^file:\/\//, '')) : path;
  if (typeof text !== 'string') throw wrongType(`a path is a string, not ${typeof text}`);
  if (text.includes('\0')) throw wrongType('a path has no null byte');
  return text.startsWith('/') ? text : `/${text}`;
}

function toBytes(data: Data): Uint8Array {
  if (typeof data === 'string') return new TextEncoder().encode(data);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw wrongType(`a file holds a string or bytes, not ${data === null ? 'null' : typeof data}`);
}

function encodingOf(options: Options): string | undefined {
  const encoding = typeof options === 'object' && options !== null ? options.encoding : options;
  if (encoding === undefined || encoding === null || encoding === 'buffer') return undefined;
  if (!/^utf-?8$/i.test(encoding)) throw wrongType(`the encoding is ${encoding}; give 'utf8', or none for bytes`);
  return encoding;
}

/** Refuses options that `callee` does not have, which would be read as if they were not there. */
function checkNames(options: unknown, names: readonly string[], callee: string): void {
  if (typeof options !== 'object' || options === null) return;
  const known = Object.keys(options).filter((name) => !WITHOUT_EFFECT.includes(name));
  checkOptions(Object.fromEntries(known.map((name) => [name, undefined])), names, callee);
}

/** What is to be written, looked at before the file is opened, which may empty it. */
function toWritten(data: Data, options: Options, callee: string): Uint8Array {
  checkNames(options, FILE_OPTIONS, callee);
  encodingOf(options);
  return toBytes(data);
}

function flagOf(options: Options | { readonly flag?: string }, otherwise: string): string {
  return (typeof options === 'object' && options !== null && options.flag) || otherwise;
}

/** Something of a kind. */
class Entry {
  readonly #kind: Kind;

  constructor(kind: Kind) {
    this.#kind = kind;
  }

  isFile(): boolean {
    return this.#kind === 'file';
  }

  isDirectory(): boolean {
    return this.#kind === 'folder';
  }

  isSymbolicLink(): boolean {
    return this.#kind === 'link';
  }
}

/** What a file or folder is. */
class Stats extends Entry {
  readonly size: number;
  readonly nlink: number;
  readonly atimeMs: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;

  constructor(found: host.PathStat) {
    super(found.kind);
    this.size = found.size;
    this.nlink = found.links;
    this.atimeMs = found.accessedMs;
    this.mtimeMs = found.modifiedMs;
    this.ctimeMs = found.changedMs;
  }

  get atime(): Date {
    return new Date(this.atimeMs);
  }

  get mtime(): Date {
    return new Date(this.mtimeMs);
  }

  get ctime(): Date {
    return new Date(this.ctimeMs);
  }
}

/** An entry of a folder. */
class Dirent extends Entry {
  readonly name: string;
  readonly parentPath: string;

  constructor(name: string, parentPath: string, kind: Kind) {
    super(kind);
    this.name = name;
    this.parentPath = parentPath;
  }
}

/** A file that is open. */
class FileHandle {
  readonly #file: host.OpenFile;
  readonly #path: string;
  readonly #appends: boolean;
  #position = 0;

  constructor(path: string, flag: string) {
    const letters = FLAGS[flag];
    if (letters === undefined) throw wrongType(`the flag is ${flag}; give one of ${Object.keys(FLAGS).join(', ')}`);
    this.#path = path;
    this.#appends = flag.startsWith('a');
    this.#file = call('open', path, () => host.openFile(path, letters));
  }

  async read(
    buffer: Uint8Array,
    offset = 0,
    length = buffer.byteLength - offset,
    position: number | null = null,
  ): Promise<{ bytesRead: number; buffer: Uint8Array }> {
    const target = buffer.subarray(offset, offset + length);
    const bytes = this.#read(target.byteLength, position ?? this.#position);
    target.set(bytes);
    if (position === null) this.#position += bytes.byteLength;
    return { bytesRead: bytes.byteLength, buffer };
  }

  async write(
    data: Uint8Array | string,
    offset: number | null = 0,
    length?: number | string,
    position: number | null = null,
  ): Promise<{ bytesWritten: number; buffer: Uint8Array | string }> {
    const whole = toBytes(data);
    // A text is followed by its position.
    const bytes = typeof data === 'string' ? whole : whole.subarray(offset ?? 0, typeof length === 'number' ? (offset ?? 0) + length : undefined);
    const at = typeof data === 'string' ? offset || null : position;
    this.#write(bytes, at);
    return { bytesWritten: bytes.byteLength, buffer: data };
  }

  async readFile(options?: { readonly encoding?: null } | null): Promise<Uint8Array>;
  async readFile(options: Options): Promise<string | Uint8Array>;
  async readFile(options?: Options): Promise<string | Uint8Array> {
    checkNames(options, FILE_OPTIONS, 'readFile()');
    const encoding = encodingOf(options);
    const parts: Uint8Array[] = [];
    let nBytes = 0;
    for (;;) {
      const part = this.#read(PART_BYTES, this.#position);
      this.#position += part.byteLength;
      nBytes += part.byteLength;
      parts.push(part);
      if (part.byteLength < PART_BYTES) break;
    }
    let bytes = parts[0]!;
    if (parts.length > 1) {
      bytes = new Uint8Array(nBytes);
      let at = 0;
      for (const part of parts) {
        bytes.set(part, at);
        at += part.byteLength;
      }
    }
    return encoding === undefined ? bytes : new TextDecoder().decode(bytes);
  }

  async writeFile(data: Data, options?: Options): Promise<void> {
    this.#write(toWritten(data, options, 'writeFile()'), null);
  }

  async appendFile(data: Data, options?: Options): Promise<void> {
    this.#write(toWritten(data, options, 'appendFile()'), null);
  }

  async stat(options?: object): Promise<Stats> {
    checkNames(options, [], 'stat()');
    return new Stats(call('fstat', this.#path, () => this.#file.stat()));
  }

  async truncate(length = 0): Promise<void> {
    call('ftruncate', this.#path, () => this.#file.setSize(length));
  }

  async sync(): Promise<void> {
    call('fsync', this.#path, () => this.#file.sync());
  }

  async datasync(): Promise<void> {
    await this.sync();
  }

  async close(): Promise<void> {
    this.#file.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #read(nBytes: number, position: number): Uint8Array {
    return call('read', this.#path, () => {
      try {
        return this.#file.read(nBytes, position);
      } catch (error) {
        // What cannot be read has this name, whatever it is.
        if (error instanceof Error && error.message === 'bad-descriptor' && this.#isFolder()) throw new Error('is-directory');
        throw error;
      }
    });
  }

  #isFolder(): boolean {
    try {
      return this.#file.stat().kind === 'folder';
    } catch {
      return false; // it is closed
    }
  }

  #write(bytes: Uint8Array, position: number | null): void {
    call('write', this.#path, () => {
      const at = this.#appends ? this.#file.stat().size : (position ?? this.#position);
      this.#file.write(bytes, at);
      if (position === null) this.#position = at + bytes.byteLength;
    });
  }
}

refuseInJson(FileHandle, 'send what it holds: `await file.readFile()`');

/** Works on a file that is opened for that. */
async function using_<T>(path: Path | FileHandle, flag: string, work: (file: FileHandle) => Promise<T>): Promise<T> {
  if (path instanceof FileHandle) return work(path);
  const file = new FileHandle(toPath(path), flag);
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

export const constants = Object.freeze({ F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4, COPYFILE_EXCL: 1 });

export async function open(path: Path, flag = 'r'): Promise<FileHandle> {
  return new FileHandle(toPath(path), flag);
}

export async function readFile(path: Path | FileHandle, options?: Options): Promise<string | Uint8Array> {
  checkNames(options, FILE_OPTIONS, 'readFile()');
  return using_(path, flagOf(options, 'r'), (file) => file.readFile(options as Options));
}

export async function writeFile(path: Path | FileHandle, data: Data, options?: Options): Promise<void> {
  const bytes = toWritten(data, options, 'writeFile()');
  return using_(path, flagOf(options, 'w'), (file) => file.writeFile(bytes));
}

export async function appendFile(path: Path | FileHandle, data: Data, options?: Options): Promise<void> {
  const bytes = toWritten(data, options, 'appendFile()');
  return using_(path, flagOf(options, 'a'), (file) => file.writeFile(bytes));
}

export async function truncate(path: Path, length = 0): Promise<void> {
  return using_(path, 'r+', (file) => file.truncate(length));
}

export async function stat(path: Path, options?: object): Promise<Stats> {
  checkNames(options, [], 'stat()');
  const text = toPath(path);
  return new Stats(call('stat', text, () => host.statPath(text, true)));
}

export async function lstat(path: Path, options?: object): Promise<Stats> {
  checkNames(options, [], 'lstat()');
  const text = toPath(path);
  return new Stats(call('lstat', text, () => host.statPath(text, false)));
}

/** Whether a path is there; a folder that is mounted is never writable. */
export async function access(path: Path, mode: number = constants.F_OK): Promise<void> {
  const text = toPath(path);
  const found = call('access', text, () => host.statPath(text, true));
  if ((mode & constants.W_OK) !== 0 && found.kind === 'file') await using_(text, 'r+', async () => undefined);
}

export async function mkdir(path: Path, options?: number | { readonly recursive?: boolean }): Promise<string | undefined> {
  checkNames(options, ['recursive'], 'mkdir()');
  const text = toPath(path).replace(/(?<=.)\/+$/, '');
  if (typeof options !== 'object' || options === null || options.recursive !== true) {
    call('mkdir', text, () => host.makeFolder(text));
    return undefined;
  }
  let first: string | undefined;
  const names = text.split('/').filter((name) => name !== '');
  // The first name is that of a folder which the program is given.
  for (let n = 2; n <= names.length; n += 1) {
    const folder = `/${names.slice(0, n).join('/')}`;
    try {
      call('mkdir', folder, () => host.makeFolder(folder));
      first ??= folder;
    } catch (error) {
      const isThere = error instanceof SystemError && error.code === 'EEXIST' && (await stat(folder)).isDirectory();
      if (!isThere) throw error;
    }
  }
  // What was there already, and what is not: a path of one name.
  await stat(text);
  return first;
}

interface ReadingFolder {
  readonly withFileTypes?: boolean;
  readonly recursive?: boolean;
}

function entries(folder: string): [string, Kind][] {
  return call('scandir', folder, () => {
    const opened = host.openFile(folder, 'rd');
    try {
      return opened.entries();
    } finally {
      opened.close();
    }
  });
}

export async function readdir(path: Path, options?: Encoding | ReadingFolder): Promise<(string | Dirent)[]> {
  checkNames(options, ['encoding', 'recursive', 'withFileTypes'], 'readdir()');
  const root = toPath(path).replace(/(?<=.)\/+$/, '');
  const wanted: ReadingFolder = typeof options === 'object' && options !== null ? options : {};
  const found: (string | Dirent)[] = [];
  const folders = [''];
  for (const folder of folders) {
    const above = folder === '' ? root : `${root}/${folder}`;
    // The order of a file system is that of no rule: the same files are told in the same order.
    for (const [name, kind] of entries(above).sort(([one], [other]) => (one < other ? -1 : 1))) {
      const below = folder === '' ? name : `${folder}/${name}`;
      found.push(wanted.withFileTypes === true ? new Dirent(name, above, kind) : below);
      if (wanted.recursive === true && kind === 'folder') folders.push(below);
    }
  }
  return found;
}

export async function rmdir(path: Path, options?: object): Promise<void> {
  if (typeof options === 'object' && options !== null && 'recursive' in options) {
    throw wrongType("rmdir() has no option 'recursive'; write `rm(path, { recursive: true })` to remove what is in the folder too");
  }
  checkNames(options, [], 'rmdir()');
  const text = toPath(path);
  call('rmdir', text, () => host.removeFolder(text));
}

export async function unlink(path: Path): Promise<void> {
  const text = toPath(path);
  call('unlink', text, () => host.removeFile(text));
}

export async function rm(path: Path, options: { readonly recursive?: boolean; readonly force?: boolean } = {}): Promise<void> {
  checkNames(options, ['force', 'recursive'], 'rm()');
  const text = toPath(path);
  try {
    const found = call('rm', text, () => host.statPath(text, false));
    if (found.kind !== 'folder') return await unlink(text);
    if (options.recursive !== true) throw new SystemError('is-directory', 'rm', text, undefined);
    for (const [name] of entries(text)) await rm(`${text}/${name}`, options);
    await rmdir(text);
  } catch (error) {
    if (!(options.force === true && error instanceof SystemError && error.code === 'ENOENT')) throw error;
  }
}

export async function rename(old: Path, path: Path): Promise<void> {
  const [from, to] = [toPath(old), toPath(path)];
  call('rename', from, () => host.renamePath(from, to), to);
}

export async function copyFile(from: Path, to: Path, mode = 0): Promise<void> {
  await using_(from, 'r', (source) =>
    using_(to, (mode & constants.COPYFILE_EXCL) === 0 ? 'w' : 'wx', async (target) => {
      for (const part = new Uint8Array(PART_BYTES); ; ) {
        const { bytesRead } = await source.read(part);
        if (bytesRead === 0) return;
        await target.write(part, 0, bytesRead);
      }
    }),
  );
}

export async function symlink(target: string, path: Path): Promise<void> {
  const text = toPath(path);
  call('symlink', text, () => host.makeLink(String(target), text));
}

export async function readlink(path: Path, options?: Encoding | object): Promise<string> {
  checkNames(options, ['encoding'], 'readlink()');
  const text = toPath(path);
  return call('readlink', text, () => host.readLink(text));
}

export async function mkdtemp(prefix: string, options?: Encoding | object): Promise<string> {
  checkNames(options, ['encoding'], 'mkdtemp()');
  for (;;) {
    const letters = Array.from(host.randomBytes(6), (byte) => 'abcdefghijklmnopqrstuvwxyz012345'[byte & 31]).join('');
    const folder = `${toPath(prefix)}${letters}`;
    try {
      await mkdir(folder);
      return folder;
    } catch (error) {
      if (!(error instanceof SystemError && error.code === 'EEXIST')) throw error;
    }
  }
}

export default {
  access,
  appendFile,
  constants,
  copyFile,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readFile,
  readdir,
  readlink,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  truncate,
  unlink,
  writeFile,
};
