/** Generators: what turns a context into tokens. */

import * as host from 'pie:host';
import { tellOfNoAdapter } from './absent.js';
import { adapterHandle, type Adapter } from './adapter.js';
import {
  checkOptions, toBoolean, toCount, toHorizon, toRuns, toSeed, toStops, toText, toTokens, toZoSeed, type Brle, type Seed, type Stops, type Tokens,
} from './arguments.js';
import { decoderFor, visibleText, type Decoder } from './chat.js';
import { type Collected, type Collecting, Collector } from './collector.js';
import { toConstraints, type Constrain } from './constraint.js';
import { InferletError, refuseInPlainLoops, refuseInTexts, wrongType } from './errors.js';
import { GrammarConstraint, type SchemaText } from './grammar.js';
import { refuseInJson } from './json.js';
import type { Model } from './model.js';
import { Output, ProbeHandle, SampleHandle, type FinishReason, type Places } from './output.js';
import { type Interest, Pending } from './pending.js';
import { probeRecord, type Probe } from './probes.js';
import { samplerRecord, type Sampler } from './sampler.js';
import { toSpeculator, type Speculator } from './speculator.js';
import { Steering } from './steering.js';
import { TextStream } from './texts.js';
import { toChoiceConstraints, type Choice } from './tools.js';
import { type CollectJsonOptions, JsonCutError, schemaOf, validated } from './typed.js';

/** The options of `ctx.generate`, by their names. */
export interface GenerateOptions {
  /** Cap on accepted tokens; without it, until a stop token or until the model's context is full. At 0 nothing runs. */
  readonly maxTokens?: number | undefined;
  /**
   * Stop tokens and stop texts beside the tokens of the model and the template: `stop: '\n'`, `stop: ['END', 7]`. At
   * the token that completes a stop text the generation ends, and the text of the generation ends before the stop text.
   * At most 64 texts, of 1 to 256 bytes each.
   */
  readonly stop?: Stops | undefined;
  /** Used as given, 0 included; without it, derived from the launch seed and what the context holds. */
  readonly seed?: Seed | undefined;
  /** Cue the model where a chat turn stands last, and stop at the template's stop tokens. Default: true. */
  readonly autoFlush?: boolean | undefined;
  /** Stop at no token of the model and the template. Default: false. */
  readonly ignoreEos?: boolean | undefined;
  /** The tokens that may be drawn in every step, as run lengths. */
  readonly logitMask?: Brle | undefined;
  /** Who says in each step which tokens may be drawn; of several, what all of them allow. */
  readonly constrain?: Constrain | undefined;
  /**
   * Whether the model is to call one of the tools that it was given in the context. No call is malformed then. Without
   * it, it says what it likes.
   */
  readonly toolChoice?: Choice | undefined;
  /** Who proposes tokens in each step. Speculation never changes a token. */
  readonly speculator?: Speculator | undefined;
  /**
   * True: the engine proposes tokens, from what stood in the context before; a text: a smaller model of that name does.
   * It excludes `speculator`. Default: false.
   */
  readonly systemSpeculation?: boolean | string | undefined;
  /** Computes every step with an adapter. */
  readonly adapter?: Adapter | undefined;
  /** Perturbs the adapter by this seed; without an adapter the first step fails with `invalid-argument`. */
  readonly zoSeed?: Seed | undefined;
  /**
   * How long the text is thought to become: the bid by default for its pages follows from it. It never ends the
   * generation. At least 1.
   */
  readonly horizon?: number | undefined;
  /** False: a bid that `Context.setBid` gave holds for all steps. Default: true, for one. */
  readonly rebidEachStep?: boolean | undefined;
}

