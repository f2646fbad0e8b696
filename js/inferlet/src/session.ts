/** The channel to the client that launched the program. */

import * as host from 'pie:host';
import { checkArity, toBytes, toText } from './arguments.js';
import { wrongType } from './errors.js';
import { toJson } from './json.js';
import { Pending } from './pending.js';

/**
 * Sends one value: a string as it is, anything else as JSON. It is one `Stdout` event of the client, whose `form` says
 * which of the two it is. A slow client suspends the program.
 * @throws TypeError where `message` is undefined, as that of a promise that was not awaited, and where more is given
 * than it takes.
 */
export function send(message: unknown): void;
export function send(message: unknown, ...surplus: unknown[]): void {
  if (surplus.length > 0) checkArity(1 + surplus.length, 1, 'session.send');
  if (message === undefined) {
    throw wrongType('the message is undefined; send null for nothing, and await what it is read from: (await step.execute()).tokens');
  }
  if (typeof message === 'string') host.send(toText(message, 'message'));
  else host.sendJson(toJson(message, 'the message', 'invalid-argument'));
}

/**
 * Tells the client something beside the output: its `Message` event, in order with the others. It is in no log, and
 * `pie run` does not print it. A slow client suspends the program.
 */
export function message(text: string): void {
  checkArity(arguments.length, 1, 'session.message');
  host.message(toText(text, 'text'));
}

/**
 * Waits for the next message or signal. What was sent before the program asks is kept. A wait that is given up takes
 * none.
 * @throws SessionClosed after a disconnect, and at once in a program that another one has started: it has no client.
 */
export function receive(): Promise<string> {
  return new Pending((settle: host.Settle<string>) => host.receive(settle), (text) => text);
}

/** Signals and messages come in one order, through one queue; this name says that a program expects a signal. */
export const receiveSignal = receive;

/**
 * Sends bytes: one `File` event of the client, in order with the messages. A slow client suspends the program.
 * @throws TypeError where `data` is not a Uint8Array.
 */
export function sendFile(data: Uint8Array): void {
  checkArity(arguments.length, 1, 'session.sendFile');
  host.sendFile(toBytes(data, 'the file'));
}

/**
 * Waits for the next file. Files wait in a queue of their own; what was sent before the program asks is kept.
 * @throws SessionClosed after a disconnect.
 */
export function receiveFile(): Promise<Uint8Array> {
  return new Pending((settle: host.Settle<Uint8Array>) => host.receiveFile(settle), (data) => data);
}
