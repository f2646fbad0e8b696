/** Text to token ids and back. */
import { type Tokens } from './arguments.js';
/** The tokenizer of a model, from `model.tokenizer()`. */
export declare class Tokenizer {
    #private;
    /** Token ids of a text. Control tokens in the text are parsed; no token is added at the front or the end. */
    encode(text: string): Uint32Array;
    /**
     * The text of token ids, control tokens included; bytes that are not UTF-8 become U+FFFD.
     * @throws InferletError `invalid-token`
     */
    decode(tokens: Tokens): string;
    /** Every id with its raw bytes, as two arrays of the same length, in id order. */
    vocabs(): [Uint32Array, Uint8Array[]];
    /** The control tokens with their bytes, as two arrays of the same length, in id order. */
    specialTokens(): [Uint32Array, Uint8Array[]];
    /** The regular expression that splits text before byte-pair encoding; empty where the tokenizer has none. */
    splitRegex(): string;
}
