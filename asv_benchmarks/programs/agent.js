// An agent that calls a tool after each turn; or one turn, for a client that calls the tool itself and keeps the rest.

import { Context, Model, Sampler } from 'inferlet';

export async function main({ prompt, tokens, tool, result, calls }) {
  const context = new Context(Model.load('default'));
  context.append(prompt);
  if (tool === undefined) return await turn(context, tokens);
  const turns = [];
  for (let call = 0; call < calls; call += 1) {
    turns.push(await turn(context, tokens));
    const answer = await fetch(tool);
    if ((await answer.text()) !== 'done') throw new Error(`the tool answered with the status ${answer.status}`);
    context.append(result);
  }
  turns.push(await turn(context, tokens));
  return turns;
}

async function turn(context, maxTokens) {
  return Array.from(await context.generate(Sampler.argmax(), { maxTokens }).ignoreEos().collectTokens());
}
