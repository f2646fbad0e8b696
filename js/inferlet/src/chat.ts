/**
 * Chat turns by the template of the checkpoint, and the decoder of what the model says. A template that refuses a
 * message, or has no such place, is the error `template-error`.
 */

import * as host from 'pie:host';
import { checkOptions, toBoolean, toText } from './arguments.js';
import { EventDecoder } from './decoding.js';
import { modelHandle, type Model } from './model.js';
import type { FinishReason } from './output.js';

/** What the tokens of one `Decoder.feed` meant. */
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
export class Decoder extends EventDecoder<Event> {
  /** `hideThoughts` and `hideCalls` leave out what the decoders of `reasoning` and `tools` tell. */
  constructor(model: Model, options: { hideThoughts?: boolean; hideCalls?: boolean } = {}) {
    checkOptions(options, ['hideThoughts', 'hideCalls'], 'chat.Decoder');
    const hideThoughts = options.hideThoughts ?? false;
    const hideCalls = options.hideCalls ?? false;
    const raw =
      hideThoughts || hideCalls
        ? host.decoderCreateHiding(modelHandle(model), toBoolean(hideThoughts, 'hideThoughts'), toBoolean(hideCalls, 'hideCalls'))
        : host.decoderCreate(modelHandle(model));
    super(raw, toEvent);
  }
}

/**
 * What a decoder shows of tokens that a generator accepted.
 * @internal
 */
export function visibleText(model: Model, tokens: Uint32Array, finishReason: FinishReason | undefined): string {
  const decoder = new Decoder(model);
  let text = '';
  for (let event = decoder.feedOutput({ tokens, finishReason }); event.type !== 'idle'; event = decoder.feed([])) {
    if (event.type === 'delta') text += event.text;
  }
  return text;
}

/** The tokens of a system message that follows others, for `ctx.append`. */
export function system(model: Model, message: string): Uint32Array {
  return host.messageTokens(modelHandle(model), 'system', toText(message, 'message'));
}

/** The tokens of a user message that follows others, for `ctx.append`. */
export function user(model: Model, message: string): Uint32Array {
  return host.messageTokens(modelHandle(model), 'user', toText(message, 'message'));
}

/** The tokens of a whole assistant message that follows others, for `ctx.append`. */
export function assistant(model: Model, message: string): Uint32Array {
  return host.messageTokens(modelHandle(model), 'assistant', toText(message, 'message'));
}

/** The tokens that open the assistant's turn. */
export function cue(model: Model): Uint32Array {
  return host.cueTokens(modelHandle(model));
}

/** The tokens that close the assistant's turn. */
export function seal(model: Model): Uint32Array {
  return host.sealTokens(modelHandle(model));
}

/** The ids of the tokens that end a turn. */
export function stopTokens(model: Model): Uint32Array {
  return host.stopTokens(modelHandle(model));
}

function toEvent(event: host.Event): Event {
  switch (event.type) {
    case 'idle':
      return event;
    case 'delta':
    case 'done':
      return { type: event.type, text: event.value };
    case 'interrupt':
      return { type: event.type, token: event.value };
  }
}
