/** MCP servers that are processes, in Node: spoken to by their standard input and output. */

import { PieError } from './errors.js';
import { type Carry, Lines, Queue, type Running, type Waiting, doesNotRead } from './mcp-link.js';

const END_MS = 2000;
// Variables that hold the key of the user, which no program of others is given.
const KEYS = ['PIE_KEY', 'PIE_CLIENT__KEY'];

/** How a server is started. */
export interface McpCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Variables beside those of this process, of which it gets all but the user's key. */
  readonly env?: Readonly<Record<string, string>>;
  /** The folder in which it runs; that of this process if left out. */
  readonly cwd?: string;
}

/** What is used of Node, of which the types of browsers know nothing. */
interface NodeProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  readonly versions: { readonly node?: string };
  kill(pid: number, signal: string): void;
}

interface Child {
  readonly pid?: number;
  readonly exitCode: number | null;
  readonly signalCode: string | null;
  readonly stdin: {
    write(line: string, done: () => void): boolean;
    end(): void;
    on(event: 'error', hear: () => void): void;
  };
  readonly stdout: AsyncIterable<Uint8Array> & { destroy(): void };
  kill(signal: string): void;
  on(event: 'error', hear: (error: Error) => void): void;
  on(event: 'exit', hear: () => void): void;
}

interface ChildProcesses {
  spawn(command: string, args: readonly string[], options: Readonly<Record<string, unknown>>): Child;
}

/** Checks that this platform can start processes. PieError `unsupported` where it cannot. */
export function checkProcesses(): void {
  if (nodeProcess()?.versions?.node === undefined) {
    const remedy = 'give an object with a method `connect`, such as an `McpServer` of the MCP SDK';
    throw new PieError('unsupported', `this platform cannot start an MCP server as a process; ${remedy}`);
  }
}

/** Starts a server, whose lines may have `lineBytes`; what waits for it is counted in `waiting`. */
export function startProcess(command: McpCommand, waiting: Waiting, carry: Carry, lineBytes: number): Running {
  return new ProcessLink(command, waiting, carry, lineBytes);
}

class ProcessLink implements Running {
  readonly ended: Promise<string>;
  /** Lines that wait for the start, or for the process to read. */
  readonly #queue: Queue;
  #early: string[] = [];
  #child: Child | null = null;
  #isStopping = false;
  /** Which bound was met by what waits; null as long as none was. */
  #full: string | null = null;

  constructor(command: McpCommand, waiting: Waiting, carry: Carry, lineBytes: number) {
    this.#queue = new Queue(waiting);
    this.ended = this.#run(command, carry, lineBytes)
      .catch((error: unknown) => `it cannot be started (${String(error)})`)
      .finally(() => {
        this.#isStopping = true;
        this.#queue.end();
      });
  }

  put(line: string): void {
    if (this.#isStopping) return;
    this.#full = this.#queue.enter(line);
    if (this.#full !== null) {
      this.stop();
      return;
    }
    if (this.#child === null) this.#early.push(line);
    else this.#write(this.#child, line);
  }

  stop(): void {
    this.#isStopping = true;
    this.#child?.stdout.destroy();
  }

  #write(child: Child, line: string): void {
    child.stdin.write(`${line}\n`, () => this.#queue.leave(line));
  }

  async #run(command: McpCommand, carry: Carry, lineBytes: number): Promise<string> {
    // Bundlers for browsers look for names that stand in an import.
    const name = 'node:child_process';
    const { spawn } = (await import(name)) as ChildProcesses;
    if (this.#isStopping) return this.#full === null ? 'it was ended' : doesNotRead(this.#full);
    const child = spawn(command.command, command.args ?? [], {
      cwd: command.cwd,
      env: variables(command.env ?? {}),
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: hasGroups(),
    });
    let failure = '';
    const gone = new Promise<void>((resolve) => {
      child.on('exit', resolve);
      child.on('error', (error) => {
        failure = String(error);
        resolve();
      });
    });
    // A process that reads no more is told by the end of its output.
    child.stdin.on('error', () => undefined);
    this.#child = child;
    for (const line of this.#early.splice(0)) this.#write(child, line);
    await read(child, carry, lineBytes);
    this.#isStopping = true;
    await end(child, gone);
    if (failure !== '') return `it cannot be started (${failure})`;
    const why = this.#full === null ? 'it ended' : doesNotRead(this.#full);
    return `${why} (status ${child.exitCode ?? child.signalCode ?? 'unknown'})`;
  }
}

/** Carries what the process writes, until its output ends. */
async function read(child: Child, carry: Carry, lineBytes: number): Promise<void> {
  const lines = new Lines(lineBytes);
  try {
    for await (const piece of child.stdout) {
      for (const line of lines.feed(piece)) await carry(line);
    }
  } catch {
    // Its output was closed here, or broke: either is its end.
  }
}

/** Lets a process end by itself, for a while; then kills it, with what it has started. */
async function end(child: Child, gone: Promise<void>): Promise<void> {
  child.stdin.end();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, END_MS);
  });
  await Promise.race([gone, late]);
  clearTimeout(timer);
  killGroup(child);
  await gone;
}

function killGroup(child: Child): void {
  if (child.pid === undefined) return; // it was never started
  try {
    if (hasGroups()) nodeProcess()?.kill(-child.pid, 'SIGKILL');
    else child.kill('SIGKILL');
  } catch {
    // All of them have ended.
  }
}

/** Whether a process can be ended with all that it has started. */
function hasGroups(): boolean {
  return nodeProcess()?.platform !== 'win32';
}

function variables(given: Readonly<Record<string, string>>): Record<string, string | undefined> {
  const own = Object.entries(nodeProcess()?.env ?? {}).filter(([name]) => !KEYS.includes(name));
  return { ...Object.fromEntries(own), ...given };
}

function nodeProcess(): NodeProcess | undefined {
  return (globalThis as unknown as { process?: NodeProcess }).process;
}
