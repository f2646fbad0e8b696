/** The channel to the client that launched the program. */
import * as host from 'pie:host';
import { toJson } from './json.js';
import { Pending } from './pending.js';
/** Sends a message: a string as it is, anything else as JSON. A slow client suspends the program. */
export function send(message) {
    host.send(typeof message === 'string' ? message.toWellFormed() : toJson(message, 'the message', 'invalid-argument'));
}
/**
 * Waits for the next message or signal. What was sent before the program asks is kept.
 * @throws SessionClosed after a disconnect.
 */
export function receive() {
    return new Pending((settle) => host.receive(settle), (text) => text);
}
