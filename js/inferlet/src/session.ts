/** The channel to the client that launched the program. */

import * as host from 'pie:host';
import { toBytes, toText } from './arguments.js';
import { toJson } from './json.js';
import { Pending } from './pending.js';

/** Sends a message: a string as it is, anything else as JSON. A slow client suspends the program. */
export function send(message: unknown): void {
  const text = typeof message === 'string' ? toText(message, 'message') : toJson(message, 'the message', 'invalid-argument');
  host.send(text);
}

/**
 * Waits for the next message or signal. What was sent before the program asks is kept.
 * @throws SessionClosed after a disconnect.
 */
export function receive(): Promise<string> {
  return new Pending((settle: host.Settle<string>) => host.receive(settle), (text) => text);
}

/** Signals and messages come in one order, through one queue; this name says that a program expects a signal. */
export const receiveSignal = receive;

/**
 * Sends bytes: one `File` event of the client, in order with the messages. A slow client suspends the program.
 * @throws TypeError where `data` is no Uint8Array.
 */
export function sendFile(data: Uint8Array): void {
  host.sendFile(toBytes(data, 'the file'));
}

/**
 * Waits for the next file. Files wait in a queue of their own; what was sent before the program asks is kept.
 * @throws SessionClosed after a disconnect.
 */
export function receiveFile(): Promise<Uint8Array> {
  return new Pending((settle: host.Settle<Uint8Array>) => host.receiveFile(settle), (data) => data);
}
