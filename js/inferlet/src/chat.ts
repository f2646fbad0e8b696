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

/** Names the generator whose tokens a decoder is made for, among its options. */
const GENERATOR = Symbol('generator');

interface OfGenerator {
  readonly [GENERATOR]?: host.GeneratorHandle;
}

/** Turns tokens into text without tearing characters apart. */
export class Decoder extends EventDecoder<Event> {
  /** `hideThoughts` and `hideCalls` leave out what the decoders of `reasoning` and `tools` tell. */
  constructor(model: Model, options: { hideThoughts?: boolean; hideCalls?: boolean } = {}) {
    checkOptions(options, ['hideThoughts', 'hideCalls'], 'chat.Decoder');
    const hideThoughts = toBoolean(options.hideThoughts ?? false, 'hideThoughts');
    const hideCalls = toBoolean(options.hideCalls ?? false, 'hideCalls');
    const generator = (options as unknown as OfGenerator)[GENERATOR];
    const raw =
      generator !== undefined
        ? host.decoderCreateFor(generator, hideThoughts, hideCalls)
        : hideThoughts || hideCalls
          ? host.decoderCreateHiding(modelHandle(model), hideThoughts, hideCalls)
          : host.decoderCreate(modelHandle(model));
    super(raw, toEvent);
  }
}

/**
 * A decoder of what a generator accepts from now on, which shows none of its stop texts.
 * @internal
 */
export function decoderFor(
  generator: host.GeneratorHandle, model: Model, options: { hideThoughts?: boolean; hideCalls?: boolean } = {},
): Decoder {
  const ofGenerator: unknown = { ...options, [GENERATOR]: generator };
  return new Decoder(model, ofGenerator as { hideThoughts?: boolean; hideCalls?: boolean });
}

/**
 * What a decoder shows of tokens that a generator accepted.
 * @internal
 */
export function visibleText(decoder: Decoder, tokens: Uint32Array, finishReason: FinishReason | undefined): string {
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
