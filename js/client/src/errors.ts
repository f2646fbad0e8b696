/** The error of the client. */

import type { ErrorCode } from './error-codes.js';

/** What `details` of an error holds: the values behind its message. */
export type Details = Readonly<Record<string, unknown>>;

/**
 * A mistake or a failure with a stable code, the same in every client: `connection-failed`, `unknown-program`,
 * `limit-cpu` and so on. The message names the value, the limit and the remedy.
 */
export class PieError extends Error {
  override readonly name = 'PieError';
  /** A code of `docs/reference/errors.md`; a server of a later version may have others. */
  readonly code: ErrorCode | (string & {});
  readonly details: Details;

  constructor(code: ErrorCode | (string & {}), message: string, details: Details = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/** A copy to throw: one error that is thrown at many places would have the stack of one of them. */
export function again(error: PieError): PieError {
  return new PieError(error.code, error.message, error.details);
}

/** The message of a failed program, behind the type of its exception: `KeyError: 'x'` says more than `'x'`. */
export function described(code: string, message: string, kind: string | null): string {
  if (code !== 'program-error' || kind === null || kind === '' || kind === code) return message;
  return message === '' ? kind : `${kind}: ${message}`;
}

/** The error of a server that sent what is not a message. */
export function broken(what: string): PieError {
  return new PieError(
    'protocol-error',
    `the server sent what is not a message of protocol 1: ${what}; check that the address is that of \`pie serve\``,
  );
}
