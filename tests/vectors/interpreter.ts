/**
 * Runs the operations of a test vector and answers with their transcript: one entry an operation, {"error": code} for a
 * failed one.
 */

import {
  Adapter, type Child, type Constraint, Context, Distribution, Embedding, Entropy, type Forward, type GenerateOptions, Generator, Grammar, InferletError, Logits, Logprob,
  Logprobs, Matcher, type McpSession, Model, type Output, type Probe, ProbeHandle, SampleHandle, Sampler, type Schema, type Speculator, type Subscription, anyJson, brle, chat, ebnf, jsonSchema,
  mcp, messaging, reasoning, regex, runtime, scheduling, session, tools,
} from 'inferlet';

/** Any of the three decoders. */
interface Decoder {
  feed(tokens: number[]): { readonly type: string };
  finish(): { readonly type: string };
  reset(): void;
}

/** An event as JSON has it: what is undefined is null. */
function shown(event: { readonly type: string }): { readonly type: string } {
  return 'id' in event ? { ...event, id: event.id ?? null } as { readonly type: string } : event;
}

/** What a session answers. */
function asked(session: McpSession, { what, args: given, later = false }: Arguments): string | Promise<string> {
  const [first, second] = given ?? [''];
  switch (what) {
    case 'server_info':
      return session.serverInfo;
    case 'list_tools':
      return later ? session.listToolsAsync() : session.listTools();
    case 'call_tool':
      return later ? session.callToolAsync(first, second) : session.callTool(first, second);
    case 'list_resources':
      return later ? session.listResourcesAsync() : session.listResources();
    case 'read_resource':
      return later ? session.readResourceAsync(first) : session.readResource(first);
    case 'list_prompts':
      return later ? session.listPromptsAsync() : session.listPrompts();
    case 'get_prompt':
      return later ? session.getPromptAsync(first, second) : session.getPrompt(first, second);
    default:
      throw new Error(`a session is not asked for ${what}`);
  }
}

/** Every event of tokens in pieces, to the end of the turn; deltas that stand beside each other are one. */
function everyEvent(decoder: Decoder, pieces: number[][]): object[] {
  const events: { type: string; text?: string }[] = [];
  const drain = (first: { readonly type: string }): void => {
    for (let event = first; event.type !== 'idle'; event = decoder.feed([])) {
      const last = events.at(-1);
      if (event.type === 'delta' && last?.type === 'delta') last.text += (event as { text?: string }).text ?? '';
      else events.push({ ...shown(event) });
    }
  };
  for (const piece of pieces) drain(decoder.feed(piece));
  drain(decoder.finish());
  return events;
}

interface SamplerSpec {
  kind: 'argmax' | 'top_p' | 'top_k' | 'min_p' | 'top_k_top_p' | 'multinomial';
  temperature?: number;
  p?: number;
  k?: number;
  draws?: number;
  seed?: number;
}

interface ProbeSpec {
  kind: 'logits' | 'distribution' | 'logprob' | 'logprobs' | 'entropy' | 'embedding';
  temperature?: number;
  k?: number;
  token?: number;
  tokens?: number[];
}

/** The source of a grammar. */
interface SourceSpec {
  kind: 'json_schema' | 'any_json' | 'regex' | 'ebnf';
  source: string;
}

type ConstraintSpec = { masks: number[][] } | SourceSpec;

