/**
 * The MCP servers that a client offers to the programs that it launches. The server of Pie speaks to them over the
 * connection: it asks for a link, and lines of JSON-RPC travel both ways.
 */

import { PieError } from './errors.js';
import { type Carry, HEAD_BYTES, MAX_LINKS, Queue, type Running, type Waiting, doesNotRead, tooLong } from './mcp-link.js';
import { type McpCommand, startProcess } from './mcp-process.js';
import { type Fields, numberOf, textOf } from './wire.js';

// JSON may write a byte of a line as six; most are written as they are.
const ESCAPED = 2;

/** The way between an MCP server of this program and those who call it: a transport, as the MCP SDK has them. */
export interface McpTransport {
  /** Gets each message of JSON-RPC that comes. Set it before `start`. */
  onmessage?: ((message: unknown) => void) | undefined;
  /** Learns of the end. */
  onclose?: (() => void) | undefined;
  /** Learns of a message that could not be taken. */
  onerror?: ((error: Error) => void) | undefined;
  /** Lets messages come. */
  start(): Promise<void>;
  /** Sends a message of JSON-RPC. */
  send(message: unknown): Promise<void>;
  /** Ends it: calls that wait for an answer fail. */
  close(): Promise<void>;
}

/** An MCP server of this program, in browsers too: an `McpServer` of the MCP SDK is one. */
export interface McpHandler {
  /** Serves what comes by a transport. It is called when a program asks for the server, and again after an end. */
  connect(transport: McpTransport): Promise<void> | void;
}

/** An MCP server: a process that the client starts, or an object of this program. */
export type McpServer = McpCommand | McpHandler;

/** Whether the client starts it as a process. */
export function isCommand(server: McpServer): server is McpCommand {
  return 'command' in server;
}

/** The servers of one connection: those that are registered, and a link for each that runs. */
export class McpServers {
  readonly #say: (type: string, fields: Fields) => Promise<void>;
  readonly #lineBytes: number;
  readonly #servers = new Map<string, McpServer>();
  readonly #links = new Map<number, Running>();
  readonly #waiting: Waiting = { nBytes: 0 };

  /** `say` sends a message of a type with these fields. */
  constructor(say: (type: string, fields: Fields) => Promise<void>, frameBytes: number) {
    this.#say = say;
    this.#lineBytes = Math.max(HEAD_BYTES, Math.floor(frameBytes / ESCAPED) - HEAD_BYTES);
  }

  /** A server of that name is started so from now on. Answers the one whose place it takes. */
  register(name: string, server: McpServer): McpServer | undefined {
    const before = this.#servers.get(name);
    this.#servers.set(name, server);
    return before;
  }

  /** There is no server of that name any more; links that are open stay. */
  unregister(name: string): void {
    this.#servers.delete(name);
  }

  /**
   * Starts a server, hands it a line or ends it, as the server of Pie asks. It never waits. Throws PieError
   * `protocol-error` for a start by a number whose server has not ended, and `limit-mcp-calls` for a start beyond the
   * most links.
   */
  take(type: string, fields: Fields): void {
    const number = numberOf(fields, 'link');
    const link = this.#links.get(number);
    if (type === 'mcp_start') this.#start(number, textOf(fields, 'server'));
    // One that has ended is not known: the server of Pie is about to hear of it.
    else if (type === 'mcp_line') link?.put(textOf(fields, 'text'));
    else link?.stop();
  }

  /** Ends every server, soon. */
  stop(): void {
    for (const link of this.#links.values()) link.stop();
  }

  /** Ends every server, and waits for that. */
  async close(): Promise<void> {
    this.stop();
    await Promise.all(Array.from(this.#links.values(), (link) => link.ended));
  }

  #start(number: number, name: string): void {
    if (this.#links.has(number)) {
      const message = `the server of Pie started an MCP server as the link ${number}, which is still open; connect again`;
      throw new PieError('protocol-error', message);
    }
    if (this.#links.size >= MAX_LINKS) {
      const message = `the server of Pie started one more MCP server than the ${MAX_LINKS} that this client runs at once; connect again`;
      throw new PieError('limit-mcp-calls', message);
    }
    const link = this.#link(number, this.#servers.get(name));
    this.#links.set(number, link);
    // It stays known until its end was said, so that what is still to be said is bounded, too.
    void link.ended
      .then((why) => this.#say('mcp_end', { link: number, text: why }))
      .finally(() => this.#links.delete(number));
  }

  #link(number: number, server: McpServer | undefined): Running {
    if (server === undefined) return absent();
    const carry = (line: string): Promise<void> => this.#say('mcp_line', { link: number, text: line });
    return isCommand(server)
      ? startProcess(server, this.#waiting, carry, this.#lineBytes)
      : new HandlerLink(server, this.#waiting, carry, this.#lineBytes);
  }
}

/** The link of a server that there is not. */
function absent(): Running {
  return { ended: Promise.resolve('this client has no such server'), put: () => undefined, stop: () => undefined };
}

/** The link of a server of this program. */
class HandlerLink implements Running, McpTransport {
  onmessage: ((message: unknown) => void) | undefined;
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  readonly ended: Promise<string>;
  readonly #carry: Carry;
  readonly #lineBytes: number;
  readonly #queue: Queue;
  /** Lines that came before the start; null since then. */
  #early: string[] | null = [];
  #isOver = false;
  #hasEnded: (why: string) => void = () => undefined;

  constructor(handler: McpHandler, waiting: Waiting, carry: Carry, lineBytes: number) {
    this.#queue = new Queue(waiting);
    this.#carry = carry;
    this.#lineBytes = lineBytes;
    this.ended = new Promise((resolve) => {
      this.#hasEnded = resolve;
    });
    // Not in this turn: what comes from the server of Pie is dealt with first.
    void Promise.resolve()
      .then(() => handler.connect(this))
      .catch((error: unknown) => this.#end(`it cannot be started (${String(error)})`));
  }

  put(line: string): void {
    if (this.#isOver) return;
    if (this.#early === null) {
      this.#take(line);
      return;
    }
    const full = this.#queue.enter(line);
    if (full === null) this.#early.push(line);
    else this.#end(doesNotRead(full));
  }

  stop(): void {
    this.#end('it was ended');
  }

  start(): Promise<void> {
    const early = this.#early ?? [];
    this.#early = null;
    this.#queue.end();
    for (const line of early) this.#take(line);
    return Promise.resolve();
  }

  async send(message: unknown): Promise<void> {
    if (this.#isOver) throw new Error('this link of an MCP server has ended; serve the next one');
    const line = JSON.stringify(message);
    if (new TextEncoder().encode(line).length <= this.#lineBytes) {
      await this.#carry(line);
      return;
    }
    const id = (message as { id?: unknown } | null)?.id;
    if (typeof id === 'number' || typeof id === 'string') await this.#carry(tooLong(JSON.stringify(id), this.#lineBytes));
    else throw new Error(`a message is longer than the ${this.#lineBytes} bytes that this client carries; send less`);
  }

  close(): Promise<void> {
    this.#end('it ended');
    return Promise.resolve();
  }

  /** Hands a message on. What the server itself throws is its own, and not of what came over the connection. */
  #take(line: string): void {
    queueMicrotask(() => {
      let message: unknown;
      try {
        message = JSON.parse(line);
      } catch (error) {
        this.onerror?.(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      this.onmessage?.(message);
    });
  }

  #end(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#early = null;
    this.#queue.end();
    this.#hasEnded(why);
    queueMicrotask(() => this.onclose?.());
  }
}
