/** A client of a server: programs are installed and launched, processes listed and attached to. */

import { countCalls } from './calls.js';
import * as checks from './checks.js';
import { Connection, nothing } from './connection.js';
import { PieError, broken } from './errors.js';
import { type LastEvent, eventOf, isLast } from './events.js';
import {
  type AdapterInfo, type ConnectionInfo, type Logs, type ProcessInfo, type ProgramInfo, type ServerStats, type SnapshotInfo,
  type TopicInfo, adapterOf, connectionOf, logsOf, processOf, programOf, snapshotOf, topicOf,
} from './info.js';
import type { McpServer } from './mcp.js';
import { type Identity, type WebSocketClass, openSocket, platformWebSocket } from './opening.js';
import { type Names, known } from './options.js';
import { CALL, type CallOptions, Process } from './process.js';
import { type PrivateKey, checkedKey, checkedPrivateKey, sha256 } from './signing.js';
import { type Fields, Raw, fieldsOf, listOf, numberOf, wideOf } from './wire.js';

const DEFAULT_ADDRESS = 'ws://127.0.0.1:8080';
const DEFAULT_TIMEOUT_S = 10;
const PROGRAM = 'a string: NAME@VERSION, NAME, or what `upload` answered';

/** How to connect. */
export interface ConnectOptions extends CallOptions {
  /** Who one is; that of the key if left out, `anonymous` without one. */
  readonly user?: string;
  /** An API key, which `pie key add` makes. */
  readonly key?: string;
  /** A private key whose public half the operator has added; `user` says whose it is. */
  readonly privateKey?: PrivateKey;
  /** How long opening may take; 10 if left out. */
  readonly timeoutS?: number;
  /** The class of WebSockets, where the platform has none: that of the package `ws`. */
  readonly webSocket?: WebSocketClass;
}

/** What to call an upload. */
export interface UploadOptions extends CallOptions {
  /** What lists show its processes with, as the name of its file: 1 to 128 bytes, without control characters. */
  readonly name?: string;
}

/** What to call a program, and its manifest. */
export interface InstallOptions extends CallOptions {
  readonly name: string;
  /** `0.1.0` if left out. */
  readonly version?: string;
  /** The text of a `Pie.toml`. */
  readonly manifest?: string;
}

/** What to call a program that serves HTTP, and how it serves. */
export interface DaemonOptions extends InstallOptions {
  /** Whether one instance answers all requests, which is so if left out; otherwise each request has its own. */
  readonly shared?: boolean;
  /** Whether anybody may ask; otherwise only this user, by their key. */
  readonly public?: boolean;
}

/** How to launch a program. */
export interface LaunchOptions extends CallOptions {
  /** Any JSON value; null if left out. Bigints keep all of their digits. */
  readonly input?: unknown;
  /** The arguments as typed, unparsed. */
  readonly args?: readonly string[];
  /** Repeats a run. Seeds beyond 2^53 have to be bigints. */
  readonly seed?: number | bigint;
  /** Tokens that may enter the contexts of the process. */
  readonly tokenBudget?: number | bigint;
  /** What the process begins with in each model, to bid for pages where those are short: 0 to 1e9 credits. */
  readonly credits?: number;
  /** Limits by their names, as in `{ cpu_s: 10 }`; only lower than the server's. */
  readonly limits?: Readonly<Record<string, number | null>>;
  /** Programs that the process can start, by the names that it calls them by; each is given as `program` is. */
  readonly programs?: Readonly<Record<string, string>>;
  /** Whether it lives without a client, for as long as it likes. */
  readonly detached?: boolean;
  /** Bytes of events that are sent before they are read; more hold the program up. */
  readonly windowBytes?: number | bigint;
}

/** How to attach to a process. */
export interface AttachOptions extends CallOptions {
  /** Events up to it are passed over: what was read on a connection that broke may come again. */
  readonly afterSeq?: number;
  /** As for a launch. */
  readonly windowBytes?: number | bigint;
}

