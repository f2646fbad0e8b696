// Generated from wit/ by tools/gen_js_bridge.py; do not edit. Each item is documented where the WIT is.

declare module 'pie:host' {
  export interface SpawnOptions {
    readonly output: boolean;
    readonly detached: boolean;
    readonly seed: bigint | undefined;
    readonly tokenBudget: bigint | undefined;
    readonly credits: number | undefined;
  }

  export interface Change {
    readonly seed: bigint;
    readonly factor: number;
  }

  export type Source =
    | { readonly type: 'json-schema'; readonly value: string }
    | { readonly type: 'any-json' }
    | { readonly type: 'regex'; readonly value: string }
    | { readonly type: 'ebnf'; readonly value: string };

  export interface Sampler {
    readonly temperature: number;
    readonly topK: number | undefined;
    readonly topP: number | undefined;
    readonly minP: number | undefined;
    readonly draws: number;
    readonly seed: bigint | undefined;
  }

  export interface Distribution {
    readonly temperature: number;
    readonly k: number;
  }

  export type Probe =
    | { readonly type: 'logits' }
    | { readonly type: 'distribution'; readonly value: Distribution }
    | { readonly type: 'logprobs'; readonly value: Uint32Array }
    | { readonly type: 'entropy' }
    | { readonly type: 'embedding' };

  export type Drafting =
    | { readonly type: 'none' }
    | { readonly type: 'n-gram' }
    | { readonly type: 'model'; readonly value: string };

  export interface Options {
    readonly maxTokens: number | undefined;
    readonly stop: Uint32Array;
    readonly stopTexts: string[];
    readonly seed: bigint | undefined;
    readonly autoFlush: boolean;
    readonly ignoreEos: boolean;
    readonly logitMask: Uint32Array;
    readonly drafting: Drafting;
  }

  export interface Header {
    readonly name: string;
    readonly value: string;
  }

  export type Body =
    | { readonly type: 'none' }
    | { readonly type: 'whole'; readonly value: Uint8Array }
    | { readonly type: 'streamed' };

  export type Redirects = 'follow' | 'fail' | 'keep';

  export interface Timeouts {
    readonly connectMs: bigint | undefined;
    readonly firstByteMs: bigint | undefined;
    readonly idleMs: bigint | undefined;
    readonly wholeMs: bigint | undefined;
  }

  export interface Request {
    readonly method: string;
    readonly url: string;
    readonly headers: Header[];
    readonly body: Body;
    readonly redirects: Redirects;
    readonly timeouts: Timeouts;
  }

  export type Role = 'system' | 'user' | 'assistant';

  export type FinishReason = 'stop' | 'length' | 'constraint' | 'closed';

  export type ToolChoice =
    | { readonly type: 'auto' }
    | { readonly type: 'none' }
    | { readonly type: 'required' }
    | { readonly type: 'named'; readonly value: string };

  export interface Probabilities {
    readonly tokens: Uint32Array;
    readonly values: Float32Array;
  }

  export type Slot =
    | { readonly type: 'tokens'; readonly value: Uint32Array }
    | { readonly type: 'logits'; readonly value: Uint8Array }
    | { readonly type: 'distribution'; readonly value: Probabilities }
    | { readonly type: 'logprobs'; readonly value: Float32Array }
    | { readonly type: 'entropy'; readonly value: number }
    | { readonly type: 'embedding'; readonly value: Uint8Array };

  export interface Speculation {
    readonly drafted: number;
    readonly accepted: number;
  }

  export interface PassOutput {
    readonly slots: Slot[];
    readonly speculation: Speculation;
  }

  export interface Output {
    readonly tokens: Uint32Array;
    readonly finish: FinishReason | undefined;
    readonly slots: Slot[];
    readonly speculation: Speculation;
  }

  export interface Head {
    readonly status: number;
    readonly statusText: string;
    readonly url: string;
    readonly isRedirected: boolean;
    readonly headers: Header[];
  }

  export interface RequestHead {
    readonly method: string;
    readonly url: string;
    readonly headers: Header[];
    readonly remoteAddress: string;
  }

  export type Event =
    | { readonly type: 'idle' }
    | { readonly type: 'delta'; readonly value: string }
    | { readonly type: 'done'; readonly value: string }
    | { readonly type: 'interrupt'; readonly value: number };

  export type ReasoningEvent =
    | { readonly type: 'idle' }
    | { readonly type: 'start' }
    | { readonly type: 'delta'; readonly value: string }
    | { readonly type: 'end'; readonly value: string };

  export interface ToolCall {
    readonly name: string;
    readonly args: string;
    readonly id: string | undefined;
  }

  export type ToolEvent =
    | { readonly type: 'idle' }
    | { readonly type: 'start' }
    | { readonly type: 'call'; readonly value: ToolCall }
    | { readonly type: 'malformed'; readonly value: string };

  export interface ChildHandle {
    pid(): bigint;
    wait(settle: Settle<string>): Wait;
    cancel(): void;
  }

