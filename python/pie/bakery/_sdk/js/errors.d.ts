/** The errors that calls of the engine throw. */
import type { ErrorCode } from './error-codes.js';
/** An error of the engine: a stable code, a message that names value, limit and remedy, and the values behind the message. */
export declare class InferletError extends Error {
    /** One of the codes of the reference. */
    readonly code: ErrorCode;
    /** The values behind the message; empty when there are none. */
    readonly details: Readonly<Record<string, unknown>>;
    constructor(code: ErrorCode, message: string, details?: Readonly<Record<string, unknown>>);
}
/** The client has disconnected. */
export declare class SessionClosed extends InferletError {
}
