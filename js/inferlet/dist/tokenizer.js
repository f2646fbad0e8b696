/** Text to token ids and back. */
import { toText, toTokens } from './arguments.js';
/** The tokenizer of a model, from `model.tokenizer()`. */
export class Tokenizer {
    #handle;
    /** @internal */
    constructor(handle) {
        this.#handle = handle;
    }
    /** Token ids of a text. Control tokens in the text are parsed; no token is added at the front or the end. */
    encode(text) {
        return this.#handle.encode(toText(text, 'text'));
    }
    /**
     * The text of token ids, control tokens included; bytes that are not UTF-8 become U+FFFD.
     * @throws InferletError `invalid-token`
     */
    decode(tokens) {
        return this.#handle.decode(toTokens(tokens, 'tokens'));
    }
    /** Every id with its raw bytes, as two arrays of the same length, in id order. */
    vocabs() {
        return this.#handle.vocabs();
    }
    /** The control tokens with their bytes, as two arrays of the same length, in id order. */
    specialTokens() {
        return this.#handle.specialTokens();
    }
    /** The regular expression that splits text before byte-pair encoding; empty where the tokenizer has none. */
    splitRegex() {
        return this.#handle.splitRegex();
    }
}
