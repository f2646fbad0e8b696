/**
 * Runs the operations of a test vector and answers with their transcript: one entry an operation, {"error": code} for a
 * failed one.
 */

import { Context, type GenerateOptions, Generator, Model, Sampler, chat, runtime, session } from 'inferlet';

interface SamplerSpec {
  kind: 'argmax' | 'top_p' | 'top_k' | 'min_p' | 'top_k_top_p' | 'multinomial';
  temperature?: number;
  p?: number;
  k?: number;
  draws?: number;
  seed?: number;
}

/** Each operation has the arguments that it needs; the vectors say which. */
interface Arguments {
  as: string;
  ctx: string;
  gen: string;
  name: string;
  text: string;
  role: 'system' | 'user' | 'assistant';
  tokens: number[];
  data: number[];
  model?: string;
  n: number;
  ms: number;
  value: boolean;
  sampler: SamplerSpec;
  ops: Op[][];
  max_tokens?: number;
  stop?: number[];
  seed?: number;
  auto_flush?: boolean;
  ignore_eos?: boolean;
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

function optionsOf(a: Arguments): GenerateOptions {
  return { maxTokens: a.max_tokens, stop: a.stop, seed: a.seed, autoFlush: a.auto_flush, ignoreEos: a.ignore_eos };
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
  readonly decoders = new Map<string, chat.Decoder>();

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
    generate: (a: Arguments) => void this.generators.set(a.as, this.context(a).generate(samplerOf(a.sampler), optionsOf(a))),
    set_max_tokens: (a: Arguments) => void this.generator(a).maxTokens(a.n),
    stop: (a: Arguments) => void this.generator(a).stop(a.tokens),
    add_stop: (a: Arguments) => void this.generator(a).addStop(a.tokens),
    ignore_eos: (a: Arguments) => void this.generator(a).ignoreEos(a.value),
    set_seed: (a: Arguments) => void this.generator(a).seed(a.seed!),
    step: async (a: Arguments) => {
      const { value: step } = await this.generator(a).next();
      if (step === undefined) return null;
      const out = await step.execute();
      return { tokens: out.tokens, finish: out.finishReason ?? null };
    },
    collect_tokens: (a: Arguments) => this.generator(a).collectTokens(),
    collect_text: (a: Arguments) => this.generator(a).collectText(),
    tokens_generated: (a: Arguments) => this.generator(a).tokensGenerated,
    is_done: (a: Arguments) => this.generator(a).isDone,
    finish_reason: (a: Arguments) => this.generator(a).finishReason,
    encode: (a: Arguments) => this.model.tokenizer().encode(a.text),
    decode: (a: Arguments) => this.model.tokenizer().decode(a.tokens),
    models: () => runtime.models(),
    version: () => runtime.version(),
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
    receive: () => session.receive(),
    send_file: (a: Arguments) => session.sendFile(Uint8Array.from(a.data)),
    receive_file: async () => Array.from(await session.receiveFile()),
    sleep: (a: Arguments) => new Promise<void>((resolve) => setTimeout(resolve, a.ms)),
    chat_feed: (a: Arguments) => this.decoder(a).feed(a.tokens),
    chat_finish: (a: Arguments) => this.decoder(a).finish(),
    chat_reset: (a: Arguments) => this.decoder(a).reset(),
    chat_stream: async (a: Arguments) => {
      const decoder = new chat.Decoder(this.model);
      const events = [];
      for await (const step of this.generator(a)) events.push(...decoder.events(await step.execute()));
      return events;
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

  decoder(a: Arguments): chat.Decoder {
    const decoder = this.decoders.get(a.as) ?? new chat.Decoder(this.model);
    this.decoders.set(a.as, decoder);
    return decoder;
  }

  generator(a: Arguments): Generator {
    return named(this.generators, a.gen);
  }
}

export async function main(input: { ops: Op[] }): Promise<unknown[]> {
  return await new Interpreter().run(input.ops);
}
