/** The channel to the client that launched the program. */
/** Sends a message: a string as it is, anything else as JSON. A slow client suspends the program. */
export declare function send(message: unknown): void;
/**
 * Waits for the next message or signal. What was sent before the program asks is kept.
 * @throws SessionClosed after a disconnect.
 */
export declare function receive(): Promise<string>;
