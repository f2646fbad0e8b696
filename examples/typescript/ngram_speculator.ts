/**
 * Proposes what followed the newest two tokens before: less passes where a text repeats itself. Input: {"prompt",
 * "max_tokens"}. Speculation changes no token.
 */

import { Context, Model, Sampler, type Speculator } from 'inferlet';

interface Input {
  prompt?: string;
  max_tokens?: number;
}

/** A speculator that looks the newest two tokens up in what was said. */
class NGrams implements Speculator {
  readonly #prompt: Uint32Array;
  readonly #width: number;
  #tokens: number[] = [];
  #seen = new Map<string, number>();

  constructor(prompt: Uint32Array, width = 4) {
    this.#prompt = prompt;
    this.#width = width;
    this.reset();
  }

  draft(): [number[], number[]] {
    const start = this.#seen.get(this.#pair()) ?? this.#tokens.length;
    const tokens = this.#tokens.slice(start, start + this.#width);
    return [tokens, tokens.map((_, index) => this.#tokens.length + index)];
  }

  accept(tokens: Uint32Array): void {
    for (const token of tokens) {
      // Where a pair was seen is told once something follows it.
      this.#seen.set(this.#pair(), this.#tokens.length);
      this.#tokens.push(token);
    }
  }

  reset(): void {
    this.#tokens = [];
    this.#seen = new Map();
    this.accept(this.#prompt);
  }

  #pair(): string {
    return this.#tokens.slice(-2).join();
  }
}

export async function main(input: Input | null): Promise<object> {
  const { prompt = 'Tell me a short story about a fox.', max_tokens: maxTokens = 48 } = input ?? {};
  const model = Model.load('default');
  const ctx = new Context(model).user(prompt).cue();
  const speculator = new NGrams(ctx.buffer());
  const g = ctx.fork().generate(Sampler.argmax(), { maxTokens, ignoreEos: true, speculator });
  const tokens: number[] = [];
  let [drafted, accepted, steps] = [0, 0, 0];
  for await (const step of g) {
    const out = await step.execute();
    tokens.push(...out.tokens);
    drafted += out.raw.speculative.drafted;
    accepted += out.raw.speculative.accepted;
    steps += 1;
  }
  const plain = await ctx.generate(Sampler.argmax(), { maxTokens, ignoreEos: true }).collectTokens();
  const same = tokens.join() === plain.join();
  return { text: model.tokenizer().decode(tokens), same, steps, drafted, accepted };
}
