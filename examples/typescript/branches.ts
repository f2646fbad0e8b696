/** Continues one conversation in several ways at once. */

import { Context, Model, Sampler } from 'inferlet';

interface Input {
  prompt?: string;
  branches?: number;
  max_tokens?: number;
}

export async function main(input: Input | null): Promise<string[]> {
  const { prompt = 'Name an animal.', branches = 4, max_tokens = 32 } = input ?? {};
  using ctx = new Context(Model.load('default'));
  ctx.system('You are a helpful assistant.').user(prompt);
  // What the branches share is computed once.
  await ctx.flush();

  async function branch(): Promise<string> {
    using fork = ctx.fork();
    return await fork.generate(Sampler.topP(1.0, 0.95), { maxTokens: max_tokens }).collectText();
  }
  return await Promise.all(Array.from({ length: branches }, branch));
}
