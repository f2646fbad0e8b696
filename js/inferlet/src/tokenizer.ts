/** Text to token ids and back. */

import type { TokenizerHandle } from 'pie:host';
import { show, toText, toTokens, type Tokens } from './arguments.js';
import { wrongType } from './errors.js';
import { refuseInJson } from './json.js';

/** The tokenizer of a model, from `model.tokenizer()`. */
export class Tokenizer {
  readonly #handle: TokenizerHandle;

  /** @internal */
  constructor(handle: TokenizerHandle) {
    this.#handle = handle;
  }

  /** @internal */
  get handle(): TokenizerHandle {
    return this.#handle;
  }

  /**
   * Token ids of a text. Control tokens in the text are parsed; no token is added at the front or the end.
   * @throws InferletError `limit-message` for a text of more than 4 MiB: encode it in parts.
   */
  encode(text: string): Uint32Array {
    return this.#handle.tryEncode(toText(text, 'text'));
  }

  /**
   * The text of token ids, control tokens included; bytes that are not UTF-8 become U+FFFD.
   * @throws InferletError `invalid-token` for an id outside the vocabulary.
   */
  decode(tokens: Tokens): string {
    return this.#handle.decode(toTokens(tokens, 'tokens'));
  }

  /** How many ids there are: V, the width of a row of logits. */
  vocabSize(): number {
    return this.#handle.vocabSize();
  }

  /** Every id with its raw bytes, as two arrays of `[V]`, in id order. */
  vocabs(): [Uint32Array, Uint8Array[]] {
    return this.#handle.vocabs();
  }

  /** The control tokens with their bytes, as two arrays of the same length, in id order. */
  specialTokens(): [Uint32Array, Uint8Array[]] {
    return this.#handle.specialTokens();
  }

  /** The regular expression that splits text before byte-pair encoding; empty where the tokenizer has none. */
  splitRegex(): string {
    return this.#handle.splitRegex();
  }
}

refuseInJson(Tokenizer, 'send the tokens or the text that it gives');

/** @internal */
export function tokenizerHandle(tokenizer: Tokenizer): TokenizerHandle {
  if (!(tokenizer instanceof Tokenizer)) throw wrongType(`tokenizer must be a Tokenizer; it is ${show(tokenizer)}`);
  return tokenizer.handle;
}
