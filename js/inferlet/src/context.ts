/** Contexts: sequences of tokens with their keys and values in pages. */

import * as host from 'pie:host';
import { noteNothingFound } from './absent.js';
import { checkArity, show, toCount, toNumber, toText, toTokens, type Tokens } from './arguments.js';
import { Collecting } from './collector.js';
import { InferletError, refuseInTexts, wrongType } from './errors.js';
import { Forward } from './forward.js';
import { checkAsk, Generator, newGenerator, type GenerateOptions } from './generator.js';
import { refuseInJson } from './json.js';
import { modelHandle, type Model } from './model.js';
import { Pending } from './pending.js';
import { Sampler } from './sampler.js';
import { toAnswer, toId, toSchemas, type Schema } from './tools.js';

/**
 * The engine's context behind one of the SDK.
 * @internal
 */
export let contextHandle: (context: Context) => host.ContextHandle;

/** Whether the program still holds a context, and has not released it. */
let isLive: (context: Context | undefined) => boolean;

/**
 * A sequence of tokens that a model continues. What is filled in waits in a buffer until a pass computes it.
 *
 * Every call after `release` is the error `context-released`. While a pass is under way, `fork`, `save`, `snapshot`,
 * `suspend`, `truncate` and another pass are `context-busy`, and so are additions while a collector runs.
 */
export class Context implements Disposable {
  /** The model that it is bound to. */
  readonly model: Model;
  readonly #handle: host.ContextHandle;
  readonly #collecting = new Collecting();
  #isReleased = false;

