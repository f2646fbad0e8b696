/** The channel to the client that launched the program. */
/** Sends a message: a string as it is, anything else as JSON. A slow client suspends the program. */
export declare function send(message: unknown): void;
/**
 * Waits for the next message or signal. What was sent before the program asks is kept.
 * @throws SessionClosed after a disconnect.
 */
export declare function receive(): Promise<string>;
/**
 * Sends bytes: one `File` event of the client, in order with the messages. A slow client suspends the program.
 * @throws TypeError where `data` is no Uint8Array.
 */
export declare function sendFile(data: Uint8Array): void;
/**
 * Waits for the next file. Files wait in a queue of their own; what was sent before the program asks is kept.
 * @throws SessionClosed after a disconnect.
 */
export declare function receiveFile(): Promise<Uint8Array>;
