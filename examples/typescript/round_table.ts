/**
 * Three agents at a table: what one says, all hear by a broadcast, and the next one answers.
 *
 * pie run examples/typescript/round_table.ts -- --subject "What do you like to eat?" --turns 6
 */

import { Context, Model, Sampler, type Subscription, messaging, runtime, session } from 'inferlet';

const NAMES = ['Ann', 'Bob', 'Cyd'];

interface Agent {
  name: string;
  topic: string;
  nTurns: number;
}

interface Input extends Partial<Agent> {
  subject?: string;
  turns?: number;
}

interface Message {
  turn: number;
  from: string;
  text: string;
}

export async function main(input: Input) {
  if (input.name !== undefined) return await agent(input as Agent);
  const topic = `table-${runtime.launchSeed()}`;
  const nTurns = input.turns ?? 6;
  using sub = messaging.subscribe(topic);
  // `.` is this program: each child is one of the three.
  const agents = NAMES.map((name) => runtime.spawn('.', { name, topic, nTurns }));
  // An agent that fails ends the wait for what it would have said.
  const [said] = await Promise.all([host(sub, topic, input.subject ?? 'Name an animal.', nTurns), ...agents]);
  return said;
}

/** Opens the talk once all sit at the table, and hears it to its end. */
async function host(sub: Subscription, topic: string, subject: string, nTurns: number): Promise<Message[]> {
  for (const _ of NAMES) await messaging.pull(`${topic}-seats`);
  messaging.broadcast(topic, { turn: 0, from: 'Host', text: subject });
  const said: Message[] = [];
  for await (const text of sub) {
    const message = JSON.parse(text) as Message;
    said.push(message);
    session.send(`${message.from}: ${message.text}\n`);
    if (message.turn >= nTurns) break;
  }
  return said;
}

/** Hears what is said, and speaks when it is its turn. */
async function agent({ name, topic, nTurns }: Agent): Promise<void> {
  using sub = messaging.subscribe(topic);
  using ctx = new Context(Model.load('default'));
  messaging.push(`${topic}-seats`, name);
  for await (const text of sub) {
    const message = JSON.parse(text) as Message;
    if (message.turn >= nTurns) return;
    if (message.turn % NAMES.length !== NAMES.indexOf(name)) continue;
    ctx.user(message.text);
    const answer = await ctx.generate(Sampler.argmax(), { maxTokens: 24 }).collectText();
    messaging.broadcast(topic, { turn: message.turn + 1, from: name, text: answer });
  }
}
