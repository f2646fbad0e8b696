/** What the model thinks before it answers. */

import * as host from 'pie:host';
import { EventDecoder } from './decoding.js';
import { modelHandle, type Model } from './model.js';

/** What the tokens of one `Decoder.feed` meant. */
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
export class Decoder extends EventDecoder<Event> {
  /** A decoder for what `model` says. */
  constructor(model: Model) {
    super(host.reasoningDecoderCreate(modelHandle(model)), toEvent);
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
