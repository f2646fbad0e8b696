/**
 * The SDK of programs that run beside the model. A program exports `async function main(input)`; what it answers is
 * sent as JSON.
 */

export type { Seed, Tokens } from './arguments.js';
export * as chat from './chat.js';
export { Context } from './context.js';
export { ERROR_CODES, type ErrorCode } from './error-codes.js';
export { InferletError, SessionClosed } from './errors.js';
export { GenStep, Generator, Output, type FinishReason, type GenerateOptions } from './generator.js';
export { Model } from './model.js';
export * as runtime from './runtime.js';
export { Sampler, type SamplerOptions } from './sampler.js';
export * as session from './session.js';
export { Tokenizer } from './tokenizer.js';