/** What to list. */
export interface ListOptions extends CallOptions {
  /** For operators: what is anybody's. */
  readonly allUsers?: boolean;
}

/** Whose it is. */
export interface OwnerOptions extends CallOptions {
  /** For operators: another user. */
  readonly user?: string;
}

/** Which part of a log. */
export interface LogsOptions extends CallOptions {
  /** At most the last so many bytes. */
  readonly tailBytes?: number;
  /** From this position on: a `next` of before. */
  readonly after?: number;
  /** Waits until there is text after that position, or the process has ended. */
  readonly follow?: boolean;
}

const UPLOAD: Names<UploadOptions> = { ...CALL, name: true };
const INSTALL: Names<InstallOptions> = { ...CALL, name: true, version: true, manifest: true };
const DAEMON: Names<DaemonOptions> = { ...INSTALL, shared: true, public: true };
const CHECK: Names<CallOptions & { readonly digest?: string }> = { ...CALL, digest: true };
const ATTACH: Names<AttachOptions> = { ...CALL, afterSeq: true, windowBytes: true };
const LIST: Names<ListOptions> = { ...CALL, allUsers: true };
const PROCESSES: Names<ListOptions & { readonly all?: boolean }> = { ...LIST, all: true };
const OWNER: Names<OwnerOptions> = { ...CALL, user: true };
const LOGS: Names<LogsOptions> = { ...CALL, tailBytes: true, after: true, follow: true };
const LAUNCH: Names<LaunchOptions> = {
  ...CALL, input: true, args: true, seed: true, tokenBudget: true, credits: true, limits: true, programs: true, detached: true, windowBytes: true,
};
const CONNECT: Names<ConnectOptions> = { ...CALL, user: true, key: true, privateKey: true, timeoutS: true, webSocket: true };

/**
 * An open connection to a server, from `connect`. Any call may be given up at any time, by its `signal`.
 *
 * Every method throws PieError: the server's, `connection-failed`, and `invalid-argument` for an argument of the wrong
 * type or out of its range, before anything is sent.
 */
export class Client {
  readonly #connection: Connection;

