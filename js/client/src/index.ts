/**
 * The client of `pie serve` for browsers and Node.
 *
 *     const client = await connect('ws://127.0.0.1:8080');
 *     const process = await client.launch('chat@1.0', { input: { prompt: 'Hello!' } });
 *     for await (const event of process.events()) {
 *       if (event.type === 'stdout') show(event.text);
 *     }
 *     const value = await process.result();
 *     await client.close();
 */

export {
  type AttachOptions, Client, type ConnectOptions, type DaemonOptions, type InstallOptions, type LaunchOptions, type ListOptions,
  type LogsOptions, type OwnerOptions, type UploadOptions, connect,
} from './client.js';
export { ERROR_CODES, type ErrorCode } from './error-codes.js';
export { type Details, PieError } from './errors.js';
export type {
  ErrorEvent, FileEvent, LastEvent, MessageEvent, NoticeEvent, ProcessEvent, ReturnEvent, StderrEvent, StdoutEvent,
} from './events.js';
export type { AdapterInfo, ConnectionInfo, Logs, ProcessInfo, ProgramInfo, ServerStats, SnapshotInfo, TopicInfo } from './info.js';
export type { McpHandler, McpServer, McpTransport } from './mcp.js';
export type { McpCommand } from './mcp-process.js';
export type { WebSocketClass, WebSocketLike } from './opening.js';
export { type CallOptions, Process } from './process.js';
export { PrivateKey } from './signing.js';
