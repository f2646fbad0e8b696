/** Chat turns by the template of the checkpoint, and the decoder of what the model says. */

import { cueTokens, messageTokens, newDecoder, sealTokens, stopTokens as templateStops, type DecoderHandle } from 'pie:host';
import { toText, toTokens, type Tokens } from './arguments.js';
import { modelHandle, type Model } from './model.js';

/** What the tokens of one `feed` meant. */
export type Event =
  /** No boundary and no text to show. */
  | { readonly type: 'idle' }
  /** Visible text. */
  | { readonly type: 'delta'; readonly text: string }
  /** The end of the turn, with its whole text. */
  | { readonly type: 'done'; readonly text: string }
  /** A control token that has no text. */
  | { readonly type: 'interrupt'; readonly token: number };

/** Turns tokens into text without tearing characters apart. */
export class Decoder {
  readonly #handle: DecoderHandle;

  constructor(model: Model) {
    this.#handle = newDecoder(modelHandle(model));
  }

  /** Takes tokens and gives one event. What they complete beyond the first is queued: `feed([])` drains it, and so does `events`. */
  feed(tokens: Tokens): Event {
    return this.#handle.feed(toTokens(tokens, 'tokens'));
  }

  /** Takes tokens and gives every event that they complete, idle ones left out. */
  *events(tokens: Tokens): Generator<Event, void> {
    for (let event = this.feed(tokens); event.type !== 'idle'; event = this.feed([])) yield event;
  }

  /** Forgets what was fed. */
  reset(): void {
    this.#handle.reset();
  }
}

/** The tokens of a system message, for `ctx.append`. */
export function system(model: Model, message: string): Uint32Array {
  return messageTokens(modelHandle(model), 'system', toText(message, 'message'));
}

/** The tokens of a user message, for `ctx.append`. */
export function user(model: Model, message: string): Uint32Array {
  return messageTokens(modelHandle(model), 'user', toText(message, 'message'));
}

/** The tokens of an assistant message, for `ctx.append`. */
export function assistant(model: Model, message: string): Uint32Array {
  return messageTokens(modelHandle(model), 'assistant', toText(message, 'message'));
}

/** The tokens that open the assistant's turn. */
export function cue(model: Model): Uint32Array {
  return cueTokens(modelHandle(model));
}

/** The tokens that close the assistant's turn. */
export function seal(model: Model): Uint32Array {
  return sealTokens(modelHandle(model));
}

/** The tokens that end a turn. */
export function stopTokens(model: Model): Uint32Array {
  return templateStops(modelHandle(model));
}
