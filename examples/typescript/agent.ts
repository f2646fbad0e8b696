/** An agent: the model calls tools until it can answer in words. */

import { Context, Model, Sampler, chat, session, tools } from 'inferlet';

interface Input {
  prompt?: string;
  max_turns?: number;
  tool_choice?: tools.Choice;
}

const PRICES = new Map([['guitar', 180], ['hammer', 12], ['jacket', 59], ['violin', 340]]);

const TOOLS = [
  {
    name: 'get_price',
    description: 'Get the price of an item.',
    parameters: { type: 'object', properties: { item: { type: 'string' } }, required: ['item'] },
    // JSON with a space after the colon, as the embedded model was trained on. The model is told what went wrong.
    call({ item }: { item?: unknown }): string {
      const price = PRICES.get(String(item));
      return price === undefined ? failure(`there is no ${item}`) : `{"price": ${price}}`;
    },
  },
  {
    name: 'get_time',
    description: 'Get the time in a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    call: ({ city }: { city?: unknown }): string => failure(`there is no clock in ${city}`),
  },
];

const failure = (why: string): string => `{"error": ${JSON.stringify(why)}}`;

export async function main(input: Input | null): Promise<string> {
  const { prompt = 'How much does a violin cost?', max_turns = 4, tool_choice } = input ?? {};
  const model = Model.load('default');
  using ctx = new Context(model);
  ctx.equip(TOOLS).user(prompt);

  for (let turn = 0; turn < max_turns; turn++) {
    // The choice is for the first turn: behind an answer the model may speak.
    const toolChoice = turn === 0 ? tool_choice : undefined;
    const tokens = await ctx.generate(Sampler.argmax(), { maxTokens: 64, toolChoice }).collectTokens();
    const calls = [...new tools.Decoder(model).events(tokens)].filter((event) => event.type === 'call');
    if (calls.length === 0) {
      return [...new chat.Decoder(model).events(tokens)].map((event) => (event.type === 'delta' ? event.text : '')).join('');
    }
    for (const { name, args, id } of calls) {
      const given = JSON.parse(args);
      session.send({ calls: name, ...given });
      ctx.answer(name, TOOLS.find((tool) => tool.name === name)?.call(given) ?? failure(`there is no tool ${name}`), id);
    }
  }
  throw new Error('the model calls tools and does not answer; allow it more turns with max_turns');
}
