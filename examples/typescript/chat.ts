/** Streams an answer to the client as it is written. */

import { Context, Model, Sampler, chat, runtime, session, type FinishReason } from 'inferlet';

interface Input {
  prompt?: string;
  max_tokens?: number;
  temperature?: number;
  top_p?: number;
}

interface Answer {
  tokens: number;
  finish: FinishReason | undefined;
}

export async function main(input: Input | null): Promise<Answer> {
  const { prompt = 'Tell me a short story about a fox.', max_tokens = 128, temperature = 0.8, top_p = 0.95 } = input ?? {};
  const model = Model.load(runtime.models()[0]!);
  using ctx = new Context(model);
  ctx.system('You are a helpful assistant.').user(prompt);

  const g = ctx.generate(Sampler.topP(temperature, top_p), { maxTokens: max_tokens });
  const decoder = new chat.Decoder(model);
  for await (const step of g) {
    for (const event of decoder.events(await step.execute())) {
      if (event.type === 'delta') session.send(event.text);
    }
  }
  return { tokens: g.tokensGenerated, finish: g.finishReason };
}
