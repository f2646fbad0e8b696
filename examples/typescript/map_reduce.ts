/**
 * Summarizes the parts of a text at the same time, each by a child, and then the summaries.
 *
 * pie run examples/typescript/map_reduce.ts -- --text "A first part. A second part." --parts 2
 */

import { Context, Model, Sampler, runtime } from 'inferlet';

interface Input {
  text?: string;
  parts?: number;
  part?: string;
}

export async function main(input: Input) {
  if (input.part !== undefined) return await summary(input.part);
  const sentences = (input.text ?? 'Rain fell. The sun came out.').split('.').map((one) => one.trim()).filter((one) => one !== '');
  const nParts = Math.max(1, Math.min(input.parts ?? 2, sentences.length));
  const parts = Array.from({ length: nParts }, (_, index) => sentences.filter((_, at) => at % nParts === index).join('. '));
  // `.` is this program: each child gets one part.
  const children = parts.map((part) => runtime.spawn('.', { part }));
  const summaries = await Promise.all(children) as string[];
  return { parts: summaries, summary: await summary(summaries.join(' ')) };
}

async function summary(text: string): Promise<string> {
  using ctx = new Context(Model.load('default'));
  ctx.user(`Say in a few words: ${text}`);
  return await ctx.generate(Sampler.argmax(), { maxTokens: 24 }).collectText();
}