/** Each operation has the arguments that it needs; the vectors say which. */
interface Arguments {
  as: string;
  ctx: string;
  gen: string;
  how: 'collect_tokens' | 'collect_text' | 'collect_json';
  beside: string;
  server: string;
  session: string;
  what: string;
  args?: [name: string, args?: mcp.McpArguments];
  later?: boolean;
  meanwhile: { readonly what: string; readonly args?: [name: string, args?: mcp.McpArguments] };
  seen: Op[];
  fwd: string;
  out: string;
  handle: string;
  schemas: string[];
  id?: string;
  pieces: number[][];
  positions: number[];
  mask: number[];
  masks: number[][];
  indices: number[];
  index: number;
  probe: ProbeSpec;
  allowed: boolean[];
  elements: number[];
  bits: number[];
  length: number;
  start: number;
  window: number;
  sinks: number;
  name: string;
  text: string;
  role: 'system' | 'user' | 'assistant';
  tokens: number[];
  data: number[];
  model?: string;
  n: number;
  ms: number;
  value: boolean | string;
  sampler: SamplerSpec;
  ops: Op[][];
  within: Op[];
  program: string;
  input: unknown;
  child: string;
  output?: boolean;
  detached?: boolean;
  token_budget?: number;
  credits?: number;
  bid: number;
  max_tokens?: number;
  stop?: string | (number | string)[];
  seed?: number;
  auto_flush?: boolean;
  ignore_eos?: boolean;
  logit_mask?: number[];
  system_speculation?: boolean | string;
  zo_seed?: number;
  adapter: string;
  path: string;
  rank?: number;
  alpha?: number;
  changes: [number, number][];
  sigma?: number;
  horizon?: number;
  rebid_each_step?: boolean;
  constrain?: ConstraintSpec[];
  kind: SourceSpec['kind'];
  source: string;
  grammar: string;
  matcher: string;
  speculator?: { drafts: number[][] };
  tool_choice?: tools.Choice;
  choice: tools.Choice;
  texts: string[];
  topic: string;
  message: string;
  sub: string;
  clear?: boolean;
  probes?: { as: string; index: number; probe: ProbeSpec }[];
}

type Op = Arguments & { op: keyof Interpreter['ops'] };

function samplerOf({ kind, temperature, p, k, draws, seed }: SamplerSpec): Sampler {
  const options = seed === undefined ? {} : { seed };
  switch (kind) {
    case 'argmax':
      return Sampler.argmax();
    case 'top_p':
      return Sampler.topP(temperature, p, options);
    case 'top_k':
      return Sampler.topK(temperature, k, options);
    case 'min_p':
      return Sampler.minP(temperature, p, options);
    case 'top_k_top_p':
      return Sampler.topKTopP(temperature, k, p, options);
    case 'multinomial':
      return Sampler.multinomial(temperature, draws, options);
  }
}

function probeOf({ kind, temperature, k, token, tokens }: ProbeSpec): Probe {
  switch (kind) {
    case 'logits':
      return Logits();
    case 'distribution':
      return Distribution(temperature!, k!);
    case 'logprob':
      return Logprob(token!);
    case 'logprobs':
      return Logprobs(tokens!);
    case 'entropy':
      return Entropy();
    case 'embedding':
      return Embedding();
  }
}

function summed(values: Float32Array | Uint32Array): number[] {
  return [values.length, values[0]!, values.at(-1)!, Array.from(values).reduce((sum, value) => sum + value, 0)];
}

