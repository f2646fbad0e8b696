/** What the decoders of text, thoughts and calls have in common: they take tokens, and give one event at a time. */

import type * as host from 'pie:host';
import { toTokens, type Tokens } from './arguments.js';
import { refuseInJson } from './json.js';
import { Output } from './output.js';

/**
 * A decoder of the engine, and how its events are read. One event a `feed`: what a batch of tokens completes beyond the
 * first is queued; `feed([])` drains it, and so does `events`.
 */
export abstract class EventDecoder<E extends { readonly type: string }> {
  readonly #raw: host.DecoderHandle | host.ReasoningDecoderHandle | host.ToolDecoderHandle;
  readonly #read: (event: never) => E;

  /**
   * @param read of the events of `raw`.
   * @internal
   */
  constructor(raw: host.DecoderHandle | host.ReasoningDecoderHandle | host.ToolDecoderHandle, read: (event: never) => E) {
    this.#raw = raw;
    this.#read = read;
  }

  /**
   * Takes tokens and gives the first event that is due.
   * @throws InferletError `invalid-token` for an id outside the vocabulary.
   */
  feed(tokens: Tokens): E {
    return this.#read(this.#raw.feed(toTokens(tokens, 'tokens')) as never);
  }

  /**
   * Takes what a step accepted. A stop token is not shown, and where the step was the last of the generation, its turn
   * ends with it. A decoder that `g.decoder()` made shows no stop text either. Else as `feed`.
   */
  feedOutput({ tokens, finishReason }: Pick<Output, 'tokens' | 'finishReason'>): E {
    return this.#read(this.#raw.feedOutput(toTokens(tokens, 'tokens'), finishReason) as never);
  }

  /**
   * Ends a turn that was begun, and what is open in it; a character that was torn is shown as U+FFFD. One event;
   * `feed([])` drains the rest.
   */
  finish(): E {
    return this.#read(this.#raw.finish() as never);
  }

  /**
   * Takes tokens, or what a step accepted, and gives every event that they complete, idle ones left out. They are taken
   * at once, also where nobody asks for an event.
   */
  events(taken: Tokens | Output): Generator<E, void> {
    return this.#rest(taken instanceof Output ? this.feedOutput(taken) : this.feed(taken));
  }

  /** Forgets what was fed: the start of a turn. */
  reset(): void {
    this.#raw.reset();
  }

  /** An event and all that are queued behind it. */
  *#rest(first: E): Generator<E, void> {
    for (let event = first; event.type !== 'idle'; event = this.feed([])) yield event;
  }
}

refuseInJson(EventDecoder, 'send the text of its events');
