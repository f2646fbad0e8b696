/**
 * The engine as the runtime lends it: what `rust/js-runtime/src/bridge` exports. Only the SDK and the runtime's own modules
 * can import it; programs use the SDK.
 */
declare module 'pie:host' {
  /** Receives the answer of something that waits: an error, or a value. */
  export type Settle<T> = (error: Error | undefined, value: T) => void;

  /** What a promise of the SDK holds of its wait. The wait is cancelled when its race is lost and nobody else could ask for it. */
  export interface Wait {
    /** Somebody waits for the answer. */
    subscribe(): void;
    /** A race for the answer is over. */
    unsubscribe(): void;
  }

  export interface ModelHandle {
    name(): string;
    tokenizer(): TokenizerHandle;
  }

  export interface TokenizerHandle {
    encode(text: string): Uint32Array;
    decode(tokens: Uint32Array): string;
    vocabs(): [Uint32Array, Uint8Array[]];
    specialTokens(): [Uint32Array, Uint8Array[]];
    splitRegex(): string;
  }

  export type Role = 'system' | 'user' | 'assistant';

  export interface ContextHandle {
    fork(): ContextHandle;
    save(name: string): void;
    snapshot(): string;
    suspend(): void;
    release(): void;
    append(tokens: Uint32Array): void;
    appendText(text: string): void;
    fill(role: Role, text: string): void;
    cue(): void;
    seal(): void;
    flush(settle: Settle<void>): Wait;
    truncate(nTokens: number): void;
    seqLen(): number;
    cachedTokens(): number;
    pageSize(): number;
    buffer(): Uint32Array;
  }

  export type SamplerKind = 'argmax' | 'top-p' | 'top-k' | 'min-p' | 'top-k-top-p' | 'multinomial';

  /** A kind and the parameters of that kind. */
  export interface SamplerRecord {
    readonly kind: SamplerKind;
    readonly temperature?: number;
    readonly p?: number;
    readonly k?: number;
    readonly draws?: number;
    /** Below 2^64. */
    readonly seed?: bigint | undefined;
  }

  export interface GeneratorRecord {
    readonly maxTokens: number | undefined;
    readonly stop: Uint32Array;
    readonly seed: bigint | undefined;
    readonly autoFlush: boolean;
  }

  export type FinishReason = 'stop' | 'length' | 'constraint' | 'closed';

  /** Accepted tokens, and why the generation ended where this step ended it. */
  export type StepAnswer = [tokens: Uint32Array, finishReason: FinishReason | undefined];

  export interface GeneratorHandle {
    setMaxTokens(nTokens: number): void;
    setStop(tokens: Uint32Array): void;
    addStop(tokens: Uint32Array): void;
    ignoreEos(ignore: boolean): void;
    nextStep(): number | undefined;
    advance(until: 'step', settle: Settle<StepAnswer>): Wait;
    advance(until: 'tokens', settle: Settle<Uint32Array>): Wait;
    advance(until: 'text', settle: Settle<string>): Wait;
    tokensGenerated(): number;
    finishReason(): FinishReason | undefined;
  }

  export interface DecoderHandle {
    feed(tokens: Uint32Array): import('./chat.js').Event;
    reset(): void;
  }

  /** Registers how exceptions are made of the engine's errors; `details` is a JSON object. */
  export function registerErrors(make: (code: string, message: string, details: string) => Error): void;

  export function models(): string[];
  export function version(): string;
  export function instanceId(): string;
  export function username(): string;
  export function args(): string[];
  export function launchSeed(): bigint;
  export function loadModel(name: string): ModelHandle;
  export function newContext(model: ModelHandle): ContextHandle;
  /** `take`: the snapshot goes. */
  export function openSnapshot(model: ModelHandle, name: string, take: boolean): ContextHandle | undefined;
  export function deleteSnapshot(model: ModelHandle, name: string): void;
  export function snapshotNames(model: ModelHandle): string[];
  export function newGenerator(context: ContextHandle, sampler: SamplerRecord, options: GeneratorRecord): GeneratorHandle;
  export function messageTokens(model: ModelHandle, role: Role, text: string): Uint32Array;
  export function cueTokens(model: ModelHandle): Uint32Array;
  export function sealTokens(model: ModelHandle): Uint32Array;
  export function stopTokens(model: ModelHandle): Uint32Array;
  export function newDecoder(model: ModelHandle): DecoderHandle;
  export function send(message: string): void;
  export function receive(settle: Settle<string>): Wait;
  export function sendFile(data: Uint8Array): void;
  export function receiveFile(settle: Settle<Uint8Array>): Wait;

  /** Answers the timer's number. */
  export function startTimer(callback: () => void, delayMs: number, repeat: boolean): number;
  export function stopTimer(id: number): void;
  export function monotonicMs(): number;
  export function randomBytes(nBytes: number): Uint8Array;
  /** In [0, 1). */
  export function randomUnit(): number;
  export function write(stream: 'stdout' | 'stderr', text: string): void;
  export function encodeUtf8(text: string): Uint8Array;
  /** `[text, bytes left at the end]`, or with `fatal` undefined where the bytes are not UTF-8. */
  export function decodeUtf8(bytes: Uint8Array, fatal: boolean, more: boolean): [string, number] | undefined;
  /** Loads a module of the runtime at its first use. */
  export function importNow(name: string): unknown;
}
