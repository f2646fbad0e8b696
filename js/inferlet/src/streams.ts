/** Streams of the Web, as far as `fetch` needs them: what is read, one chunk at a time. */

import { refuseInJson } from './json.js';
/** Where the chunks of a stream come from. */
export interface UnderlyingSource<R> {
  start?(controller: StreamController<R>): unknown;
  /** Asked for the next chunk whenever somebody waits for one. */
  pull?(controller: StreamController<R>): unknown;
  cancel?(reason: unknown): unknown;
}

/** What a reader gets. */
export type ReadResult<R> = { readonly done: false; readonly value: R } | { readonly done: true; readonly value: undefined };

interface Waiting<R> {
  resolve(result: ReadResult<R>): void;
  reject(reason: unknown): void;
}

type State = { readonly kind: 'open' } | { readonly kind: 'closed' } | { readonly kind: 'failed'; readonly reason: unknown };

/** What a stream is made of. @internal */
interface Core<R> {
  readonly chunks: R[];
  readonly waiting: Waiting<R>[];
  source: UnderlyingSource<R>;
  controller: StreamController<R>;
  state: State;
  /** No more comes, but what has come is still to be read. */
  isEnding: boolean;
  isPulling: boolean;
  isLocked: boolean;
  /** Somebody has read from it, or cancelled it. */
  isDisturbed: boolean;
  readonly started: Promise<unknown>;
  readonly closed: PromiseWithResolvers<undefined>;
}

let coreOf: <R>(stream: ReadableStream<R>) => Core<R>;
let newController: <R>(core: () => Core<R>) => StreamController<R>;

/** By which a source gives its chunks. */
export class StreamController<R> {
  readonly #core: () => Core<R>;

  private constructor(core: () => Core<R>) {
    this.#core = core;
  }

  static {
    newController = (core) => new StreamController(core);
  }

  /** How many more chunks are wanted. */
  get desiredSize(): number | null {
    const { state, chunks } = this.#core();
    if (state.kind === 'failed') return null;
    return state.kind === 'closed' ? 0 : 1 - chunks.length;
  }

  enqueue(chunk: R): void {
    const core = this.#core();
    if (core.state.kind !== 'open' || core.isEnding) throw new TypeError('the stream is closed; nothing can be added to it');
    const reader = core.waiting.shift();
    if (reader === undefined) core.chunks.push(chunk);
    else reader.resolve({ done: false, value: chunk });
  }

  close(): void {
    const core = this.#core();
    if (core.state.kind !== 'open' || core.isEnding) throw new TypeError('the stream is closed already');
    core.isEnding = true;
    if (core.chunks.length === 0) close(core);
  }

  error(reason?: unknown): void {
    fail(this.#core(), reason);
  }
}

function close<R>(core: Core<R>): void {
  if (core.state.kind !== 'open') return;
  core.state = { kind: 'closed' };
  for (const reader of core.waiting.splice(0)) reader.resolve({ done: true, value: undefined });
  core.closed.resolve(undefined);
}

function fail<R>(core: Core<R>, reason: unknown): void {
  if (core.state.kind !== 'open') return;
  core.state = { kind: 'failed', reason };
  core.chunks.length = 0;
  for (const reader of core.waiting.splice(0)) reader.reject(reason);
  // Nobody has to look at it.
  core.closed.promise.catch(() => {});
  core.closed.reject(reason);
}

function pull<R>(core: Core<R>): void {
  if (core.isPulling || core.state.kind !== 'open' || core.isEnding || core.waiting.length === 0) return;
  core.isPulling = true;
  const pulled = core.started.then(() => (core.state.kind === 'open' && !core.isEnding ? core.source.pull?.(core.controller) : undefined));
  pulled.then(
    () => {
      core.isPulling = false;
      // A source that has no `pull` gives chunks when it likes.
      if (core.source.pull !== undefined) pull(core);
    },
    (reason: unknown) => fail(core, reason),
  );
}

function read<R>(core: Core<R>): Promise<ReadResult<R>> {
  core.isDisturbed = true;
  if (core.chunks.length > 0) {
    const value = core.chunks.shift() as R;
    if (core.isEnding && core.chunks.length === 0) close(core);
    return Promise.resolve({ done: false, value });
  }
  if (core.state.kind === 'closed') return Promise.resolve({ done: true, value: undefined });
  if (core.state.kind === 'failed') return Promise.reject(core.state.reason);
  const { promise, resolve, reject } = Promise.withResolvers<ReadResult<R>>();
  core.waiting.push({ resolve, reject });
  pull(core);
  return promise;
}

async function cancel<R>(core: Core<R>, reason: unknown): Promise<void> {
  core.isDisturbed = true;
  if (core.state.kind === 'failed') throw core.state.reason;
  if (core.state.kind === 'closed') return;
  core.chunks.length = 0;
  close(core);
  await core.source.cancel?.(reason);
}

/** Chunks that are read as they come. */
export class ReadableStream<R = Uint8Array> implements AsyncIterable<R> {
  readonly #core: Core<R>;

