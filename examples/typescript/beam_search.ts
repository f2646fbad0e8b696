/** Keeps the likeliest few continuations at each step. Input: {"prompt", "beams", "max_tokens"}. */

import { Context, Distribution, Model, chat } from 'inferlet';

interface Input {
  prompt?: string;
  beams?: number;
  max_tokens?: number;
}

interface Beam {
  score: number;
  ctx: Context;
  tokens: number[];
}

export async function main(input: Input | null): Promise<string[]> {
  const { prompt = 'Name an animal.', beams: nBeams = 3, max_tokens: maxTokens = 16 } = input ?? {};
  const model = Model.load('default');
  const ends = new Set(chat.stopTokens(model));
  const hasEnded = ({ tokens }: Beam): boolean => ends.has(tokens.at(-1)!);

  /** The likeliest tokens behind a beam. The last token of the beam is still in its buffer. */
  async function choices({ score, ctx, tokens }: Beam): Promise<Beam[]> {
    const fwd = ctx.forward();
    const probe = fwd.probe(ctx.buffer().length - 1, Distribution(1, nBeams));
    const [ids, shares] = (await fwd.execute()).distribution(probe)!;
    return Array.from(ids, (token, index) => ({ score: score * shares[index]!, ctx, tokens: [...tokens, token] }));
  }

  let beams: Beam[] = [{ score: 1, ctx: new Context(model).user(prompt).cue(), tokens: [] }];
  const done: Beam[] = [];
  for (let n = 0; n < maxTokens && beams.length > 0 && done.length < nBeams; n++) {
    // The passes of all beams share a batch.
    const found = (await Promise.all(beams.map(choices))).flat();
    const best = found.sort((one, other) => other.score - one.score).slice(0, nBeams);
    done.push(...best.filter(hasEnded));
    // A fork shares the pages of the beam that it continues.
    beams = best
      .filter((beam) => !hasEnded(beam))
      .map(({ score, ctx, tokens }) => ({ score, ctx: ctx.fork().append(tokens.slice(-1)), tokens }));
  }
  const ranked = (done.length > 0 ? done : beams).sort((one, other) => other.score - one.score).slice(0, nBeams);
  return ranked.map(({ tokens }) => model.tokenizer().decode(tokens.filter((token) => !ends.has(token))));
}
