/**
 * The SDK of programs that run beside the model. A program exports `async function main(input)`; what it answers is
 * sent as JSON. One that answers requests by HTTP has a default export with a function `fetch`.
 */

export { Adapter, type AdapterChange, type AdapterOptions } from './adapter.js';
export type { Brle, Seed, Stops, Tokens } from './arguments.js';
export * as brle from './brle.js';
export * as chat from './chat.js';
export type { Constrain, Constraint, Schema } from './constraint.js';
export { Context } from './context.js';
export { ERROR_CODES, type ErrorCode } from './error-codes.js';
export { InferletError, SessionClosed } from './errors.js';
export * as files from './files.js';
export { Forward } from './forward.js';
export { GenStep, Generator, type GenerateOptions } from './generator.js';
export { anyJson, ebnf, Grammar, grammar, GrammarConstraint, jsonSchema, Matcher, regex, type SchemaText } from './grammar.js';
export * as httpServer from './http-server.js';
export * as mcp from './mcp.js';
export { McpSession } from './mcp.js';
export * as messaging from './messaging.js';
export { Subscription } from './messaging.js';
export { Model } from './model.js';
export { Output, ProbeHandle, SampleHandle, type FinishReason, type RawOutput, type Slot, type Speculation } from './output.js';
export { Distribution, Embedding, Entropy, Logits, Logprob, Logprobs, type Probe } from './probes.js';
export * as reasoning from './reasoning.js';
export * as runtime from './runtime.js';
export { Child, type SpawnOptions } from './runtime.js';
export { Sampler, type SamplerOptions } from './sampler.js';
export * as scheduling from './scheduling.js';
export * as session from './session.js';
export type { Speculator } from './speculator.js';
export { TextStream } from './texts.js';
export { Tokenizer } from './tokenizer.js';
export * as tools from './tools.js';
export { JsonCutError, type CollectJsonOptions, type SchemaSource } from './typed.js';
