/** Chat turns by the template of the checkpoint, and the decoder of what the model says. */
import { cueTokens, messageTokens, newDecoder, sealTokens, stopTokens as templateStops } from 'pie:host';
import { toText, toTokens } from './arguments.js';
import { modelHandle } from './model.js';
/** Turns tokens into text without tearing characters apart. */
export class Decoder {
    #handle;
    constructor(model) {
        this.#handle = newDecoder(modelHandle(model));
    }
    /** Takes tokens and gives one event. What they complete beyond the first is queued: `feed([])` drains it, and so does `events`. */
    feed(tokens) {
        return this.#handle.feed(toTokens(tokens, 'tokens'));
    }
    /** Takes tokens and gives every event that they complete, idle ones left out. */
    *events(tokens) {
        for (let event = this.feed(tokens); event.type !== 'idle'; event = this.feed([]))
            yield event;
    }
    /** Forgets what was fed. */
    reset() {
        this.#handle.reset();
    }
}
/** The tokens of a system message, for `ctx.append`. */
export function system(model, message) {
    return messageTokens(modelHandle(model), 'system', toText(message, 'message'));
}
/** The tokens of a user message, for `ctx.append`. */
export function user(model, message) {
    return messageTokens(modelHandle(model), 'user', toText(message, 'message'));
}
/** The tokens of an assistant message, for `ctx.append`. */
export function assistant(model, message) {
    return messageTokens(modelHandle(model), 'assistant', toText(message, 'message'));
}
/** The tokens that open the assistant's turn. */
export function cue(model) {
    return cueTokens(modelHandle(model));
}
/** The tokens that close the assistant's turn. */
export function seal(model) {
    return sealTokens(modelHandle(model));
}
/** The tokens that end a turn. */
export function stopTokens(model) {
    return templateStops(modelHandle(model));
}
