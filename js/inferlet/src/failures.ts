/** Failures that do not end the program: they are told on standard error. */

import * as host from 'pie:host';

/** The text of a failure. The runtime has better words than these, which it lends. */
let textOf = (thrown: unknown): string => (thrown instanceof Error ? `${thrown}\n${thrown.stack ?? ''}` : `${printable(thrown)}\n`);

/**
 * Has failures told in the words of `describe`.
 * @internal
 */
export function tellBy(describe: (thrown: unknown) => string): void {
  textOf = describe;
}

/**
 * Tells of a failure, whatever was thrown.
 * @internal
 */
export function tell(thrown: unknown): void {
  let text: string;
  try {
    text = textOf(thrown);
  } catch {
    text = 'Error: the program threw something that cannot be shown'; // its message or its stack may throw
  }
  host.write('stderr', `${text.trimEnd()}\n`.toWellFormed());
}

/**
 * A value in a message.
 * @internal
 */
export function printable(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return tagOf(value);
  }
}

function tagOf(value: unknown): string {
  try {
    return Object.prototype.toString.call(value);
  } catch {
    return '[object Object]'; // a Proxy may refuse to be asked
  }
}
