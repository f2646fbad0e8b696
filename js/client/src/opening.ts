/** Opening a connection: the WebSocket, the hellos, and what to tell the user when it does not come about. */

import { PieError } from './errors.js';
import type { PrivateKey } from './signing.js';
import { type Fields, type Hello, PROTOCOL, decode, encode, errorOf, helloOf, numberOf, textOf } from './wire.js';
import { reasonOf } from './waiting.js';

/** What a client calls itself. */
export const CLIENT_NAME = 'pie-js/0.1.0';

const SCHEMES = ['ws:', 'wss:'];
const TLS_SCHEME = /^wss:/i;
const CLOSE_NORMAL = 1000;
const CLOSE_ABNORMAL = 1006;
// A server says hello, may challenge before and drain behind that; the connection takes what follows at once.
const MAX_EARLY = 16;

/** What a client uses of a WebSocket: that of the platform has it, and so has that of the package `ws`. */
export interface WebSocketLike {
  binaryType: string;
  readonly bufferedAmount: number;
  onopen: ((event: unknown) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onerror: ((event: unknown) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
}

/** A class of WebSockets. */
export type WebSocketClass = new (address: string) => WebSocketLike;

/** Who a client says that it is, and how it proves that. */
export interface Identity {
  readonly user: string | undefined;
  readonly key: string | undefined;
  readonly privateKey: PrivateKey | undefined;
}

/** How a connection is opened. */
export interface Opening {
  readonly timeoutS: number;
  readonly webSocket: WebSocketClass;
  readonly signal: AbortSignal | undefined;
}

/** What a socket told: a message, or its end. */
type Told = { readonly data: unknown } | { readonly code: number; readonly reason: string };

/**
 * What comes from a socket, in order, for one reader: first the hellos, one at a time, then the connection that is
 * handed all of it. Several messages may come in one turn of the event loop.
 */
export class Incoming {
  #told: Told[] = [];
  #hear: ((told: Told) => void) | null = null;
  #hasEnded = false;
  readonly #socket: WebSocketLike;

  constructor(socket: WebSocketLike) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#heard(data);
    socket.onclose = ({ code, reason }) => this.#end(code, reason);
    // The end follows, and says more; but for Node 20, which tells of no end where a socket could not be opened.
    socket.onerror = () => void setTimeout(() => this.#end(CLOSE_ABNORMAL, ''));
  }

  /** The next that it tells. */
  next(): Promise<Told> {
    const first = this.#told.shift();
    if (first !== undefined) return Promise.resolve(first);
    return new Promise((resolve) => {
      this.#hear = (told) => {
        this.#hear = null;
        resolve(told);
      };
    });
  }

  /** Hands on all that it has told and will tell. */
  handOn(onMessage: (data: unknown) => void, onClose: (code: number, reason: string) => void): void {
    this.#hear = (told) => ('data' in told ? onMessage(told.data) : onClose(told.code, told.reason));
    const before = this.#told;
    this.#told = [];
    for (const told of before) this.#hear(told);
  }

  #heard(data: unknown): void {
    if (this.#hasEnded) return;
    if (this.#told.length < MAX_EARLY) {
      this.#tell({ data });
    } else {
      this.#end(CLOSE_ABNORMAL, `it sent more than ${MAX_EARLY} messages before they were read`);
      this.#socket.close(CLOSE_NORMAL);
    }
  }

  #end(code: number, reason: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#tell({ code, reason });
  }

  #tell(told: Told): void {
    if (this.#hear === null) this.#told.push(told);
    else this.#hear(told);
  }
}

/** The class of WebSockets of the platform. PieError `unsupported` where it has none. */
export function platformWebSocket(): WebSocketClass {
  const found = (globalThis as { WebSocket?: unknown }).WebSocket;
  if (typeof found !== 'function') {
    const remedy = 'use Node 22, start Node 20 with --experimental-websocket, or give the class of the package ws as `webSocket`';
    throw new PieError('unsupported', `this platform has no WebSocket; ${remedy}`);
  }
  return found as WebSocketClass;
}

/**
 * Connects and exchanges hellos.
 * @throws PieError `connection-failed` where that is not possible, `protocol-version` where the two do not understand
 * each other, or the error with which the server refused.
 */
export async function openSocket(
  address: string,
  who: Identity,
  opening: Opening,
): Promise<{ socket: WebSocketLike; incoming: Incoming; hello: Hello }> {
  const host = hostOf(address);
  const socket = made(opening.webSocket, address);
  socket.binaryType = 'arraybuffer';
  const incoming = new Incoming(socket);
  try {
    const hello = await within(opening, address, greet(socket, incoming, { address, host, who }));
    return { socket, incoming, hello };
  } catch (error) {
    socket.close(CLOSE_NORMAL);
    throw error;
  }
}

