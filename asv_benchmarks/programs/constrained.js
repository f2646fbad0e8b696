// Generates a document under a schema, or as many tokens without: says when it begins, and how many there were.

import { Context, jsonSchema, Model, Sampler, session } from 'inferlet';

export async function main({ prompt, schema, seed, tokens }) {
  const context = new Context(Model.load('default')).append(prompt);
  const how = { seed, maxTokens: tokens, autoFlush: false, ignoreEos: schema === undefined };
  const constrain = schema === undefined ? undefined : jsonSchema(schema);
  const generation = context.generate(Sampler.topP(1, 0.95), { ...how, constrain });
  // What a schema takes to compile is measured elsewhere.
  await generation.next().then(({ value }) => value.execute());
  session.send('begun');
  const taken = await generation.collectTokens();
  return [taken.length, generation.finishReason];
}
