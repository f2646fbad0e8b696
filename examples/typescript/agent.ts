/** An agent: the model calls a function until it can answer in words. */

import { Context, Model, Sampler, runtime, session } from 'inferlet';

interface Input {
  prompt?: string;
  max_turns?: number;
}

// In the words that the embedded model was trained on; another model wants those of its own chat template.
const FUNCTIONS = `# Tools

You can call these functions:
<tools>
{"name": "get_price", "description": "Get the price of an item.", "parameters": \
{"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}}
</tools>

To call one, write:
<tool_call>
{"name": <name>, "arguments": <object>}
</tool_call>`;

const PRICES = new Map([['guitar', 180], ['hammer', 12], ['jacket', 59], ['violin', 340]]);

// JSON with a space after the colon, as the embedded model was trained on.
function getPrice(item: string): string {
  const price = PRICES.get(item);
  // The model is told what went wrong, and answers with it.
  return price === undefined ? `{"error": ${JSON.stringify(`there is no ${item}`)}}` : `{"price": ${price}}`;
}

/** The item of the call that the model wrote; undefined where it answered in words. */
function findCall(text: string): string | undefined {
  const [, rest] = text.split('<tool_call>');
  if (rest === undefined) return undefined;
  const { item } = JSON.parse(rest.split('</tool_call>')[0]!).arguments;
  if (typeof item !== 'string') throw new TypeError('the call does not name an item');
  return item;
}

export async function main(input: Input | null): Promise<string> {
  const { prompt = 'How much does a violin cost?', max_turns = 4 } = input ?? {};
  using ctx = new Context(Model.load(runtime.models()[0]!));
  ctx.system(FUNCTIONS).user(prompt);

  for (let turn = 0; turn < max_turns; turn++) {
    const text = await ctx.generate(Sampler.argmax(), { maxTokens: 64 }).collectText();
    const item = findCall(text);
    if (item === undefined) return text;
    session.send({ calls: 'get_price', item });
    ctx.user(`<tool_response>\n${getPrice(item)}\n</tool_response>`);
  }
  throw new Error('the model calls functions and does not answer; allow it more turns with max_turns');
}
