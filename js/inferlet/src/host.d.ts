// Generated from wit/ by tools/gen_js_bridge.py; do not edit. Each item is documented where the WIT is.

declare module 'pie:host' {
  export interface Sampler {
    readonly temperature: number;
    readonly topK: number | undefined;
    readonly topP: number | undefined;
    readonly minP: number | undefined;
    readonly draws: number;
    readonly seed: bigint | undefined;
  }

  export interface Options {
    readonly maxTokens: number | undefined;
    readonly stop: Uint32Array;
    readonly seed: bigint | undefined;
    readonly autoFlush: boolean;
    readonly ignoreEos: boolean;
  }

  export type Role = 'system' | 'user' | 'assistant';

  export type FinishReason = 'stop' | 'length' | 'constraint' | 'closed';

  export interface Output {
    readonly tokens: Uint32Array;
    readonly finish: FinishReason | undefined;
  }

  export type Event =
    | { readonly type: 'idle' }
    | { readonly type: 'delta'; readonly value: string }
    | { readonly type: 'done'; readonly value: string }
    | { readonly type: 'interrupt'; readonly value: number };

  export interface TokenizerHandle {
    encode(text: string): Uint32Array;
    decode(tokens: Uint32Array): string;
    vocabSize(): number;
    vocabs(): [Uint32Array, Uint8Array[]];
    specialTokens(): [Uint32Array, Uint8Array[]];
    splitRegex(): string;
  }

  export interface ModelHandle {
    name(): string;
    tokenizer(): TokenizerHandle;
  }

  export interface ContextHandle {
    fork(): ContextHandle;
    save(name: string): void;
    snapshot(): string;
    suspend(): void;
    release(): void;
    append(tokens: Uint32Array): void;
    appendText(text: string): void;
    flush(settle: Settle<void>): Wait;
    truncate(n: number): void;
    seqLen(): number;
    cachedTokens(): number;
    pageSize(): number;
    buffer(): Uint32Array;
  }

  export interface GeneratorHandle {
    setMaxTokens(n: number): void;
    setStop(tokens: Uint32Array): void;
    addStop(tokens: Uint32Array): void;
    ignoreEos(ignore: boolean): void;
    setSeed(seed: bigint): void;
    nextStep(): number | undefined;
    step(settle: Settle<Output>): Wait;
    collectTokens(settle: Settle<Uint32Array>): Wait;
    collectText(settle: Settle<string>): Wait;
    tokensGenerated(): number;
    finishReason(): FinishReason | undefined;
  }

  export interface DecoderHandle {
    feed(tokens: Uint32Array): Event;
    feedOutput(output: Output): Event;
    finish(): Event;
    reset(): void;
  }

  export function models(): string[];
  export function version(): string;
  export function instanceId(): string;
  export function username(): string;
  export function args(): string[];
  export function launchSeed(): bigint;
  export function modelLoad(name: string): ModelHandle;
  export function contextCreate(model: ModelHandle): ContextHandle;
  export function contextOpen(model: ModelHandle, name: string): ContextHandle;
  export function contextTake(model: ModelHandle, name: string): ContextHandle;
  export function contextDelete(model: ModelHandle, name: string): void;
  export function contextSnapshots(model: ModelHandle): string[];
  export function generatorCreate(context: ContextHandle, sampler: Sampler, options: Options): GeneratorHandle;
  export function send(message: string): void;
  export function receive(settle: Settle<string>): Wait;
  export function sendFile(data: Uint8Array): void;
  export function receiveFile(settle: Settle<Uint8Array>): Wait;
  export function fill(context: ContextHandle, role: Role, text: string): void;
  export function cue(context: ContextHandle): void;
  export function seal(context: ContextHandle): void;
  export function messageTokens(model: ModelHandle, role: Role, text: string): Uint32Array;
  export function cueTokens(model: ModelHandle): Uint32Array;
  export function sealTokens(model: ModelHandle): Uint32Array;
  export function stopTokens(model: ModelHandle): Uint32Array;
  export function decoderCreate(model: ModelHandle): DecoderHandle;
}
