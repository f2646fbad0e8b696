// Takes all it can get until it is cancelled: prefills prompts of which none was seen before, or generates in many
// contexts at once.

import { Context, Model, Sampler, session } from 'inferlet';

export async function main({ salt, prefill, generate }) {
  const model = Model.load('default');
  session.send('begun');
  for (let turn = 0; ; turn += 1) {
    const work = prefill ?? generate;
    const contexts = Array.from({ length: work.contexts }, (_, index) => {
      const context = new Context(model);
      context.append(distinct(salt * 1_000_003 + turn * 1009 + index, work.prompt));
      return context;
    });
    await Promise.all(contexts.map((context) => (prefill ? context.flush() : draw(context, generate.tokens))));
    for (const context of contexts) context.release();
  }
}

function draw(context, maxTokens) {
  return context.generate(Sampler.argmax(), { maxTokens }).ignoreEos().collectTokens();
}

/** Tokens that begin as no others do. */
function distinct(seed, length) {
  let state = (seed * 2_654_435_761) >>> 0;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return 100 + (state >>> 8) % 3000;
  });
}
