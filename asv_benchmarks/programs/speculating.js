// Generates behind a text, with drafts or without: says when it begins, and when it is done.

import { Context, Model, Sampler, session } from 'inferlet';

export async function main({ text, temperature, tokens, speculation }) {
  const context = new Context(Model.load('default'));
  context.appendText(text);
  const options = { maxTokens: tokens, seed: 5, autoFlush: false, ignoreEos: true, systemSpeculation: speculation };
  const generation = context.generate(Sampler.topP(temperature, 1), options);
  await generation.next().then(({ value }) => value.execute());
  session.send('begun');
  return (await generation.collectTokens()).length;
}