/** How what the engine makes a generator with follows from the options. */
const MADE_WITH: { [N in Exclude<keyof host.Options, 'stop' | 'stopTexts'>]: (options: GenerateOptions) => host.Options[N] } = {
  maxTokens: ({ maxTokens }) => (maxTokens === undefined ? undefined : toCount(maxTokens, 'maxTokens')),
  seed: ({ seed }) => (seed === undefined ? undefined : toSeed(seed, 'seed')),
  autoFlush: ({ autoFlush }) => autoFlush === undefined || toBoolean(autoFlush, 'autoFlush'),
  ignoreEos: ({ ignoreEos }) => ignoreEos !== undefined && toBoolean(ignoreEos, 'ignoreEos'),
  logitMask: ({ logitMask }) => toRuns(logitMask ?? [], 'logitMask'),
  drafting: ({ speculator, systemSpeculation }) => toDrafting(systemSpeculation, speculator !== undefined),
};

/** What `generate` takes, as it names it to whoever misspells an option. */
const NAMES = [
  'maxTokens', 'stop', 'seed', 'autoFlush', 'ignoreEos', 'logitMask', 'constrain', 'toolChoice', 'speculator',
  'systemSpeculation', 'adapter', 'zoSeed', 'horizon', 'rebidEachStep',
] as const satisfies (keyof GenerateOptions)[];

const RUN_IT = 'run it and await what it gives: await g.collectText()';
const STEP_TO_TEXT =
  'for the text, piece by piece, write `for await (const text of g.texts())`; for the tokens of a step, `(await step.execute()).tokens`';

/** A generator of the engine, as its values in the program share it. */
interface Machine {
  readonly handle: host.GeneratorHandle;
  readonly model: Model;
  readonly steering: Steering;
  /** What the context knows of collectors. */
  readonly collecting: Collecting;
  /** How many probes there are in every step. */
  nProbes: number;
  /** The step that was opened last. */
  step: GenStep | undefined;
}

/**
 * One step of a generator, to be executed. Its slots are the sampler of the generator, the probes of every step, and
 * its own.
 */
export class GenStep implements Places {
  readonly #machine: Machine;
  #draws = true;
  /** Probes of every step when it was answered: later ones are not in it. */
  #nProbes = 0;
  /** The sampler of the generator, and what owns its handle: the step itself owns those of its probes. */
  #sampler: { readonly owner: object; readonly handle: SampleHandle } | undefined;

  /**
   * Its number, counted from 0.
   * @internal
   */
  declare readonly number: number;

  /** @internal */
  constructor(machine: Machine, number: number) {
    this.#machine = machine;
    this.number = number;
  }

  /** Draws nothing in this step: read a probe, and say by `g.accept` which tokens follow. */
  clearSampler(): this {
    this.#checkNewest();
    this.#machine.handle.clearSampler();
    this.#draws = false;
    return this;
  }

