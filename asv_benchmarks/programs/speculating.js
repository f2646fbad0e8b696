// Generates behind a text, with drafts or without: says when it begins, and when it is done.

import { Context, Model, Sampler, session } from 'inferlet';

export async function main({ text, ids, mask, seed, temperature, tokens, speculation }) {
  const context = new Context(Model.load('default'));
  if (text !== undefined) context.appendText(text);
  if (ids !== undefined) context.append(ids);
  const how = { autoFlush: false, ignoreEos: true, systemSpeculation: speculation, logitMask: mask };
  const options = { maxTokens: tokens, seed, ...how };
  const generation = context.generate(Sampler.topP(temperature, 1), options);
  await generation.next().then(({ value }) => value.execute());
  session.send('begun');
  return (await generation.collectTokens()).length;
}
