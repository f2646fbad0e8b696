/** What the model thinks before it answers. */

import * as host from 'pie:host';
import { toTokens, type Tokens } from './arguments.js';
import { modelHandle, type Model } from './model.js';
import { Output } from './output.js';

/** What the tokens of one `feed` meant. */
export type Event =
  /** Nothing of a thought. */
  | { readonly type: 'idle' }
  /** A thought begins. */
  | { readonly type: 'start' }
  /** Text of a thought. */
  | { readonly type: 'delta'; readonly text: string }
  /** The end of a thought, with its whole text. */
  | { readonly type: 'end'; readonly text: string };

/**
 * Tells what the model thinks, between the markers of its template, from what it says. A thought ends with its turn at
 * the latest. Of a model without thoughts every event is idle.
 */
export class Decoder {
  readonly #handle: host.ReasoningDecoderHandle;

  constructor(model: Model) {
    this.#handle = host.reasoningDecoderCreate(modelHandle(model));
  }

  /**
   * Takes tokens and gives one event. What they complete beyond the first is queued: `feed([])` drains it, and so does
   * `events`.
   */
  feed(tokens: Tokens): Event {
    return toEvent(this.#handle.feed(toTokens(tokens, 'tokens')));
  }

  /** Takes what a step accepted: where it was the last of the generation, its turn ends with it. Else as `feed`. */
  feedOutput({ tokens, finishReason }: Pick<Output, 'tokens' | 'finishReason'>): Event {
    return toEvent(this.#handle.feedOutput(toTokens(tokens, 'tokens'), finishReason));
  }

  /** Ends a turn that was begun, and a thought that is open. One event; `feed([])` drains the rest. */
  finish(): Event {
    return toEvent(this.#handle.finish());
  }

  /** Takes tokens, or what a step accepted, and gives every event that they complete, idle ones left out. */
  events(taken: Tokens | Output): Generator<Event, void> {
    return this.#rest(taken instanceof Output ? this.feedOutput(taken) : this.feed(taken));
  }

  /** Forgets what was fed. */
  reset(): void {
    this.#handle.reset();
  }

  /** An event and all that are queued behind it. */
  *#rest(first: Event): Generator<Event, void> {
    for (let event = first; event.type !== 'idle'; event = this.feed([])) yield event;
  }
}

function toEvent(event: host.ReasoningEvent): Event {
  switch (event.type) {
    case 'idle':
    case 'start':
      return event;
    case 'delta':
    case 'end':
      return { type: event.type, text: event.value };
  }
}
