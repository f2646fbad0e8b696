// What the benchmarks have a JavaScript program do: the input names it, as in `asv_benchmarks/guests/workload`.

import { Context, Entropy, Model, Sampler, session } from 'inferlet';

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
    if (input.step.probe) generation.probeEachStep(0, new Entropy());
    let tokens = 0;
    for await (const step of generation) tokens += (await step.execute()).tokens.length;
    return tokens;
  }
  throw new Error(`unknown work: ${JSON.stringify(input)}`);
}

function generate({ prompt, tokens, nucleus, mask }) {
  const context = new Context(Model.load('default'));
  context.append(prompt);
  const sampler = nucleus === undefined ? Sampler.argmax() : Sampler.topP(1, nucleus);
  return [context, context.generate(sampler, { maxTokens: tokens, logitMask: mask }).ignoreEos()];
}