  static {
    coreOf = (stream) => stream.#core;
  }

  constructor(source: UnderlyingSource<R> = {}) {
    const { promise: started, resolve, reject } = Promise.withResolvers<unknown>();
    const controller = newController<R>(() => this.#core);
    this.#core = {
      chunks: [],
      waiting: [],
      source,
      controller,
      state: { kind: 'open' },
      isEnding: false,
      isPulling: false,
      isLocked: false,
      isDisturbed: false,
      started,
      closed: Promise.withResolvers<undefined>(),
    };
    Promise.resolve(source.start?.(controller)).then(resolve, reject);
    started.catch((reason: unknown) => fail(this.#core, reason));
  }

  /** A stream of what something iterates over. */
  static from<R>(items: Iterable<R> | AsyncIterable<R>): ReadableStream<R> {
    const iterator: Iterator<R> | AsyncIterator<R> =
      Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
    return new ReadableStream<R>({
      async pull(controller) {
        const next = await iterator.next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      },
      async cancel(reason) {
        await iterator.return?.(reason);
      },
    });
  }

  /** Whether a reader has it. */
  get locked(): boolean {
    return this.#core.isLocked;
  }

  getReader(): ReadableStreamReader<R> {
    return new ReadableStreamReader(this);
  }

  /** Ends the stream, which nobody wants any more. */
  cancel(reason?: unknown): Promise<void> {
    if (this.#core.isLocked) return Promise.reject(new TypeError('the stream has a reader; cancel it by that'));
    return cancel(this.#core, reason);
  }

  /** Two streams with the same chunks. What only one of them has read is held for the other. */
  tee(): [ReadableStream<R>, ReadableStream<R>] {
    const reader = this.getReader();
    const queues: R[][] = [[], []];
    const cancelled: unknown[] = [undefined, undefined];
    const isCancelled = [false, false];
    let reading: Promise<ReadResult<R>> | undefined;
    const next = async (index: number): Promise<ReadResult<R>> => {
      while (queues[index]!.length === 0) {
        reading ??= reader.read().then((result) => {
          reading = undefined;
          if (!result.done) queues.forEach((queue, other) => isCancelled[other] || queue.push(result.value));
          return result;
        });
        if ((await reading).done && queues[index]!.length === 0) return { done: true, value: undefined };
      }
      return { done: false, value: queues[index]!.shift() as R };
    };
    const branch = (index: number): ReadableStream<R> =>
      new ReadableStream<R>({
        async pull(controller) {
          const result = await next(index);
          if (result.done) controller.close();
          else controller.enqueue(result.value);
        },
        async cancel(reason) {
          cancelled[index] = reason;
          isCancelled[index] = true;
          queues[index]!.length = 0;
          if (isCancelled.every(Boolean)) await reader.cancel(cancelled);
        },
      });
    return [branch(0), branch(1)];
  }

  /** Its chunks, one after the other. Leaving the loop early cancels the stream, unless `preventCancel`. */
  async *values({ preventCancel = false } = {}): AsyncGenerator<R, void, undefined> {
    const reader = this.getReader();
    let isDone = false;
    try {
      while (true) {
        const result = await reader.read();
        if (result.done) {
          isDone = true;
          return;
        }
        yield result.value;
      }
    } catch (error) {
      isDone = true;
      throw error;
    } finally {
      if (!isDone && !preventCancel) await reader.cancel();
      reader.releaseLock();
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<R, void, undefined> {
    return this.values();
  }
}

/** Reads a stream, which nobody else reads meanwhile. */
export class ReadableStreamReader<R = Uint8Array> {
  readonly #core: Core<R>;
  #isReleased = false;

  /** @internal */
  constructor(stream: ReadableStream<R>) {
    this.#core = coreOf(stream);
    if (this.#core.isLocked) throw new TypeError('the stream has a reader already; release that first');
    this.#core.isLocked = true;
  }

  /** Settled when the stream has ended. */
  get closed(): Promise<undefined> {
    return this.#core.closed.promise;
  }

  read(): Promise<ReadResult<R>> {
    if (this.#isReleased) return Promise.reject(released());
    return read(this.#core);
  }

  cancel(reason?: unknown): Promise<void> {
    if (this.#isReleased) return Promise.reject(released());
    return cancel(this.#core, reason);
  }

  /** Lets others read the stream. Again it does nothing. */
  releaseLock(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#core.isLocked = false;
    for (const reader of this.#core.waiting.splice(0)) reader.reject(released());
  }
}

function released(): TypeError {
  return new TypeError('the reader was released; get another one');
}

/**
 * Whether somebody has read from a stream, or cancelled it.
 * @internal
 */
export function isDisturbed(stream: ReadableStream<unknown>): boolean {
  return coreOf(stream).isDisturbed;
}

refuseInJson(ReadableStream, 'read it to its end: `await new Response(stream).text()`');
refuseInJson(ReadableStreamReader, 'send what `read` gives');
