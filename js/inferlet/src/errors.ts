/** The errors that calls of the engine throw. */

import { registerErrors } from 'pie:host';
import type { ErrorCode } from './error-codes.js';

/**
 * An error of the engine: a stable code, a message that names value, limit and remedy, and the values behind the
 * message.
 */
export class InferletError extends Error {
  /** One of the codes of the reference. */
  readonly code: ErrorCode;
  /** The values behind the message; empty when there are none. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }

  static {
    this.prototype.name = 'InferletError';
  }
}

/** The client has disconnected: the error `session-closed`. */
export class SessionClosed extends InferletError {
  static {
    this.prototype.name = 'SessionClosed';
  }
}

/**
 * A TypeError with the code of a wrong argument.
 * @internal
 */
export function wrongType(message: string): TypeError {
  return Object.assign(new TypeError(message), { code: 'invalid-argument' satisfies ErrorCode, details: {} });
}

/**
 * Has loops and lists that do not wait refuse the objects of a class, with the loop that waits.
 * @internal
 */
export function refuseInPlainLoops(kind: abstract new (...values: never[]) => object, loop: string): void {
  Object.defineProperty(kind.prototype, Symbol.iterator, {
    value: (): never => {
      throw wrongType(`a loop without \`await\` does not wait for what comes; write \`${loop}\``);
    },
  });
}

/**
 * Has texts, sums and comparisons refuse the objects of a class, which would be `[object Object]`.
 * @internal
 */
export function refuseInTexts(kind: { readonly prototype: object }, message: string): void {
  Object.defineProperty(kind.prototype, Symbol.toPrimitive, {
    value: (): never => {
      throw wrongType(message);
    },
  });
}

/**
 * Whether the stack of an error shows a place in the program: functions of the SDK stand in it without a file.
 * @internal
 */
export function leadsThroughProgram(error: Error): boolean {
  const frames = (error.stack ?? '').split('\n').filter((line) => /:\d+:\d+\)?$/.test(line));
  return frames.some((line) => !line.includes('(<null>'));
}

registerErrors((code, message, details) => {
  const kind = code === 'session-closed' ? SessionClosed : InferletError;
  return new kind(code as ErrorCode, message, JSON.parse(details) as Record<string, unknown>);
});
