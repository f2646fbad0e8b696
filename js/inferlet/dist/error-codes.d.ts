/** Every error code, in the order of the reference. */
export declare const ERROR_CODES: readonly ["unknown-model", "unknown-program", "invalid-program", "program-error", "deadlock", "invalid-input", "invalid-output", "invalid-argument", "invalid-token", "invalid-sampler", "empty-context", "context-busy", "context-released", "context-full", "truncate-range", "out-of-pages", "generator-retired", "step-pending", "future-taken", "session-closed", "limit-memory", "limit-cpu", "limit-wall", "limit-stack", "limit-resources", "limit-message", "limit-queue", "trap", "cancelled", "driver-failed", "bad-logits", "engine-stopped", "invalid-model", "template-error", "invalid-config", "internal"];
/** The stable name of what went wrong. */
export type ErrorCode = (typeof ERROR_CODES)[number];