/** A socket; a page of `https://` may not make one of `ws://`, and no address has a fragment. */
function made(webSocket: WebSocketClass, address: string): WebSocketLike {
  try {
    return new webSocket(address);
  } catch (error) {
    throw failed(address, `the platform refuses it (${String(error)}); check the address, and use wss:// in a page of https://`);
  }
}

interface Called {
  readonly address: string;
  readonly host: string;
  readonly who: Identity;
}

async function greet(socket: WebSocketLike, incoming: Incoming, { address, host, who }: Called): Promise<Hello> {
  const opened = new Promise<null>((resolve) => {
    socket.onopen = () => resolve(null);
  });
  const first = incoming.next();
  const early = await Promise.race([opened, first]);
  if (early !== null) throw failed(address, notOpened(early) + withoutTls(address));
  const proof = { user: who.user, key: who.key, public_key: who.privateKey?.publicLine };
  const given = Object.entries(proof).filter(([, value]) => value !== undefined);
  socket.send(encode({ type: 'hello', protocol: PROTOCOL, client: CLIENT_NAME, ...Object.fromEntries(given) }));
  let answer = answered(await first, address);
  if (who.privateKey !== undefined && answer['type'] === 'challenge') {
    const signature = await who.privateKey.signHello(host, who.user ?? '', textOf(answer, 'nonce'));
    socket.send(encode({ type: 'proof', signature }));
    answer = answered(await incoming.next(), address);
  }
  const protocol = numberOf(answer, 'protocol');
  if (protocol !== PROTOCOL) {
    const server = JSON.stringify(answer['server'] ?? '');
    const spoken = `the server ${server} speaks protocol ${protocol}, and this client protocol ${PROTOCOL}`;
    const message = `${spoken}; install the same version of both`;
    throw new PieError('protocol-version', message);
  }
  return helloOf(answer);
}

/** A message of the server; PieError where it is a refusal, or the end. */
function answered(told: Told, address: string): Fields {
  if (!('data' in told)) {
    const said = told.reason === '' ? '' : ` (${told.reason})`;
    throw failed(address, `what listens there closed the connection before it said hello${said}; check that it is \`pie serve\``);
  }
  const { fields } = decode(told.data);
  const error = errorOf(fields);
  if (error !== null) throw error;
  return fields;
}

/** What a race with the opening of a socket was lost to. */
function notOpened(told: Told): string {
  if ('data' in told) return 'what listens there does not speak WebSocket; check that it is `pie serve`';
  // A server refuses pages of other origins, and where there is no page there is nothing to refuse.
  return 'location' in globalThis
    ? 'nothing that speaks WebSocket answers there, or it refuses this page; check the address, that `pie serve` runs, and its server.allowed_origins'
    : 'nothing that speaks WebSocket answers there; check the address, and that `pie serve` runs';
}

/** What to write for a server without TLS: a platform does not tell why TLS has failed. */
function withoutTls(address: string): string {
  return TLS_SCHEME.test(address) ? '; where the server answers without TLS, write ws:// in place of wss://' : '';
}

/** Waits within the time of an opening, and as long as nobody has given it up. */
async function within<T>({ timeoutS, signal }: Opening, address: string, work: Promise<T>): Promise<T> {
  work.catch(() => undefined); // who waits may be told of something else
  signal?.throwIfAborted();
  let stop = (): void => undefined;
  const ended = new Promise<never>((_, reject) => {
    const late = `there was no answer within ${timeoutS} s; check the address and that \`pie serve\` runs there`;
    const timer = setTimeout(() => reject(failed(address, late + withoutTls(address))), timeoutS * 1000);
    const aborted = (): void => reject(reasonOf(signal));
    signal?.addEventListener('abort', aborted, { once: true });
    stop = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', aborted);
    };
  });
  try {
    return await Promise.race([work, ended]);
  } finally {
    stop();
  }
}

/** How this client calls the server: it is signed, so that no other server can use the signature. */
function hostOf(address: string): string {
  try {
    const url = new URL(address);
    if (SCHEMES.includes(url.protocol)) return url.host;
  } catch {
    // Not the address of anything.
  }
  throw failed(address, 'it is not the address of a server; write it as ws://HOST:PORT');
}

function failed(address: string, reason: string): PieError {
  return new PieError('connection-failed', `cannot connect to ${JSON.stringify(address)}: ${reason}`, { address });
}