  export interface TokenizerHandle {
    encode(text: string): Uint32Array;
    tryEncode(text: string): Uint32Array;
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
    setBid(bid: number): void;
    beginIdle(): void;
    endIdle(): void;
    release(): void;
    append(tokens: Uint32Array): void;
    appendText(text: string): void;
    flush(settle: Settle<void>): Wait;
    truncate(n: number): void;
    seqLen(): number;
    cachedTokens(): number;
    pageSize(): number;
    buffer(): Uint32Array;
    reserveWorkingPages(n: number): void;
    commitWorkingPages(n: number): void;
    releaseWorkingPages(n: number): void;
    truncateWorkingPageTokens(n: number): void;
    dropCommittedPages(n: number): void;
    committedPageCount(): number;
    workingPageCount(): number;
    workingPageTokenCount(): number;
  }

  export interface AdapterHandle {
    fork(name: string): AdapterHandle;
    save(path: string): void;
    load(path: string): void;
    change(changes: Change[], sigma: number | undefined): void;
    destroy(): void;
  }

  export interface GrammarHandle {
    matcher(tokenizer: TokenizerHandle): MatcherHandle;
  }

  export interface MatcherHandle {
    mask(): Uint32Array;
    accept(tokens: Uint32Array): void;
    forced(): Uint32Array;
    isTerminated(): boolean;
    reset(): void;
    fork(): MatcherHandle;
  }

  export interface ForwardPassHandle {
    input(tokens: Uint32Array): void;
    inputAt(tokens: Uint32Array, positions: Uint32Array): void;
    attentionMask(masks: Uint32Array[]): void;
    logitMask(mask: Uint32Array): void;
    sample(indices: Uint32Array, sampler: Sampler): number;
    probe(index: number, probe: Probe): number;
    setAdapter(adapter: AdapterHandle): void;
    setZoSeed(seed: bigint): void;
    leaveWorkingPages(): void;
    startPosition(): number;
    execute(settle: Settle<PassOutput>): Wait;
  }

  export interface GeneratorHandle {
    setMaxTokens(n: number): void;
    setStop(tokens: Uint32Array): void;
    addStop(tokens: Uint32Array): void;
    setStopTexts(texts: string[]): void;
    addStopTexts(texts: string[]): void;
    ignoreEos(ignore: boolean): void;
    setSeed(seed: bigint): void;
    setLogitMask(mask: Uint32Array): void;
    setDrafting(drafting: Drafting): void;
    setAdapter(adapter: AdapterHandle): void;
    setZoSeed(seed: bigint): void;
    setHorizon(n: number): void;
    rebidEachStep(rebid: boolean): void;
    probeEachStep(index: number, probe: Probe): number;
    constrain(matcher: MatcherHandle): void;
    askMasks(ask: boolean): void;
    nextStep(): number | undefined;
    probe(index: number, probe: Probe): number;
    clearSampler(): void;
    draft(tokens: Uint32Array, positions: Uint32Array): void;
    step(settle: Settle<Output>): Wait;
    giveMask(mask: Uint32Array): void;
    accept(tokens: Uint32Array): Uint32Array;
    collectTokens(settle: Settle<Uint32Array>): Wait;
    collectText(settle: Settle<string>): Wait;
    collectDocument(matcher: MatcherHandle, settle: Settle<string>): Wait;
    tokensGenerated(): number;
    finishReason(): FinishReason | undefined;
  }

  export interface SubscriptionHandle {
    get(): string | undefined;
    next(settle: Settle<string | undefined>): Wait;
    lagged(): bigint;
    unsubscribe(): void;
  }

  export interface ExchangeHandle {
    writePart(part: Uint8Array, settle: Settle<void>): Wait;
    finish(): void;
    head(settle: Settle<Head>): Wait;
    read(settle: Settle<Uint8Array | undefined>): Wait;
    cancel(): void;
  }

  export interface IncomingRequestHandle {
    head(): RequestHead;
    read(settle: Settle<Uint8Array | undefined>): Wait;
    respond(status: number, headers: Header[]): void;
    writePart(part: Uint8Array, settle: Settle<void>): Wait;
    finish(): void;
    abandon(): void;
    gone(settle: Settle<void>): Wait;
  }

  export interface DecoderHandle {
    feed(tokens: Uint32Array): Event;
    feedOutput(tokens: Uint32Array, finish: FinishReason | undefined): Event;
    finish(): Event;
    reset(): void;
  }

  export interface ReasoningDecoderHandle {
    feed(tokens: Uint32Array): ReasoningEvent;
    feedOutput(tokens: Uint32Array, finish: FinishReason | undefined): ReasoningEvent;
    finish(): ReasoningEvent;
    reset(): void;
  }

  export interface ToolDecoderHandle {
    feed(tokens: Uint32Array): ToolEvent;
    feedOutput(tokens: Uint32Array, finish: FinishReason | undefined): ToolEvent;
    finish(): ToolEvent;
    reset(): void;
  }