  static {
    countCalls(Client.prototype, (client) => client.#connection.calls, 'close');
  }

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Whose programs and processes this client sees. */
  get user(): string {
    return this.#connection.hello.user;
  }

  /** What this client may do: `read`, `user` or `operator`. */
  get role(): string {
    return this.#connection.hello.role;
  }

  /** The name and version of the server. */
  get server(): string {
    return this.#connection.hello.server;
  }

  /** The name by which programs know the engine of the server. */
  get instance(): string {
    return this.#connection.hello.instance;
  }

  /** Whether the server has said that it is about to end: it launches nothing more. */
  get isDraining(): boolean {
    return this.#connection.isDraining;
  }

  /**
   * Ends the connection: every call and loop that waits gets `connection-failed`. A second call waits for the first.
   * Processes go on for a while, so that this user can attach to them again; detached ones go on without limit.
   */
  async close(): Promise<void> {
    await this.#connection.close();
  }

  /** Answers when the server does. */
  async ping(options: CallOptions = {}): Promise<void> {
    const { signal } = known('ping', options, CALL);
    await this.#connection.request('ping', {}, nothing, { signal });
  }

  /**
   * Sends a program that `pie build` has made, or a component, and answers its digest, which can be launched on this
   * connection. Throws PieError `limit-upload` where it is larger than the server takes, and `invalid-name`.
   */
  async upload(program: Uint8Array, options: UploadOptions = {}): Promise<string> {
    const { name, signal } = known('upload', options, UPLOAD);
    const called = name === undefined ? {} : { name: checks.text('name', name) };
    const digest = `sha256:${await sha256(checks.content('program', program))}`;
    await this.#connection.upload(program, { digest, ...called }, signal);
    return digest;
  }

  /** Installs a program under `name@version`, which is answered; one of the same name and version is replaced. */
  async install(program: Uint8Array, options: InstallOptions): Promise<string> {
    return await this.#install(program, known('install', options, INSTALL), {});
  }

  /**
   * Installs a program that serves HTTP, and answers the path by which the server answers with it, on its port, as in
   * `/http/chat@0.1.0/`. It serves until it is uninstalled. Throws what `install` throws, and PieError
   * `invalid-argument` where the table `[http]` of its manifest says otherwise.
   */
  async launchDaemon(program: Uint8Array, options: DaemonOptions): Promise<string> {
    known('launchDaemon', options, DAEMON);
    const isPublic = checks.flag('public', options.public ?? false);
    const http = { shared: checks.flag('shared', options.shared ?? true), public: isPublic };
    const installed = await this.#install(program, options, { http });
    return isPublic ? `/http/~${this.user}/${installed}/` : `/http/${installed}/`;
  }

  /** Removes an installed program; processes that run it are left alone. */
  async uninstall(name: string, version: string, options: OwnerOptions = {}): Promise<void> {
    await this.#requestOfOwner('uninstall', { name, version }, known('uninstall', options, OWNER), nothing);
  }

  /** The programs that this user has installed, by name and version, the oldest version first. */
  async programs(options: ListOptions = {}): Promise<ProgramInfo[]> {
    return await this.#listOfUsers('programs', options, programOf);
  }

  /**
   * Whether this user has installed `program`, which is `name@version`, or `name` for any version. With `digest` (that
   * of a `ProgramInfo`, or what `upload` answered), whether it is that program.
   */
  async checkProgram(program: string, options: CallOptions & { readonly digest?: string } = {}): Promise<boolean> {
    const { digest, signal } = known('checkProgram', options, CHECK);
    if (digest !== undefined) checks.text('digest', digest);
    const installed = await this.#installed(program, signal);
    return installed.some((found) => digest === undefined || found.digest === digest);
  }

  /**
   * The `name@version` that a launch of `program` runs: of a `name`, its highest version. Throws PieError
   * `unknown-program` where this user has installed none.
   */
  async resolveVersion(program: string, options: CallOptions = {}): Promise<string> {
    const { signal } = known('resolveVersion', options, CALL);
    const newest = (await this.#installed(program, signal)).at(-1);
    if (newest !== undefined) return `${newest.name}@${newest.version}`;
    const who = JSON.stringify(this.user);
    const message = `${who} has no program ${JSON.stringify(program)}; install it first (\`programs\` lists those that are installed)`;
    throw new PieError('unknown-program', message, { program });
  }

  /** The snapshots that programs of this user have saved, by model and name. */
  async snapshots(options: ListOptions = {}): Promise<SnapshotInfo[]> {
    return await this.#listOfUsers('snapshots', options, snapshotOf);
  }

  /** Forgets a snapshot. Throws PieError `snapshot-missing`. */
  async deleteSnapshot(model: string, name: string, options: OwnerOptions = {}): Promise<void> {
    await this.#requestOfOwner('delete_snapshot', { model, name }, known('deleteSnapshot', options, OWNER), nothing);
  }

  /** The adapters to which programs of this user gave names, by model and name. */
  async adapters(options: ListOptions = {}): Promise<AdapterInfo[]> {
    return await this.#listOfUsers('adapters', options, adapterOf);
  }

  /**
   * Takes the name of an adapter; contexts that were computed with it go on. Throws PieError `adapter-missing`, and
   * `adapter-busy` while a pass is computed with it.
   */
  async deleteAdapter(model: string, name: string, options: OwnerOptions = {}): Promise<void> {
    await this.#requestOfOwner('delete_adapter', { model, name }, known('deleteAdapter', options, OWNER), nothing);
  }

  /** The topics by which programs of this user send to each other, by name. */
  async topics(options: ListOptions = {}): Promise<TopicInfo[]> {
    return await this.#listOfUsers('topics', options, topicOf);
  }

  /** Drops the messages that wait in the queue of a topic, and answers how many those were. */
  async discardTopic(topic: string, options: OwnerOptions = {}): Promise<number> {
    return await this.#requestOfOwner('discard_topic', { topic }, known('discardTopic', options, OWNER), (ok) => numberOf(ok, 'dropped'));
  }

  /** The clients that are connected, as they came: for operators. Throws PieError `not-permitted`. */
  async connections(options: CallOptions = {}): Promise<ConnectionInfo[]> {
    const { signal } = known('connections', options, CALL);
    return await this.#list('connections', {}, connectionOf, signal);
  }

  /** Ends the connection of a client, who gets the error `cancelled`: for operators. */
  async disconnect(connection: number, options: CallOptions = {}): Promise<void> {
    const { signal } = known('disconnect', options, CALL);
    await this.#connection.request('disconnect', { connection: checks.whole('connection', connection) }, nothing, { signal });
  }

  /**
   * Launches `name@version`, `name` (its newest version) or the digest of an upload, and attaches to it. A process ends
   * some time after its client has gone, unless it was launched `detached`. Detach from one whose events you do not
   * want: what is not read holds it up.
   */
  async launch(program: string, options: LaunchOptions = {}): Promise<Process> {
    const fields = launchFields(program, known('launch', options, LAUNCH));
    const windowBytes = Number(options.windowBytes ?? this.#connection.hello.limits.windowBytes);
    return await this.#connection.request(
      'launch',
      fields,
      (ok, frame) => {
        const stream = this.#connection.attach(numberOf(ok, 'pid'), windowBytes, 0);
        return new Process(this.#connection, stream, wideOf(frame, 'launch_seed'));
      },
      { signal: options.signal, undo: (process) => this.#connection.post('terminate', { pid: process.pid }) },
    );
  }

  /**
   * Attaches to a process, running or ended: its events come from the first that nobody has read. Throws PieError
   * `unknown-process`, `process-attached` while a client is attached, or `invalid-argument` for an `afterSeq` beyond
   * the last event of the process.
   */
  async attach(pid: number, options: AttachOptions = {}): Promise<Process> {
    const { afterSeq = 0, windowBytes, signal } = known('attach', options, ATTACH);
    const after = checks.whole('afterSeq', afterSeq);
    // Older servers do not know the field, and need none where there is nothing to pass over.
    const passed = after > 0n ? { after_seq: after } : {};
    const fields = { ...ofProcess(pid), ...windowOf(windowBytes), ...passed };
    return await this.#connection.request(
      'attach',
      fields,
      (ok) => {
        const window = Number(windowBytes ?? this.#connection.hello.limits.windowBytes);
        return new Process(this.#connection, this.#connection.attach(numberOf(ok, 'pid'), window, Number(after)), null);
      },
      { signal, undo: (process) => this.#connection.post('detach', { pid: process.pid }) },
    );
  }

  /** The processes of this user that run; with `all`, also those that ended and are still kept. */
  async list(options: ListOptions & { readonly all?: boolean } = {}): Promise<ProcessInfo[]> {
    const { all = false, allUsers = false, signal } = known('list', options, PROCESSES);
    return await this.#list('processes', { all: checks.flag('all', all), ...everybody(allUsers) }, processOf, signal);
  }

  /** What a process wrote after a position, at any time, whoever is attached; no event is taken by it. */
  async logs(pid: number, options: LogsOptions = {}): Promise<Logs> {
    const { tailBytes, after = 0, follow = false, signal } = known('logs', options, LOGS);
    const tail = tailBytes === undefined ? {} : { tail_bytes: checks.whole('tailBytes', tailBytes) };
    const fields = { ...ofProcess(pid), after: checks.whole('after', after), follow: checks.flag('follow', follow), ...tail };
    return await this.#connection.request('logs', fields, logsOf, { signal });
  }

  /** How a process ended: its last event, `return` or `error`, whoever has taken it; null while it runs. */
  async outcome(pid: number, options: CallOptions = {}): Promise<LastEvent | null> {
    const { signal } = known('outcome', options, CALL);
    const accept = (ok: Fields): LastEvent | null => {
      if (ok['outcome'] == null) return null;
      const event = eventOf(fieldsOf(ok['outcome'], 'an outcome'), 0, new Uint8Array());
      if (!isLast(event)) throw broken(`an outcome of the kind ${event.type}`);
      return event;
    };
    return await this.#connection.request('outcome', ofProcess(pid), accept, { signal });
  }

  /** Ends a process of this user, or for an operator of anybody, whoever is attached to it. */
  async terminate(pid: number, options: CallOptions = {}): Promise<void> {
    const { signal } = known('terminate', options, CALL);
    await this.#connection.request('terminate', ofProcess(pid), nothing, { signal });
  }

  /**
   * Offers an MCP server to the programs that this connection launches, and to their children, by a name. In Node it
   * may be a command, which is started when a program asks for the server, and ends with the connection; everywhere an
   * object that serves what comes by a transport. A server of the operator with that name gives way, and so does one
   * that was registered by it before. Throws PieError `invalid-name`, `limit-mcp-calls` where there are too many, and
   * `unsupported` for a command in a browser; a server that had the name before stays then.
   */
  async registerMcpServer(name: string, server: McpServer, options: CallOptions = {}): Promise<void> {
    const { signal } = known('registerMcpServer', options, CALL);
    const { mcp } = this.#connection;
    const fields = { name: checks.text('name', name) };
    const before = mcp.register(name, checks.mcpServer('server', server));
    const undo = (): void => {
      if (before === undefined) this.#connection.post('unregister_mcp_server', fields);
    };
    try {
      await this.#connection.request('register_mcp_server', fields, nothing, { signal, undo });
    } catch (error) {
      if (before === undefined) mcp.unregister(name);
      else mcp.register(name, before);
      throw error;
    }
  }

  /** Takes an MCP server back: programs find it no more. Throws PieError `unknown-mcp-server`. */
  async unregisterMcpServer(name: string, options: CallOptions = {}): Promise<void> {
    const { signal } = known('unregisterMcpServer', options, CALL);
    await this.#connection.request('unregister_mcp_server', { name: checks.text('name', name) }, nothing, { signal });
    this.#connection.mcp.unregister(name);
  }

  /** What this user has at the server; for an operator also what everybody has. */
  async stats(options: CallOptions = {}): Promise<ServerStats> {
    const { signal } = known('stats', options, CALL);
    return await this.#connection.request('stats', {}, (ok) => ok, { signal });
  }

  async #install(program: Uint8Array, options: InstallOptions, more: Fields): Promise<string> {
    const { name, version = '0.1.0', manifest, signal } = options;
    const called = { name: checks.text('name', name), version: checks.text('version', version) };
    const described = manifest === undefined ? {} : { manifest: checks.text('manifest', manifest) };
    const digest = await this.upload(program, signal === undefined ? {} : { signal });
    await this.#connection.request('install', { ...called, digest, ...described, ...more }, nothing, { signal });
    return `${name}@${version}`;
  }

  /** Requests something of what this user has, or an operator's `user`; `names` are the texts that say which it is. */
  async #requestOfOwner<T>(
    kind: string,
    names: Readonly<Record<string, string>>,
    { user, signal }: OwnerOptions,
    accept: (ok: Fields) => T,
  ): Promise<T> {
    const which = Object.fromEntries(Object.entries(names).map(([name, value]) => [name, checks.text(name, value)]));
    return await this.#connection.request(kind, { ...which, ...of(user) }, accept, { signal });
  }

  /** What is installed as `name@version`, or the versions of `name`, oldest first. */
  async #installed(program: string, signal: AbortSignal | undefined): Promise<ProgramInfo[]> {
    const [name, ...versions] = checks.text('program', program, 'a string: NAME@VERSION, or NAME').split('@');
    const version = versions.length === 0 ? null : versions.join('@');
    const installed = await this.#list('programs', {}, programOf, signal);
    return installed.filter((found) => found.name === name && (version === null || found.version === version));
  }

  /** What this user or everybody has of a kind: the method, its request and the list of its answer have one name. */
  async #listOfUsers<T>(name: string, options: ListOptions, read: (fields: Fields) => T): Promise<T[]> {
    const { allUsers = false, signal } = known(name, options, LIST);
    return await this.#list(name, everybody(allUsers), read, signal);
  }

  async #list<T>(name: string, fields: Fields, read: (fields: Fields) => T, signal: AbortSignal | undefined): Promise<T[]> {
    return await this.#connection.request(name, fields, (ok) => listOf(ok, name).map(read), { signal });
  }
}

/**
 * Connects to the server at `address` (`ws://HOST:PORT`, or `HOST:PORT`). Close the client when you are done with it.
 * @throws PieError `authentication-required`, `authentication-failed` and `limit-attempts` where the server does not
 * let one in, `connection-failed` where there is no server or it refuses the page, `protocol-version` where it is of
 * another version, `invalid-argument` for what is not an address, a user, a key or a time.
 */
export async function connect(address: string = DEFAULT_ADDRESS, options: ConnectOptions = {}): Promise<Client> {
  checks.text('address', address, "a string, as in 'ws://127.0.0.1:8080'");
  known('connect', options, CONNECT);
  const timeoutS = checks.timeS('timeoutS', options.timeoutS ?? DEFAULT_TIMEOUT_S);
  const who = await identity(options);
  const webSocket = options.webSocket === undefined ? platformWebSocket() : checks.classOf('webSocket', options.webSocket);
  const { socket, incoming, hello } = await openSocket(webSocketOf(address), who, { timeoutS, webSocket, signal: options.signal });
  return new Client(new Connection(socket, incoming, hello));
}

/** `ws://HOST:PORT` for `HOST:PORT` alone. What is not an address stays as it is: connecting says so. */
function webSocketOf(address: string): string {
  return /^(\[[\da-f:.]+\]|[^\s/:?#[\]@]+):\d{1,5}(\/.*)?$/i.test(address) ? `ws://${address}` : address;
}

async function identity({ user, key, privateKey }: ConnectOptions): Promise<Identity> {
  if (user !== undefined) checks.text('user', user);
  if (key !== undefined && typeof key !== 'string') {
    throw new PieError('invalid-argument', `key is a ${typeof key}; give a string`, { argument: 'key' });
  }
  if (privateKey !== undefined) {
    checkedPrivateKey(privateKey);
    const argument = { argument: 'privateKey' };
    if (key !== undefined) throw new PieError('invalid-argument', 'a key and a private key were given; give one of them', argument);
    if (user === undefined) {
      throw new PieError('invalid-argument', 'a private key counts together with a user; give `user`, too', argument);
    }
  }
  return { user, key: key === undefined ? undefined : await checkedKey(key), privateKey };
}

function launchFields(program: string, options: LaunchOptions): Fields {
  const { input = null, args = [], seed, tokenBudget, credits, limits, programs, detached = false, windowBytes } = options;
  return {
    program: checks.text('program', program, PROGRAM),
    input: new Raw(checks.json('input', input)),
    args: checks.texts('args', args),
    detached: checks.flag('detached', detached),
    attach: true,
    ...(seed === undefined ? {} : { seed: checks.whole('seed', seed) }),
    ...(tokenBudget === undefined ? {} : { token_budget: checks.whole('tokenBudget', tokenBudget) }),
    ...(credits === undefined ? {} : { credits: checks.credits('credits', credits) }),
    ...(limits === undefined ? {} : { limits: checks.limits('limits', limits) }),
    ...(programs === undefined ? {} : { programs: checks.programs('programs', programs) }),
    ...windowOf(windowBytes),
  };
}

function windowOf(windowBytes: number | bigint | undefined): Fields {
  return windowBytes === undefined ? {} : { window_bytes: checks.whole('windowBytes', windowBytes, 1n) };
}

function ofProcess(pid: number): Fields {
  return { pid: checks.whole('pid', pid, 1n) };
}

function everybody(allUsers: boolean): Fields {
  return checks.flag('allUsers', allUsers) ? { all_users: true } : {};
}

function of(user: string | undefined): Fields {
  return user === undefined ? {} : { user: checks.text('user', user) };
}