  static {
    isLive = (context) => context !== undefined && !context.#isReleased;
    contextHandle = (context) => {
      if (typeof context !== 'object' || context === null || !(#handle in context)) {
        throw wrongType(`ctx must be a Context, not ${show(context)}`);
      }
      return context.#handle;
    };
  }

  /**
   * A fresh, empty context.
   * @throws InferletError `limit-resources` where the program holds as many as it may.
   */
  constructor(model: Model);
  /** @internal */
  constructor(model: Model, handle: host.ContextHandle);
  constructor(model: Model, handle?: host.ContextHandle) {
    this.#handle = handle ?? host.contextCreate(modelHandle(model));
    this.model = model;
  }

  /**
   * A context with everything that the snapshot of that name holds, which stays; `undefined` where there is none.
   * Snapshots belong to the user, whichever of his programs saved them. The tokens count against the token budget of
   * the program.
   * @throws InferletError `token-budget`, `limit-resources`; `invalid-argument` for a name that is empty or longer than
   * 256 bytes.
   */
  static open(model: Model, name: string): Context | undefined {
    return opened('Context.open', model, name, host.contextOpen);
  }

  /** As `open`, and the snapshot is removed: of two programs that take it one gets it, the other `undefined`. */
  static take(model: Model, name: string): Context | undefined {
    return opened('Context.take', model, name, host.contextTake);
  }

  /**
   * Forgets the snapshot of that name.
   * @throws InferletError `snapshot-missing`
   */
  static delete(model: Model, name: string): void {
    host.contextDelete(modelHandle(model), toText(name, 'name'));
  }

  /** The names of all snapshots of the user, sorted. */
  static snapshots(model: Model): string[] {
    return host.contextSnapshots(modelHandle(model));
  }

  /**
   * Keeps a copy of everything under a name, in place of an older one, until it is deleted. It uses no page.
   * @throws InferletError `limit-snapshots`; `invalid-argument` for a name that is empty or longer than 256 bytes.
   */
  save(name: string): void {
    this.#handle.save(toText(name, 'name'));
  }

  /**
   * Keeps a copy under a name that is made up, and returns that name. It lasts as long as the engine runs.
   * @throws InferletError `limit-snapshots`
   */
  snapshot(): string {
    return this.#handle.snapshot();
  }

  /**
   * Bids for each page of the next pass, in credits, in place of the bid by default. Where pages are short, contexts
   * that bid less give way to those that bid more; nobody bids more than the program can pay. In a generation it holds
   * for one step, or with `rebidEachStep: false` for all.
   * @throws InferletError `invalid-argument` for what is not a number from 0 on.
   */
  setBid(value: number): void {
    this.#handle.setBid(toNumber(value, 'value'));
  }

  /** Bids nothing until what it returns is disposed of, `using _ = ctx.idle();`, and then what it did before. */
  idle(): Disposable {
    const handle = this.#handle;
    handle.beginIdle();
    const scope = { isOpen: true, context: new WeakRef<Context>(this) };
    const idle = {
      [Symbol.dispose]() {
        if (scope.isOpen) handle.endIdle();
        scope.isOpen = false;
      },
    };
    lostScopes ??= new FinalizationRegistry(tellOfLostScope);
    lostScopes.register(idle, scope);
    return idle;
  }

  /** Gives up all pages, so that others have room. Nothing else changes, and the next pass takes pages again. */
  suspend(): void {
    this.#handle.suspend();
  }

  /**
   * A copy of everything: tokens, pending token, buffer and turn state. Pages are shared until they are written.
   * @throws InferletError `limit-resources` where the program holds as many contexts as it may.
   */
  fork(): Context {
    return new Context(this.model, this.#handle.fork());
  }

  /** Frees the pages now. A second release does nothing. */
  release(): void {
    this.#isReleased = true;
    this.#handle.release();
  }

  [Symbol.dispose](): void {
    this.release();
  }

  /** Adds a system message. Its text never becomes a control token, here and in the other messages. */
  system(text: string): this {
    checkArity(arguments.length, 1, 'ctx.system');
    const given = toText(text, 'text');
    return this.#change((handle) => host.fill(handle, 'system', given));
  }

  /** Adds a user message, closing an open assistant turn first. */
  user(text: string): this {
    checkArity(arguments.length, 1, 'ctx.user');
    const given = toText(text, 'text');
    return this.#change((handle) => host.fill(handle, 'user', given));
  }

  /** Adds a whole assistant message. */
  assistant(text: string): this {
    checkArity(arguments.length, 1, 'ctx.assistant');
    const given = toText(text, 'text');
    return this.#change((handle) => host.fill(handle, 'assistant', given));
  }

  /**
   * Gives the model tools: the message that comes next is written with them, as the template does it.
   * @throws InferletError `invalid-argument`; `template-error` where the template has no place for tools.
   */
  equip(tools: Iterable<Schema>): this {
    const schemas = toSchemas(tools);
    return this.#change((handle) => host.equip(handle, schemas));
  }

  /**
   * Adds the answer of a tool, closing the turn that called it. A string stands as it is, anything else as JSON; `id`
   * is that of the call, where the model gave one.
   */
  answer(name: string, value: unknown, id?: string): this {
    checkArity(arguments.length, 3, 'ctx.answer');
    const given = [toText(name, 'name'), toAnswer(value), toId(id)] as const;
    return this.#change((handle) => host.answer(handle, ...given));
  }

  /**
   * Opens the assistant's turn, where the model starts speaking. `generate` does so by itself; a second cue does
   * nothing.
   */
  cue(): this {
    return this.#change((handle) => host.cue(handle));
  }

  /**
   * Closes an open assistant turn; what the model itself wrote of the closing tokens is not written again. A second
   * seal does nothing.
   */
  seal(): this {
    return this.#change((handle) => host.seal(handle));
  }

  /**
   * Adds token ids.
   * @throws InferletError `invalid-token` for an id outside the vocabulary.
   */
  append(tokens: Tokens): this {
    checkArity(arguments.length, 1, 'ctx.append');
    const given = toTokens(tokens, 'tokens');
    return this.#change((handle) => handle.append(given));
  }

  /** Encodes a text, control tokens included, and adds its tokens. */
  appendText(text: string): this {
    checkArity(arguments.length, 1, 'ctx.appendText');
    const given = toText(text, 'text');
    return this.#change((handle) => handle.appendText(given));
  }

  /**
   * Computes what is pending and buffered, and commits the full pages. With nothing to compute, no pass runs.
   * @throws InferletError `context-full`, `out-of-pages`, `driver-failed`; the context is as before then.
   */
  flush(): Promise<void> {
    return new Pending((settle: host.Settle<void>) => this.#handle.flush(settle), () => {});
  }

  /**
   * Drops the last `n` tokens: the pending one first, then those in pages that are not committed. The buffer stays, and
   * an idle generator of the context is retired.
   * @throws InferletError `truncate-range` for more tokens than lie outside committed pages.
   */
  truncate(n: number): void {
    this.#handle.truncate(toCount(n, 'n'));
  }

  /** Tokens in pages, and the newest one of a generation; the buffer is not counted. */
  get seqLen(): number {
    return this.#handle.seqLen();
  }

  /**
   * How many of the tokens in pages were not computed for this context, because a program of the same user had
   * computed the same before; a fork has the count of its original. It depends on what other programs did: do not let
   * tokens follow from it.
   */
  get cachedTokens(): number {
    return this.#handle.cachedTokens();
  }

  /** How many tokens a page holds. */
  get pageSize(): number {
    return this.#handle.pageSize();
  }

  /** The ids of the tokens that were added and that no pass has taken. */
  buffer(): Uint32Array {
    return this.#handle.buffer();
  }

  /**
   * A generator that continues this context. Nothing runs before its first step. Where a chat turn stands last, the
   * model is cued.
   * @throws InferletError `empty-context`, `invalid-sampler`, `invalid-argument`
   */
  generate(sampler: Sampler, options: GenerateOptions = {}): Generator {
    return newGenerator(this.#handle, this.#collecting, this.model, sampler, options);
  }

  /**
   * Adds a user message and gives the whole answer: `const answer = await ctx.ask('Hello!')`. It stays in the context,
   * so that the next question follows it. Without a sampler it takes the likeliest tokens.
   */
  ask(text: string, sampler: Sampler = Sampler.argmax(), options: GenerateOptions = {}): Promise<string> {
    checkAsk(sampler, options);
    // The promise of the collector itself: one that nobody awaits is told, and one that lost its race is given up.
    return this.user(text).generate(sampler, options).collectText();
  }

  /** A pass over this context that the program puts together by itself. Nothing runs before it is executed. */
  forward(): Forward {
    return new Forward(this.#handle);
  }

  /**
   * Fills the context. It is refused while a collector runs step by step, as the engine refuses it while one of its own
   * runs.
   */
  #change(fill: (handle: host.ContextHandle) => void): this {
    this.#collecting.check(this.#handle);
    fill(this.#handle);
    return this;
  }
}

/** A scope of `idle`. What it knows of its context does not keep that alive. */
interface IdleScope {
  readonly isOpen: boolean;
  readonly context: WeakRef<Context>;
}

/** Tells of scopes of `idle` that the program has let go of; made with the first of them. */
let lostScopes: FinalizationRegistry<IdleScope> | undefined;
let isLostScopeTold = false;

/**
 * Tells, once, that a context bids nothing for good: nothing can end the scope any more. One that was idle to its own
 * end is as it was meant.
 */
function tellOfLostScope({ isOpen, context }: IdleScope): void {
  if (!isOpen || isLostScopeTold || !isLive(context.deref())) return;
  isLostScopeTold = true;
  const told = 'what `ctx.idle()` gave was dropped and not disposed of, so that the context bids nothing from there on';
  host.write('stderr', `warning: ${told}; write \`using _ = ctx.idle();\` in the block in which it is to bid nothing\n`);
}

refuseInJson(Context, 'keep it by ctx.save(name), or send the text or the tokens that came of it');
refuseInTexts(Context, 'a context is not a text; await what the model says in it: await ctx.ask(question)');

/** `call` is what the program calls, for messages. */
function opened(call: string, model: Model, name: string, open: typeof host.contextOpen): Context | undefined {
  try {
    return new Context(model, open(modelHandle(model), toText(name, 'name')));
  } catch (error) {
    if (!(error instanceof InferletError) || error.code !== 'snapshot-missing') throw error;
    noteNothingFound(call, name, () => Context.snapshots(model));
    return undefined;
  }
}
