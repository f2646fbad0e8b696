/**
 * Servers of MCP, the Model Context Protocol: their tools, resources and prompts. There are those that the operator has
 * configured, and those that the client has registered that launched the program.
 *
 * Every method returns the server's own JSON text and blocks the whole program meanwhile; the one that ends in `Async`
 * is awaited, and lets the rest of the program run. What fails has a code: `unknown-mcp-server`, `mcp-unavailable`,
 * `mcp-protocol`, `mcp-error`, `mcp-closed`, `limit-mcp-calls`, `limit-mcp-bytes` or `limit-mcp-time`. A tool that
 * fails says so in its result, by `isError`.
 */

import * as host from 'pie:host';
import { toText } from './arguments.js';
import { refuseInJson, toJson } from './json.js';
import { Pending } from './pending.js';

/** Arguments of a tool or a prompt: an object, or its JSON text. */
export type McpArguments = string | Readonly<Record<string, unknown>>;

/** What a session asks for. */
type Ask = (settle: host.Settle<string>) => host.Wait;

/** The names of the servers that this program can connect to, sorted. */
export function availableServers(): string[] {
  return host.availableServers();
}

/**
 * Opens a session with a server, which is started where it does not run.
 * @throws InferletError `unknown-mcp-server`, `mcp-unavailable`, `mcp-protocol`, `limit-mcp-calls` or `limit-mcp-time`.
 */
export function connect(name: string): McpSession {
  const raw = host.connect(toText(name, 'name'));
  try {
    return new McpSession(raw, blocked((settle) => raw.hello(settle)));
  } catch (error) {
    raw.close();
    throw error;
  }
}

/** As `connect`, and lets the rest of the program run meanwhile. */
export async function connectAsync(name: string): Promise<McpSession> {
  const raw = host.connect(toText(name, 'name'));
  try {
    return new McpSession(raw, await awaited((settle) => raw.hello(settle)));
  } catch (error) {
    raw.close();
    throw error;
  }
}

/** A session with a server; `connect` opens one. `using` closes it at the end of its block. */
export class McpSession implements Disposable {
  readonly #raw: host.McpSessionHandle;
  /** What the server said of itself, `{"protocolVersion", "capabilities", "serverInfo", ...}`. */
  readonly serverInfo: string;

  /** @internal */
  constructor(raw: host.McpSessionHandle, serverInfo: string) {
    this.#raw = raw;
    this.serverInfo = serverInfo;
  }

  /** The tools of the server, `{"tools": [...]}`. `equip` takes each of them as it is. */
  listTools(): string {
    return blocked((settle) => this.#raw.listTools(settle));
  }

  /** As `listTools`, awaited. */
  listToolsAsync(): Promise<string> {
    return awaited((settle) => this.#raw.listTools(settle));
  }

  /** Calls a tool with its arguments: `{"content": [...], "isError"?: boolean}`. */
  callTool(name: string, args?: McpArguments): string {
    return blocked(this.#toolCall(name, args));
  }

  /** As `callTool`, awaited. A promise that is given up gives the call up at the server too. */
  callToolAsync(name: string, args?: McpArguments): Promise<string> {
    return awaited(this.#toolCall(name, args));
  }

  /** The resources of the server, `{"resources": [...]}`. */
  listResources(): string {
    return blocked((settle) => this.#raw.listResources(settle));
  }

  /** As `listResources`, awaited. */
  listResourcesAsync(): Promise<string> {
    return awaited((settle) => this.#raw.listResources(settle));
  }

  /** Reads a resource: `{"contents": [...]}`. */
  readResource(uri: string): string {
    return blocked(this.#reading(uri));
  }

  /** As `readResource`, awaited. */
  readResourceAsync(uri: string): Promise<string> {
    return awaited(this.#reading(uri));
  }

  /** The prompts of the server, `{"prompts": [...]}`. */
  listPrompts(): string {
    return blocked((settle) => this.#raw.listPrompts(settle));
  }

  /** As `listPrompts`, awaited. */
  listPromptsAsync(): Promise<string> {
    return awaited((settle) => this.#raw.listPrompts(settle));
  }

  /** Renders a prompt with its arguments, which are texts: `{"messages": [...]}`. */
  getPrompt(name: string, args?: McpArguments): string {
    return blocked(this.#promptCall(name, args));
  }

  /** As `getPrompt`, awaited. */
  getPromptAsync(name: string, args?: McpArguments): Promise<string> {
    return awaited(this.#promptCall(name, args));
  }

  /** Ends the session; calls that are under way, and later ones, fail with `mcp-closed`. Again it does nothing. */
  close(): void {
    this.#raw.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #toolCall(name: string, args: McpArguments | undefined): Ask {
    const [tool, text] = [toText(name, 'name'), textOf(args)];
    return (settle) => this.#raw.callTool(tool, text, settle);
  }

  #promptCall(name: string, args: McpArguments | undefined): Ask {
    const [prompt, text] = [toText(name, 'name'), textOf(args)];
    return (settle) => this.#raw.getPrompt(prompt, text, settle);
  }

  #reading(uri: string): Ask {
    const text = toText(uri, 'uri');
    return (settle) => this.#raw.readResource(text, settle);
  }
}

/** Blocks the whole program until the answer is there. */
function blocked(ask: Ask): string {
  const answers: { error: Error | undefined; value: string }[] = [];
  ask((error, value) => void answers.push({ error, value })).block();
  const [answer] = answers;
  if (answer === undefined) throw new Error('the engine gave no answer');
  if (answer.error !== undefined) throw answer.error;
  return answer.value;
}

function awaited(ask: Ask): Promise<string> {
  return new Pending(ask, (text) => text);
}

/** Arguments as a JSON text, which the engine checks to be an object. */
function textOf(args: McpArguments | undefined): string {
  if (args === undefined) return '';
  return typeof args === 'string' ? toText(args, 'args') : toJson(args, 'args', 'invalid-argument');
}

refuseInJson(McpSession, 'send what its calls give');
