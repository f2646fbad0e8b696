/**
 * Marks a text by the tokens that it is written with, and finds the mark again. Input: {"prompt", "key", "max_tokens"}.
 */

import { type Constraint, Context, Model, Sampler, brle } from 'inferlet';

interface Input {
  prompt?: string;
  key?: number;
  max_tokens?: number;
}

interface Found {
  text: string;
  green: { plain: number; marked: number };
}

/** The half of the vocabulary that may follow a token: those whose hash with it and the key is even. */
function green(previous: number, key: number, vocabSize: number): number[] {
  const start = Math.imul(previous, 2_654_435_761) + Math.imul(key, 40_503);
  const ids = Array.from({ length: vocabSize }, (_, token) => token);
  return ids.filter((token) => Math.imul(start ^ token, 2_246_822_519) >= 0);
}

/** A constraint that allows green tokens alone. */
class Watermark implements Constraint {
  #previous: number;
  readonly #key: number;
  readonly #vocabSize: number;

  constructor(first: number, key: number, vocabSize: number) {
    this.#previous = first;
    this.#key = key;
    this.#vocabSize = vocabSize;
  }

  step(accepted: Uint32Array): Uint32Array {
    this.#previous = accepted.at(-1) ?? this.#previous;
    return brle.allowing(green(this.#previous, this.#key, this.#vocabSize), this.#vocabSize);
  }
}

/** The detector: near 1 for a marked text, near a half for any other. */
function shareOfGreen(tokens: Uint32Array, first: number, key: number, vocabSize: number): number {
  const isGreen = (token: number, n: number): boolean => green(tokens[n - 1] ?? first, key, vocabSize).includes(token);
  return tokens.filter(isGreen).length / tokens.length;
}

export async function main(input: Input | null): Promise<Found> {
  const { prompt = 'Tell me a short story about a fox.', key = 15, max_tokens: maxTokens = 32 } = input ?? {};
  const model = Model.load('default');
  const vocabSize = model.tokenizer().vocabSize();
  const ctx = new Context(model).user(prompt).cue();
  const first = ctx.buffer().at(-1)!;
  const plain = ctx.fork().generate(Sampler.topP(1.0, 0.95), { maxTokens, ignoreEos: true });
  const constrain = new Watermark(first, key, vocabSize);
  const marked = ctx.generate(Sampler.topP(1.0, 0.95), { maxTokens, ignoreEos: true, constrain });
  const texts = { plain: await plain.collectTokens(), marked: await marked.collectTokens() };
  const share = (tokens: Uint32Array): number => shareOfGreen(tokens, first, key, vocabSize);
  const found = { plain: share(texts.plain), marked: share(texts.marked) };
  return { text: model.tokenizer().decode(texts.marked), green: found };
}