  /**
   * Reads a row in this step: 0 is the one from which the step draws, or where tokens are drafted, the first from which
   * it does.
   */
  probe(index: number, probe: Probe): ProbeHandle {
    this.#checkNewest();
    const slot = this.#machine.handle.probe(toCount(index, 'index'), probeRecord(probe));
    return new ProbeHandle(this, slot - Number(this.#draws) - this.#machine.nProbes);
  }

  /**
   * Runs the step. One that was cancelled, or whose constraint or speculator threw, is yielded again by the generator
   * with all that was wanted of it.
   */
  execute(): Promise<Output> {
    try {
      return this.begin();
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /** @internal */
  begin(): Pending<Output, host.Output> {
    this.#checkNewest();
    const { steering } = this.#machine;
    return new Pending((settle: host.Settle<host.Output>) => steering.start(settle), (answer) => {
      steering.take(answer);
      this.#nProbes = this.#machine.nProbes;
      return new Output(answer, this);
    });
  }

  /** @internal */
  get autoSampler(): SampleHandle | undefined {
    if (!this.#draws) return undefined;
    if (this.#sampler === undefined) {
      const owner = {};
      this.#sampler = { owner, handle: new SampleHandle(owner, 0) };
    }
    return this.#sampler.handle;
  }

  /** @internal */
  firstSlot(owner: object): number | undefined {
    const nSamplers = Number(this.#draws);
    if (owner === this.#machine) return nSamplers;
    if (owner === this) return nSamplers + this.#nProbes;
    return owner === this.#sampler?.owner ? 0 : undefined;
  }

  /** Refuses a step behind which another one was opened: the engine knows the newest alone. */
  #checkNewest(): void {
    const newest = this.#machine.step;
    if (newest === undefined || newest === this) return;
    const over = `step ${this.number} of this generator is over, since step ${newest.number} was opened`;
    throw new InferletError('step-pending', `${over}; use the newest step`, { step: this.number });
  }
}

// What a step accepted is asked of the step itself by mistake, and would be undefined.
for (const name of ['tokens', 'token', 'tokensAt', 'finishReason', 'raw']) {
  Object.defineProperty(GenStep.prototype, name, {
    get: (): never => {
      throw wrongType(`a step has ${name} once it was run: const out = await step.execute(), and then out.${name}`);
    },
  });
}

/**
 * Continues a context token by token. Drive it with a collector, with `for await (const text of g.texts())`, with
 * `for await (const step of g)`, or with `next()`; leaving the loop leaves the context usable. A newer generator on the
 * same context retires this one, whose use is then the error `generator-retired`. Errors of a step and of a collector:
 * `context-busy`, `context-full`, `out-of-pages`, `driver-failed`, `limit-pass`; the context is as before then.
 */
export class Generator implements AsyncIterableIterator<GenStep, undefined> {
  readonly #handle: host.GeneratorHandle;
  readonly #machine: Machine;
  /** The schema under which the last `collectJson` ran, as text; undefined: none did. */
  #document: string | undefined;
  /** Whether a collector or a stream of texts was asked for. */
  #isCollected = false;

  /** @internal */
  constructor(handle: host.GeneratorHandle, model: Model, steering: Steering, collecting: Collecting) {
    this.#handle = handle;
    this.#machine = { handle, model, steering, collecting, nProbes: 0, step: undefined };
  }

  /** Caps the accepted tokens at `n`; at 0 nothing runs. */
  maxTokens(n: number): this {
    this.#handle.setMaxTokens(toCount(n, 'maxTokens'));
    return this;
  }

  /**
   * Puts stop tokens and stop texts in place of the template's stop tokens; an empty list removes the model's end
   * tokens too.
   */
  stop(stops: Stops): this {
    const { tokens, texts } = toStops(stops, 'stop');
    // Texts come first: beside them an empty list of tokens leaves those of the model.
    this.#handle.setStopTexts(texts);
    this.#handle.setStop(tokens);
    return this;
  }

  /** Adds stop tokens and stop texts to those that it has. */
  addStop(stops: Stops): this {
    const { tokens, texts } = toStops(stops, 'stop');
    if (texts.length > 0) this.#handle.addStopTexts(texts);
    this.#handle.addStop(tokens);
    return this;
  }

  /** Removes the stop tokens of the model and of the template; `false` puts them back. */
  ignoreEos(ignore = true): this {
    this.#handle.ignoreEos(toBoolean(ignore, 'ignore'));
    return this;
  }

  /**
   * Draws from this seed, as given, 0 included; a seed of the sampler comes before it.
   * @throws InferletError `invalid-argument` once a step was opened.
   */
  seed(seed: Seed): this {
    this.#handle.setSeed(toSeed(seed, 'seed'));
    return this;
  }

  /**
   * Puts a mask in place of the option `logitMask`; an empty one allows any token.
   * @throws InferletError `invalid-argument` once a step was opened.
   */
  logitMask(mask: Brle): this {
    this.#handle.setLogitMask(toRuns(mask, 'logitMask'));
    return this;
  }

  /**
   * Has the engine propose tokens, or a smaller model of that name, in place of the option `systemSpeculation`.
   * @throws InferletError `invalid-argument` once a step was opened.
   */
  systemSpeculation(proposer: boolean | string = true): this {
    this.#handle.setDrafting(toDrafting(proposer, this.#machine.steering.hasSpeculator));
    return this;
  }

  /** Adds constraints to those that it has: what all of them allow may be drawn. */
  constrain(constrain: Constrain): this {
    this.#machine.steering.constrain(toConstraints(constrain, this.#machine.model));
    return this;
  }

  /**
   * How long the text is thought to become, at least 1: the bid by default for its pages follows from it. It never ends
   * the generation.
   */
  horizon(n: number): this {
    this.#handle.setHorizon(toHorizon(n));
    return this;
  }

  /** False keeps a bid that `Context.setBid` gave for all steps that follow; true has each step bid anew. */
  rebidEachStep(rebid = true): this {
    this.#handle.rebidEachStep(toBoolean(rebid, 'rebid'));
    return this;
  }

  /** Computes every step with an adapter. */
  adapter(adapter: Adapter): this {
    this.#handle.setAdapter(adapterHandle(adapter));
    return this;
  }

  /** Perturbs the adapter by this seed; without an adapter the next step fails with `invalid-argument`. */
  zoSeed(seed: Seed): this {
    this.#handle.setZoSeed(toZoSeed(seed, 'zoSeed'));
    return this;
  }

  /**
   * Reads a row in every step: 0 is the one from which the step draws, or where tokens are drafted, the first from
   * which it does. The handle is for the output of each step; collectors show nothing of it.
   * @throws InferletError `invalid-probe` for parameters out of range.
   */
  probeEachStep(index: number, probe: Probe): ProbeHandle {
    // The sampler of the generator is the slot before.
    const slot = this.#handle.probeEachStep(toCount(index, 'index'), probeRecord(probe));
    this.#machine.nProbes = slot;
    return new ProbeHandle(this.#machine, slot - 1);
  }

  /**
   * Puts these tokens in place of what the last step accepted, until the next one is opened. Returns the tokens that
   * are kept: cut behind a stop token, and at the cap. Constraints see those.
   */
  accept(tokens: Tokens): Uint32Array {
    const kept = this.#handle.accept(toTokens(tokens, 'tokens'));
    this.#machine.steering.replace(kept);
    return kept;
  }

  /** How many tokens were accepted so far. */
  get tokensGenerated(): number {
    return this.#handle.tokensGenerated();
  }

  /** Whether the generation has ended: there is a `finishReason`. */
  get isDone(): boolean {
    return this.finishReason !== undefined;
  }

  /** Why the generation ended; undefined while it has not. */
  get finishReason(): FinishReason | undefined {
    return this.#handle.finishReason();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Opens the next step.
   * @throws InferletError `step-pending` where the step before was opened and never executed.
   */
  next(): Promise<IteratorResult<GenStep, undefined>> {
    // Not an async function, whose frame costs more than all of this.
    try {
      const step = this.#open();
      return Promise.resolve(step === undefined ? { done: true, value: undefined } : { done: false, value: step });
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /**
   * The text that is left to generate, in pieces as they come: `for await (const text of g.texts())`. All of them
   * together are what `collectText` returns.
   */
  texts(): TextStream {
    this.#noteCollected('texts()');
    return new TextStream(this, () => this.decoder());
  }

  /**
   * A `chat.Decoder` of what it accepts from now on, for a program that goes step by step. It knows the stop texts that
   * the generator has now, and shows none of them.
   */
  decoder(options: { hideThoughts?: boolean; hideCalls?: boolean } = {}): Decoder {
    return decoderFor(this.#handle, this.#machine.model, options);
  }

  /** Generates to the end; returns the text that the template's chat decoder shows of the tokens that were left. */
  collectText(): Promise<string> {
    this.#noteCollected('collectText()');
    return this.#collectText((text) => text);
  }

  /** Generates to the end; returns the tokens that were left, a stop token included as the last. */
  collectTokens(): Promise<Uint32Array> {
    this.#noteCollected('collectTokens()');
    if (this.#machine.steering.isAsked) return this.#collect((tokens) => tokens);
    return new Pending((settle: host.Settle<Uint32Array>) => this.#handle.collectTokens(settle), (tokens) => tokens);
  }

  /**
   * Generates to the end under a JSON Schema, beside what constrains it already; returns the value of the document.
   * One that is given up leaves no trace: the schema is no constraint of the generator then.
   * @throws InferletError `json-cut` where `maxTokens` cut the document: a `JsonCutError`, which has its text;
   * `invalid-grammar` for a schema that cannot be enforced.
   */
  collectJson<T = unknown>(options: CollectJsonOptions<T> = {}): Promise<T> {
    try {
      return this.#collectJson(options);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  #collectJson<T>(options: CollectJsonOptions<T>): Promise<T> {
    checkOptions(options, ['schema', 'parse'], 'collectJson()');
    const { schema, parse } = options;
    const wanted = schema === undefined ? undefined : schemaOf(schema);
    const document = typeof wanted === 'string' ? wanted : (JSON.stringify(wanted) ?? '');
    const constraint = document === this.#document ? undefined : this.#constraintOf(wanted);
    // There it stays though the document is given up.
    if (this.#machine.steering.isAsked) this.#document = document;
    return this.#collectText(async (text) => {
      this.#document = document;
      const reason = this.finishReason;
      if (reason !== 'constraint' && reason !== 'stop') throw new JsonCutError(text, this.tokensGenerated);
      const value = await validated(schema, JSON.parse(text));
      return parse === undefined ? (value as T) : parse(value);
    }, constraint);
  }

  /** Tells of a collector that comes when another one has given all that there is. */
  #noteCollected(call: string): void {
    // One that was retired is an error of the collector itself.
    if (this.#isCollected && this.isDone && this.finishReason !== 'closed') tellOfCollected(call);
    this.#isCollected = true;
  }

  /** What constrains a document. */
  #constraintOf(schema: SchemaText | undefined): GrammarConstraint {
    const { model } = this.#machine;
    return schema === undefined ? GrammarConstraint.json(model) : GrammarConstraint.fromJsonSchema(schema, model);
  }

  /** `document` constrains the text besides. Where the program has a part in each step, it stays. */
  #collectText<T>(convert: (text: string) => T | Promise<T>, document?: GrammarConstraint): Promise<T> {
    const { steering } = this.#machine;
    if (steering.isAsked) {
      if (document !== undefined) steering.constrain([document]);
      const decoder = this.decoder();
      return this.#collect((tokens) => convert(visibleText(decoder, tokens, this.finishReason)));
    }
    return new Pending((settle: host.Settle<string>) => {
      return document === undefined ? this.#handle.collectText(settle) : this.#handle.collectDocument(document.matcher.handle, settle);
    }, convert);
  }

  /** Runs step by step to the end, because the program has a part in each. */
  #collect<T>(convert: (tokens: Uint32Array) => T | Promise<T>): Promise<T> {
    const begin = (settle: host.Settle<Collected>): Interest => {
      return new Collector(this.#machine.collecting, () => this.#open()?.begin(), settle);
    };
    return new Pending(begin, (collected) => convert(collected()));
  }

  /** The next step; undefined after the end. One that was cancelled comes again, with its probes. */
  #open(): GenStep | undefined {
    const number = this.#handle.nextStep();
    if (number === undefined) return undefined;
    const machine = this.#machine;
    const open = machine.step;
    if (open !== undefined && open.number === number) return open;
    return (machine.step = new GenStep(machine, number));
  }
}

let isCollectedTold = false;

/** Warns, once, of a generation that is collected after its end for a second time. */
function tellOfCollected(call: string): void {
  if (isCollectedTold) return;
  isCollectedTold = true;
  const remedy = 'keep what the first call gave, or begin another generation by ctx.generate(...)';
  host.write('stderr', `warning: the generation has ended and was collected already, so that ${call} gives nothing; ${remedy}\n`);
}

refuseInJson(Generator, RUN_IT);
refuseInTexts(Generator, `a generator is not a text; ${RUN_IT}`);
refuseInPlainLoops(Generator, 'for await (const step of g)');
refuseInJson(GenStep, STEP_TO_TEXT);
refuseInTexts(GenStep, `a step is not a text: ${STEP_TO_TEXT}`);

/** @internal */
export function newGenerator(
  context: host.ContextHandle, collecting: Collecting, model: Model, sampler: Sampler, options: GenerateOptions,
): Generator {
  checkOptions(options, NAMES, 'generate()');
  // Everything is read before anything changes.
  const draws = samplerRecord(sampler);
  const { tokens: stop, texts: stopTexts } = toStops(options.stop ?? [], 'stop');
  const parts = Object.entries(MADE_WITH).map(([name, read]) => [name, read(options)]);
  const madeWith = { ...Object.fromEntries(parts), stop, stopTexts } as host.Options;
  const constraints = given(options.constrain, (constrain) => toConstraints(constrain, model));
  const chosen = given(options.toolChoice, (choice) => toChoiceConstraints(context, model, choice));
  const speculator = given(options.speculator, toSpeculator);
  const adapter = given(options.adapter, adapterHandle);
  if (adapter === undefined && 'adapter' in options) tellOfNoAdapter();
  const zoSeed = given(options.zoSeed, (seed) => toZoSeed(seed, 'zoSeed'));
  const horizon = given(options.horizon, (n) => toHorizon(n));
  const rebids = given(options.rebidEachStep, (rebid) => toBoolean(rebid, 'rebidEachStep'));
  const handle = host.generatorCreate(context, draws, madeWith);
  const steering = new Steering(handle, model);
  if (constraints !== undefined) steering.constrain(constraints);
  if (chosen !== undefined) steering.constrain(chosen);
  if (speculator !== undefined) steering.speculate(speculator);
  if (adapter !== undefined) handle.setAdapter(adapter);
  if (zoSeed !== undefined) handle.setZoSeed(zoSeed);
  if (horizon !== undefined) handle.setHorizon(horizon);
  if (rebids !== undefined) handle.rebidEachStep(rebids);
  return new Generator(handle, model, steering, collecting);
}

/**
 * Refuses what `ask` does not take, before its message is added to the context.
 * @internal
 */
export function checkAsk(sampler: Sampler, options: GenerateOptions): void {
  if (sampler !== null && Object.getPrototypeOf(Object(sampler)) === Object.prototype) {
    // They stand where the sampler belongs.
    checkOptions(sampler, NAMES, 'ask()');
    const given = Object.keys(sampler).join(', ');
    throw wrongType(`ask() takes its options (${given}) behind the sampler: ctx.ask(text, Sampler.argmax(), { maxTokens: 64 })`);
  }
  samplerRecord(sampler);
  checkOptions(options, NAMES, 'ask()');
}

/** What a reader makes of an option, where it is given. */
function given<T, R>(value: T | undefined, read: (value: T) => R): R | undefined {
  return value === undefined ? undefined : read(value);
}

function toDrafting(systemSpeculation: boolean | string | undefined, hasSpeculator: boolean): host.Drafting {
  if (systemSpeculation === undefined || systemSpeculation === false) return { type: 'none' };
  if (hasSpeculator) {
    const message = 'speculator and systemSpeculation both propose tokens; give one of them';
    throw new InferletError('invalid-argument', message);
  }
  if (typeof systemSpeculation === 'string') {
    return { type: 'model', value: toText(systemSpeculation, 'systemSpeculation') };
  }
  toBoolean(systemSpeculation, 'systemSpeculation');
  return { type: 'n-gram' };
}