  export interface McpSessionHandle {
    hello(settle: Settle<string>): Wait;
    listTools(settle: Settle<string>): Wait;
    callTool(name: string, args: string, settle: Settle<string>): Wait;
    listResources(settle: Settle<string>): Wait;
    readResource(uri: string, settle: Settle<string>): Wait;
    listPrompts(settle: Settle<string>): Wait;
    getPrompt(name: string, args: string, settle: Settle<string>): Wait;
    close(): void;
  }

  export function models(): string[];
  export function version(): string;
  export function instanceId(): string;
  export function username(): string;
  export function args(): string[];
  export function launchSeed(): bigint;
  export function spawn(program: string, input: string, args: string[], options: SpawnOptions): ChildHandle;
  export function modelLoad(name: string): ModelHandle;
  export function contextCreate(model: ModelHandle): ContextHandle;
  export function contextOpen(model: ModelHandle, name: string): ContextHandle;
  export function contextTake(model: ModelHandle, name: string): ContextHandle;
  export function contextDelete(model: ModelHandle, name: string): void;
  export function contextSnapshots(model: ModelHandle): string[];
  export function adapterCreate(model: ModelHandle, name: string, rank: number, alpha: number): AdapterHandle;
  export function adapterOpen(model: ModelHandle, name: string): AdapterHandle;
  export function adapterNames(model: ModelHandle): string[];
  export function shortest(mask: Uint32Array, len: number): Uint32Array;
  export function intersection(masks: Uint32Array[], len: number): Uint32Array;
  export function allowing(elements: Uint32Array, len: number): Uint32Array;
  export function allowed(mask: Uint32Array, len: number): Uint32Array;
  export function pack(mask: Uint32Array, len: number): Uint8Array;
  export function unpack(bits: Uint8Array, len: number): Uint32Array;
  export function window(start: number, n: number, window: number, sinks: number): Uint32Array[];
  export function causal(start: number, n: number): Uint32Array[];
  export function grammarCreate(source: Source): GrammarHandle;
  export function forwardPassCreate(context: ContextHandle): ForwardPassHandle;
  export function generatorCreate(context: ContextHandle, sampler: Sampler, options: Options): GeneratorHandle;
  export function balance(model: ModelHandle): number;
  export function rent(context: ContextHandle): number;
  export function dividend(model: ModelHandle): number;
  export function latency(context: ContextHandle): number;
  export function price(): number;
  export function send(message: string): void;
  export function sendJson(value: string): void;
  export function print(text: string): void;
  export function message(text: string): void;
  export function receive(settle: Settle<string>): Wait;
  export function sendFile(data: Uint8Array): void;
  export function receiveFile(settle: Settle<Uint8Array>): Wait;
  export function push(topic: string, message: string): void;
  export function pull(topic: string, settle: Settle<string>): Wait;
  export function broadcast(topic: string, message: string): void;
  export function subscribe(topic: string): SubscriptionHandle;
  export function check(): void;
  export function exchangeStart(request: Request): ExchangeHandle;
  export function refusal(): void;
  export function isServing(): boolean;
  export function nextRequest(settle: Settle<IncomingRequestHandle | undefined>): Wait;
  export function fill(context: ContextHandle, role: Role, text: string): void;
  export function cue(context: ContextHandle): void;
  export function seal(context: ContextHandle): void;
  export function messageTokens(model: ModelHandle, role: Role, text: string): Uint32Array;
  export function cueTokens(model: ModelHandle): Uint32Array;
  export function sealTokens(model: ModelHandle): Uint32Array;
  export function stopTokens(model: ModelHandle): Uint32Array;
  export function decoderCreate(model: ModelHandle): DecoderHandle;
  export function decoderCreateHiding(model: ModelHandle, thoughts: boolean, calls: boolean): DecoderHandle;
  export function decoderCreateFor(generator: GeneratorHandle, thoughts: boolean, calls: boolean): DecoderHandle;
  export function reasoningDecoderCreate(model: ModelHandle): ReasoningDecoderHandle;
  export function equip(context: ContextHandle, schemas: string[]): void;
  export function answer(context: ContextHandle, name: string, value: string, id: string | undefined): void;
  export function equipTokens(model: ModelHandle, schemas: string[]): Uint32Array;
  export function answerTokens(model: ModelHandle, name: string, value: string, id: string | undefined): Uint32Array;
  export function parseCall(model: ModelHandle, text: string): ToolCall | undefined;
  export function nativeGrammar(model: ModelHandle, schemas: string[], choice: ToolChoice): GrammarHandle | undefined;
  export function choiceGrammar(context: ContextHandle, choice: ToolChoice): GrammarHandle | undefined;
  export function toolDecoderCreate(model: ModelHandle): ToolDecoderHandle;
  export function availableServers(): string[];
  export function connect(name: string): McpSessionHandle;
}
