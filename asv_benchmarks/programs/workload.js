// What the benchmarks have a JavaScript program do: the input names it, as in `asv_benchmarks/guests/workload`.

import { Context, Entropy, Logits, Model, Sampler, session } from 'inferlet';

const PROBES = { entropy: Entropy, logits: Logits };

export async function main(input) {
  if (input === 'nothing') return 0;
  if (input === 'idle') {
    session.send('idle');
    await session.receive().catch(() => null);
    return 0;
  }
  if (input.collect) {
    const [, generation] = generate(input.collect);
    return (await generation.collectTokens()).length;
  }
  if (input.step) {
    const [, generation] = generate(input.step);
    if (input.step.probe) generation.probeEachStep(0, PROBES[input.step.probe]());
    let tokens = 0;
    for await (const step of generation) tokens += (await step.execute()).tokens.length;
    return tokens;
  }
  throw new Error(`unknown work: ${JSON.stringify(input)}`);
}

function samplerOf({ nucleus, minP, topK }) {
  if (nucleus !== undefined) return Sampler.topP(1, nucleus);
  if (minP !== undefined) return Sampler.minP(1, minP);
  return topK === undefined ? Sampler.argmax() : Sampler.topK(1, topK);
}

function generate({ prompt, tokens, mask, ...draws }) {
  const context = new Context(Model.load('default'));
  context.append(prompt);
  return [context, context.generate(samplerOf(draws), { maxTokens: tokens, logitMask: mask }).ignoreEos()];
}
