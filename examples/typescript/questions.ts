/** Twenty questions to one context at once, each in a fork of its own. */

import { Context, Model, Sampler } from 'inferlet';

export async function main(): Promise<string[]> {
  using ctx = new Context(Model.load('default')).system('You are a helpful assistant.');
  await ctx.flush(); // What the forks share is computed once.
  const numbers = Array.from({ length: 20 }, (_, index) => index + 1);
  const asked = numbers.map((n) => ctx.fork().ask(`What is ${n} + ${n}?`, Sampler.argmax(), { maxTokens: 16 }));
  return await Promise.all(asked);
}
