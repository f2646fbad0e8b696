/** Chat turns by the template of the checkpoint, and the decoder of what the model says. */
import { type Tokens } from './arguments.js';
import { type Model } from './model.js';
/** What the tokens of one `feed` meant. */
export type Event = 
/** No boundary and no text to show. */
{
    readonly type: 'idle';
}
/** Visible text. */
 | {
    readonly type: 'delta';
    readonly text: string;
}
/** The end of the turn, with its whole text. */
 | {
    readonly type: 'done';
    readonly text: string;
}
/** A control token that has no text. */
 | {
    readonly type: 'interrupt';
    readonly token: number;
};
/** Turns tokens into text without tearing characters apart. */
export declare class Decoder {
    #private;
    constructor(model: Model);
    /** Takes tokens and gives one event. What they complete beyond the first is queued: `feed([])` drains it, and so does `events`. */
    feed(tokens: Tokens): Event;
    /** Takes tokens and gives every event that they complete, idle ones left out. */
    events(tokens: Tokens): Generator<Event, void>;
    /** Forgets what was fed. */
    reset(): void;
}
/** The tokens of a system message, for `ctx.append`. */
export declare function system(model: Model, message: string): Uint32Array;
/** The tokens of a user message, for `ctx.append`. */
export declare function user(model: Model, message: string): Uint32Array;
/** The tokens of an assistant message, for `ctx.append`. */
export declare function assistant(model: Model, message: string): Uint32Array;
/** The tokens that open the assistant's turn. */
export declare function cue(model: Model): Uint32Array;
/** The tokens that close the assistant's turn. */
export declare function seal(model: Model): Uint32Array;
/** The tokens that end a turn. */
export declare function stopTokens(model: Model): Uint32Array;
