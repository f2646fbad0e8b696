/** The simplest program: one message, one answer. */

import { Context, Model, Sampler } from 'inferlet';

interface Input {
  name?: string;
}

export async function main(input: Input | null): Promise<string> {
  using ctx = new Context(Model.load('default'));
  ctx.user(input?.name ? `Hello! My name is ${input.name}.` : 'Hello!');
  return await ctx.generate(Sampler.topP(0.6, 0.95), { maxTokens: 64 }).collectText();
}
