/** Contexts: sequences of tokens with their keys and values in pages. */
import { type Tokens } from './arguments.js';
import { Generator, type GenerateOptions } from './generator.js';
import { type Model } from './model.js';
import type { Sampler } from './sampler.js';
/**
 * A sequence of tokens that a model continues. What is filled in waits in a buffer until a pass computes it.
 *
 * Every call after `release` is the error `context-released`. While a pass is under way, `fork`, `truncate` and another pass are
 * `context-busy`, and so are additions while a collector runs.
 */
export declare class Context implements Disposable {
    #private;
    /** The bound model. */
    readonly model: Model;
    /** A fresh, empty context. */
    constructor(model: Model);
    /** A copy of everything: tokens, buffer and open turn. Pages are shared until they are written. */
    fork(): Context;
    /** Frees the pages now. A second release does nothing. */
    release(): void;
    [Symbol.dispose](): void;
    /** Adds a system message. Its text never becomes a control token, here and in the other messages. */
    system(text: string): this;
    /** Adds a user message, closing an open assistant turn first. */
    user(text: string): this;
    /** Adds a whole assistant message. */
    assistant(text: string): this;
    /** Opens the assistant's turn, where the model starts speaking. `generate` does so by itself; a second cue does nothing. */
    cue(): this;
    /** Closes the assistant's turn; a second seal does nothing. */
    seal(): this;
    /**
     * Adds token ids.
     * @throws InferletError `invalid-token` for an id outside the vocabulary.
     */
    append(tokens: Tokens): this;
    /** Encodes a text, control tokens included, and adds its tokens. */
    appendText(text: string): this;
    /** Computes what is buffered. With nothing to compute, no pass runs. */
    flush(): Promise<void>;
    /**
     * Drops the last `n` tokens; what is buffered stays.
     * @throws InferletError `truncate-range` for more tokens than lie outside committed pages.
     */
    truncate(n: number): void;
    /** Tokens in pages, and the newest one of a generation; the buffer is not counted. */
    get seqLen(): number;
    /** Tokens a page holds. */
    get pageSize(): number;
    /** The tokens that were added and that no pass has taken. */
    buffer(): Uint32Array;
    /**
     * A generator that continues this context. Nothing runs before its first step. Where a chat turn stands last, the model is cued.
     * @throws InferletError `empty-context`, `invalid-sampler`, `invalid-argument`
     */
    generate(sampler: Sampler, options?: GenerateOptions): Generator;
}