/** What the accessors give of a handle, those that give nothing left out. */
function readingOf(out: Output, handle: SampleHandle | ProbeHandle): object {
  const logits = out.logits(handle);
  const distribution = out.distribution(handle);
  const floats = (bytes: Uint8Array): Float32Array => new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  const embedding = out.embedding(handle);
  const few = distribution !== undefined && distribution[0].length <= 8;
  const found = {
    token: out.token(handle),
    tokens: out.tokensAt(handle),
    distribution: few ? distribution : distribution?.map(summed),
    logits: logits && summed(floats(logits)),
    logprobs: out.logprobs(handle),
    entropy: out.entropy(handle),
    embedding: embedding && floats(embedding),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

function grammarOf({ kind, source }: SourceSpec): Grammar {
  switch (kind) {
    case 'json_schema':
      return Grammar.fromJsonSchema(source);
    case 'any_json':
      return Grammar.json();
    case 'regex':
      return Grammar.fromRegex(source);
    case 'ebnf':
      return Grammar.fromEbnf(source);
  }
}

function constraintOf(spec: ConstraintSpec): Masks | Schema {
  if ('masks' in spec) return new Masks(spec.masks);
  switch (spec.kind) {
    case 'json_schema':
      return jsonSchema(spec.source);
    case 'any_json':
      return anyJson();
    case 'regex':
      return regex(spec.source);
    case 'ebnf':
      return ebnf(spec.source);
  }
}

function optionsOf(a: Arguments): GenerateOptions {
  return {
    maxTokens: a.max_tokens, stop: a.stop, seed: a.seed, autoFlush: a.auto_flush, ignoreEos: a.ignore_eos,
    logitMask: a.logit_mask, systemSpeculation: a.system_speculation, zoSeed: a.zo_seed, horizon: a.horizon, rebidEachStep: a.rebid_each_step,
    toolChoice: a.tool_choice,
  };
}

/** A constraint that answers with these masks in turn. */
class Masks implements Constraint {
  readonly masks: number[][];
  readonly seen: Uint32Array[] = [];

  constructor(masks: number[][]) {
    this.masks = masks;
  }

  step(accepted: Uint32Array): Uint32Array {
    this.seen.push(accepted);
    return Uint32Array.from(this.masks[this.seen.length - 1] ?? []);
  }
}

/** A speculator that proposes these tokens in turn, behind what the context holds. */
class Drafts implements Speculator {
  readonly context: Context;
  readonly drafts: number[][];
  readonly told: unknown[][] = [];

  constructor(context: Context, drafts: number[][]) {
    this.context = context;
    this.drafts = [...drafts];
  }

  draft(): [Uint32Array, Uint32Array] {
    const tokens = Uint32Array.from(this.drafts.shift() ?? []);
    const start = this.context.seqLen + this.context.buffer().length;
    return [tokens, tokens.map((_, index) => start + index)];
  }

  accept(tokens: Uint32Array): void {
    this.told.push(['accept', tokens]);
  }

  rollback(n: number): void {
    this.told.push(['rollback', n]);
  }

  reset(): void {
    this.told.push(['reset']);
  }
}

/** The handle of that name. */
function named<T>(handles: Map<string, T>, name: string): T {
  const handle = handles.get(name);
  if (handle === undefined) throw new Error(`the vector names ${name} before it is made`);
  return handle;
}

/** The handles of one run, by their names; branches share them. */
class Interpreter {
  readonly model = Model.load(runtime.models()[0]!);
  readonly contexts = new Map<string, Context>();
  readonly generators = new Map<string, Generator>();
  readonly decoders = new Map<string, Decoder>();
  readonly passes = new Map<string, Forward>();
  readonly outputs = new Map<string, Output>();
  readonly handles = new Map<string, SampleHandle | ProbeHandle>();
  readonly constraints = new Map<string, Masks[]>();
  readonly speculators = new Map<string, Drafts>();
  readonly grammars = new Map<string, Grammar>();
  readonly matchers = new Map<string, Matcher>();
  readonly adapters = new Map<string, Adapter>();
  readonly subscriptions = new Map<string, Subscription>();
  readonly sessions = new Map<string, McpSession>();
  readonly children = new Map<string, Child>();
  /** What asked, where it was a request by HTTP. */
  request: object | null = null;

  readonly ops = {
    all: (a: Arguments) => Promise.all(a.ops.map((branch) => this.run(branch))),
    context: (a: Arguments) => void this.contexts.set(a.as, new Context(a.model === undefined ? this.model : Model.load(a.model))),
    fork: (a: Arguments) => void this.contexts.set(a.as, this.context(a).fork()),
    save: (a: Arguments) => this.context(a).save(a.name),
    open: (a: Arguments) => this.opened(a, Context.open(this.model, a.name)),
    take: (a: Arguments) => this.opened(a, Context.take(this.model, a.name)),
    delete: (a: Arguments) => Context.delete(this.model, a.name),
    snapshots: () => Context.snapshots(this.model),
    snapshot: (a: Arguments) => this.opened(a, Context.take(this.model, this.context(a).snapshot())),
    suspend: (a: Arguments) => this.context(a).suspend(),
    set_bid: (a: Arguments) => this.context(a).setBid(a.bid),
    idle: async (a: Arguments) => {
      using _ = this.context(a).idle();
      this.context(a).suspend();
      return await this.run(a.within);
    },
    balance: () => scheduling.balance(this.model),
    dividend: () => scheduling.dividend(this.model),
    price: () => scheduling.price(),
    rent: (a: Arguments) => scheduling.rent(this.context(a)),
    latency: (a: Arguments) => scheduling.latency(this.context(a)) >= 0,
    release: (a: Arguments) => this.context(a).release(),
    system: (a: Arguments) => void this.context(a).system(a.text),
    user: (a: Arguments) => void this.context(a).user(a.text),
    assistant: (a: Arguments) => void this.context(a).assistant(a.text),
    cue: (a: Arguments) => void this.context(a).cue(),
    seal: (a: Arguments) => void this.context(a).seal(),
    append: (a: Arguments) => void this.context(a).append(a.tokens),
    append_text: (a: Arguments) => void this.context(a).appendText(a.text),
    flush: (a: Arguments) => this.context(a).flush(),
    truncate: (a: Arguments) => this.context(a).truncate(a.n),
    seq_len: (a: Arguments) => this.context(a).seqLen,
    cached_tokens: (a: Arguments) => this.context(a).cachedTokens,
    buffer: (a: Arguments) => this.context(a).buffer(),
    page_size: (a: Arguments) => this.context(a).pageSize,
    forward: (a: Arguments) => void this.passes.set(a.as, this.context(a).forward()),
    input: (a: Arguments) => void this.pass(a).input(a.tokens),
    input_at: (a: Arguments) => void this.pass(a).inputAt(a.tokens, a.positions),
    attention_mask: (a: Arguments) => void this.pass(a).attentionMask(a.masks),
    mask: (a: Arguments) => void this.pass(a).mask(a.mask),
    sample: (a: Arguments) => void this.handles.set(a.as, this.pass(a).sample(a.indices, samplerOf(a.sampler))),
    probe: (a: Arguments) => void this.handles.set(a.as, this.pass(a).probe(a.index, probeOf(a.probe))),
    adapter: (a: Arguments) => {
      const shape = { ...(a.rank !== undefined && { rank: a.rank }), ...(a.alpha !== undefined && { alpha: a.alpha }) };
      this.adapters.set(a.as, Adapter.create(this.model, a.name, shape));
    },
    adapter_open: (a: Arguments) => {
      const found = Adapter.open(this.model, a.name);
      if (found !== undefined) this.adapters.set(a.as, found);
      return found !== undefined;
    },
    adapter_names: () => Adapter.names(this.model),
    adapter_fork: (a: Arguments) => void this.adapters.set(a.as, this.adapter(a).fork(a.name)),
    adapter_change: (a: Arguments) => {
      this.adapter(a).change(a.changes.map(([seed, factor]) => ({ seed, factor })), a.sigma);
    },
    adapter_save: (a: Arguments) => void this.adapter(a).save(a.path),
    adapter_load: (a: Arguments) => void this.adapter(a).load(a.path),
    adapter_destroy: (a: Arguments) => void this.adapter(a).destroy(),
    use_adapter: (a: Arguments) => void this.generator(a).adapter(this.adapter(a)),
    pass_adapter: (a: Arguments) => void this.pass(a).adapter(this.adapter(a)),
    pass_zo_seed: (a: Arguments) => void this.pass(a).zoSeed(a.seed!),
    start_position: (a: Arguments) => this.pass(a).startPosition(),
    execute: async (a: Arguments) => void this.outputs.set(a.as, await this.pass(a).execute()),
    read: (a: Arguments) => {
      const out = this.outputs.get(a.out);
      const handle = a.handle === 'auto' ? out?.autoSampler : this.handles.get(a.handle);
      return out === undefined || handle === undefined ? {} : readingOf(out, handle);
    },
    mask_of_bools: (a: Arguments) => brle.fromBools(a.allowed),
    mask_shortest: (a: Arguments) => brle.shortest(a.mask, a.length),
    mask_and: (a: Arguments) => brle.intersection(a.masks, a.length),
    mask_allowing: (a: Arguments) => brle.allowing(a.elements, a.length),
    mask_allowed: (a: Arguments) => brle.allowed(a.mask, a.length),
    mask_pack: (a: Arguments) => brle.pack(a.mask, a.length),
    mask_unpack: (a: Arguments) => brle.unpack(Uint8Array.from(a.bits), a.length),
    mask_window: (a: Arguments) => brle.window(a.start, a.n, a.window, a.sinks),
    mask_causal: (a: Arguments) => brle.causal(a.start, a.n),
    generate: (a: Arguments) => {
      const constrain = (a.constrain ?? []).map(constraintOf);
      const speculator = a.speculator && new Drafts(this.context(a), a.speculator.drafts);
      this.constraints.set(a.as, constrain.filter((one) => one instanceof Masks));
      if (speculator !== undefined) this.speculators.set(a.as, speculator);
      const adapter = a.adapter === undefined ? undefined : this.adapter(a);
      const options = { ...optionsOf(a), speculator, constrain, adapter };
      this.generators.set(a.as, this.context(a).generate(samplerOf(a.sampler), options));
    },
    probe_each_step: (a: Arguments) => {
      this.handles.set(a.as, this.generator(a).probeEachStep(a.index, probeOf(a.probe)));
    },
    horizon: (a: Arguments) => void this.generator(a).horizon(a.n),
    rebid_each_step: (a: Arguments) => void this.generator(a).rebidEachStep(a.value === true),
    zo_seed: (a: Arguments) => void this.generator(a).zoSeed(a.seed!),
    constrain: (a: Arguments) => {
      const constrain = (a.constrain ?? []).map(constraintOf);
      this.generator(a).constrain(constrain);
      named(this.constraints, a.gen).push(...constrain.filter((one) => one instanceof Masks));
    },
    accept: (a: Arguments) => this.generator(a).accept(a.tokens),
    constraint_log: (a: Arguments) => named(this.constraints, a.gen).map(({ seen }) => seen),
    speculator_log: (a: Arguments) => named(this.speculators, a.gen).told,
    set_max_tokens: (a: Arguments) => void this.generator(a).maxTokens(a.n),
    stop: (a: Arguments) => void this.generator(a).stop(a.tokens),
    add_stop: (a: Arguments) => void this.generator(a).addStop(a.tokens),
    ignore_eos: (a: Arguments) => void this.generator(a).ignoreEos(a.value as boolean),
    logit_mask: (a: Arguments) => void this.generator(a).logitMask(a.mask),
    system_speculation: (a: Arguments) => void this.generator(a).systemSpeculation(a.model),
    set_seed: (a: Arguments) => void this.generator(a).seed(a.seed!),
    step: async (a: Arguments) => {
      const { value: step } = await this.generator(a).next();
      if (step === undefined) return null;
      if (a.clear) step.clearSampler();
      for (const { as, index, probe } of a.probes ?? []) this.handles.set(as, step.probe(index, probeOf(probe)));
      const out = await step.execute();
      if (a.as !== undefined) this.outputs.set(a.as, out);
      return { tokens: out.tokens, finish: out.finishReason ?? null };
    },
    collect_tokens: (a: Arguments) => this.generator(a).collectTokens(),
    collect_text: (a: Arguments) => this.generator(a).collectText(),
    collect_json: (a: Arguments) => this.generator(a).collectJson(),
    give_up: async (a: Arguments) => {
      const generator = this.generator(a);
      const collectors = { collect_tokens: () => generator.collectTokens(), collect_text: () => generator.collectText(), collect_json: () => generator.collectJson() };
      const steps = async (): Promise<{ seen: unknown }> => {
        for await (const step of named(this.generators, a.beside)) await step.execute();
        return { seen: await this.run(a.seen) };
      };
      const won = await Promise.race([collectors[a.how](), steps()]);
      if (typeof won !== 'object' || won === null || !('seen' in won)) throw new Error('it ended before it was given up');
      return won.seen;
    },
    grammar: (a: Arguments) => void this.grammars.set(a.as, grammarOf(a)),
    matcher: (a: Arguments) => void this.matchers.set(a.as, new Matcher(named(this.grammars, a.grammar), this.model.tokenizer())),
    matcher_mask: (a: Arguments) => this.matcher(a).nextTokenLogitMask(),
    matcher_accept: (a: Arguments) => this.matcher(a).acceptTokens(a.tokens),
    matcher_forced: (a: Arguments) => this.matcher(a).forcedTokens(),
    matcher_ended: (a: Arguments) => this.matcher(a).isTerminated(),
    matcher_reset: (a: Arguments) => this.matcher(a).reset(),
    matcher_fork: (a: Arguments) => void this.matchers.set(a.as, this.matcher(a).fork()),
    tokens_generated: (a: Arguments) => this.generator(a).tokensGenerated,
    is_done: (a: Arguments) => this.generator(a).isDone,
    finish_reason: (a: Arguments) => this.generator(a).finishReason,
    encode: (a: Arguments) => this.model.tokenizer().encode(a.text),
    decode: (a: Arguments) => this.model.tokenizer().decode(a.tokens),
    models: () => runtime.models(),
    version: () => runtime.version(),
    request: () => this.request,
    username: () => runtime.username(),
    instance_id: () => runtime.instanceId() === runtime.instanceId() && runtime.instanceId() !== '',
    args: () => runtime.args(),
    launch_seed: () => Number(runtime.launchSeed()),
    model_name: () => this.model.name,
    vocab_size: () => this.model.tokenizer().vocabSize(),
    vocabs: (a: Arguments) => {
      const [ids, contents] = this.model.tokenizer().vocabs();
      return [ids.length, a.tokens.map((token) => Array.from(contents[ids.indexOf(token)]!))];
    },
    special_tokens: () => {
      const [ids, contents] = this.model.tokenizer().specialTokens();
      return Array.from(ids, (id, index) => [id, Array.from(contents[index]!)]);
    },
    split_regex: () => this.model.tokenizer().splitRegex(),
    message_tokens: (a: Arguments) => chat[a.role](this.model, a.text),
    cue_tokens: () => chat.cue(this.model),
    seal_tokens: () => chat.seal(this.model),
    stop_tokens: () => chat.stopTokens(this.model),
    send: (a: Arguments) => session.send(a.text),
    send_json: (a: Arguments) => session.send(a.value),
    message: (a: Arguments) => session.message(a.text),
    receive: () => session.receive(),
    send_file: (a: Arguments) => session.sendFile(Uint8Array.from(a.data)),
    receive_file: async () => Array.from(await session.receiveFile()),
    spawn: (a: Arguments) => {
      const { output, detached, seed, token_budget: tokenBudget, credits } = a;
      const options = Object.entries({ output, detached, seed, tokenBudget, credits }).filter(([, value]) => value !== undefined);
      this.children.set(a.as, runtime.spawn(a.program, a.input, Object.fromEntries(options)));
    },
    wait: async (a: Arguments) => await named(this.children, a.child),
    waits_in_vain: (a: Arguments) => named(this.children, a.child).wait().then(() => false, (error) => error instanceof InferletError),
    cancel: (a: Arguments) => named(this.children, a.child).cancel(),
    pid: (a: Arguments) => named(this.children, a.child).pid > 0,
    hash_of_seed: () => runtime.launchSeed().toString(16).padStart(16, '0'),
    push: (a: Arguments) => messaging.push(a.topic, a.message),
    pull: (a: Arguments) => messaging.pull(a.topic),
    broadcast: (a: Arguments) => {
      for (let index = 0; index < (a.n ?? 1); index++) messaging.broadcast(a.topic, a.message);
    },
    subscribe: (a: Arguments) => void this.subscriptions.set(a.as, messaging.subscribe(a.topic)),
    next: async (a: Arguments) => await named(this.subscriptions, a.sub).next() ?? null,
    get: (a: Arguments) => named(this.subscriptions, a.sub).tryNext() ?? null,
    lagged: (a: Arguments) => named(this.subscriptions, a.sub).lagged,
    unsubscribe: (a: Arguments) => named(this.subscriptions, a.sub).unsubscribe(),
    mcp_servers: () => mcp.availableServers(),
    mcp_connect: async (a: Arguments) => {
      this.sessions.set(a.as, a.later ? await mcp.connectAsync(a.server) : mcp.connect(a.server));
    },
    mcp_ask: async (a: Arguments) => JSON.parse(await asked(named(this.sessions, a.session), a)) as unknown,
    mcp_give_up: async (a: Arguments) => {
      const open = named(this.sessions, a.session);
      const beside = async (): Promise<{ seen: unknown }> => ({ seen: JSON.parse(await asked(open, { ...a, ...a.meanwhile, later: true })) as unknown });
      const won = await Promise.race([asked(open, { ...a, later: true }), beside()]);
      if (typeof won === 'string') throw new Error('it was answered before it was given up');
      return won.seen;
    },
    mcp_equip: (a: Arguments) => {
      const { tools: listed } = JSON.parse(named(this.sessions, a.session).listTools()) as { tools: tools.Tool[] };
      this.context(a).equip(listed);
    },
    mcp_close: (a: Arguments) => {
      using closing = named(this.sessions, a.session);
      void closing;
    },
    sleep: (a: Arguments) => new Promise<void>((resolve) => setTimeout(resolve, a.ms)),
    chat_feed: (a: Arguments) => this.decoder(a).feed(a.tokens),
    chat_finish: (a: Arguments) => this.decoder(a).finish(),
    chat_reset: (a: Arguments) => this.decoder(a).reset(),
    equip: (a: Arguments) => void this.context(a).equip(a.schemas),
    answer: (a: Arguments) => void this.context(a).answer(a.name, a.value as string, a.id),
    equip_tokens: (a: Arguments) => tools.equipPrefix(this.model, a.schemas),
    answer_tokens: (a: Arguments) => tools.answerPrefix(this.model, a.name, a.value as string, a.id),
    parse_call: (a: Arguments) => {
      const call = tools.parseCall(this.model, a.text);
      return call === undefined ? null : { ...call, id: call.id ?? null };
    },
    native_grammar: (a: Arguments) => {
      const matcher = tools.nativeMatcher(this.model, a.schemas, a.choice)!;
      return a.texts.map((text) => this.isTextOf(matcher, text));
    },
    chat_all: (a: Arguments) => everyEvent(this.decoder(a), a.pieces),
    thoughts_feed: (a: Arguments) => this.decoder(a, reasoning.Decoder).feed(a.tokens),
    thoughts_finish: (a: Arguments) => this.decoder(a, reasoning.Decoder).finish(),
    thoughts_reset: (a: Arguments) => this.decoder(a, reasoning.Decoder).reset(),
    thoughts_all: (a: Arguments) => everyEvent(this.decoder(a, reasoning.Decoder), a.pieces),
    thoughts_stream: async (a: Arguments) => {
      const decoder = new reasoning.Decoder(this.model);
      const events = [];
      for await (const step of this.generator(a)) events.push(...decoder.events(await step.execute()));
      return events;
    },
    calls_feed: (a: Arguments) => shown(this.decoder(a, tools.Decoder).feed(a.tokens)),
    calls_finish: (a: Arguments) => shown(this.decoder(a, tools.Decoder).finish()),
    calls_reset: (a: Arguments) => this.decoder(a, tools.Decoder).reset(),
    calls_all: (a: Arguments) => everyEvent(this.decoder(a, tools.Decoder), a.pieces),
    calls_stream: async (a: Arguments) => {
      const decoder = new tools.Decoder(this.model);
      const events = [];
      for await (const step of this.generator(a)) events.push(...decoder.events(await step.execute()));
      return events.map(shown);
    },
    visible: (a: Arguments) => everyEvent(new chat.Decoder(this.model, { hideThoughts: true, hideCalls: true }), [a.tokens]),
    chat_stream: async (a: Arguments) => {
      const decoder = new chat.Decoder(this.model);
      const events = [];
      for await (const step of this.generator(a)) events.push(...decoder.events(await step.execute()));
      return events;
    },
    text_stream: async (a: Arguments) => {
      const texts = this.generator(a).texts();
      const pieces = [];
      for await (const text of texts) pieces.push(text);
      return [pieces, texts.textSoFar];
    },
  } satisfies Record<string, (a: Arguments) => unknown>;

  async run(ops: Op[]): Promise<unknown[]> {
    const transcript = [];
    for (const op of ops) transcript.push(await this.step(op));
    return transcript;
  }

  async step(op: Op): Promise<unknown> {
    try {
      return await this.ops[op.op](op);
    } catch (error) {
      if (error instanceof Error && 'code' in error) return { error: error.code };
      throw error;
    }
  }

  opened(a: Arguments, context: Context | undefined): boolean {
    if (context !== undefined) this.contexts.set(a.as, context);
    return context !== undefined;
  }

  context(a: Arguments): Context {
    return named(this.contexts, a.ctx);
  }

  isTextOf(matcher: Matcher, text: string): boolean {
    matcher.reset();
    try {
      matcher.acceptTokens(this.model.tokenizer().encode(text));
    } catch (error) {
      if (error instanceof InferletError && error.code === 'grammar-mismatch') return false;
      throw error;
    }
    return matcher.isTerminated();
  }

  matcher(a: Arguments): Matcher {
    return named(this.matchers, a.matcher);
  }

  pass(a: Arguments): Forward {
    return named(this.passes, a.fwd);
  }

  decoder(a: Arguments, Kind: new (model: Model) => Decoder = chat.Decoder): Decoder {
    const decoder = this.decoders.get(a.as) ?? new Kind(this.model);
    this.decoders.set(a.as, decoder);
    return decoder;
  }

  adapter(a: Arguments): Adapter {
    return named(this.adapters, a.adapter);
  }

  generator(a: Arguments): Generator {
    return named(this.generators, a.gen);
  }
}

export async function main(input: { ops: Op[] }): Promise<unknown[]> {
  return await new Interpreter().run(input.ops);
}

/** An entry as JSON, in which ids are a list. */
function line(entry: unknown): string {
  return `${JSON.stringify(entry ?? null, (_, value: unknown) => (value instanceof Uint32Array ? Array.from(value) : value))}\n`;
}

export default {
  /** Each entry is a line of the answer, sent as it is made. */
  async fetch(request: Request): Promise<Response> {
    const { ops } = (await request.json()) as { ops: Op[] };
    const interpreter = new Interpreter();
    interpreter.request = { method: request.method, path: new URL(request.url).pathname, header: request.headers.get('x-a') };
    async function* entries(): AsyncGenerator<string> {
      for (const op of ops) yield line(await interpreter.step(op));
    }
    return new Response(entries(), { headers: { 'Content-Type': 'application/x-ndjson' } });
  },
};
