/** Programs that talk to each other: one function a task, and the reference as it is printed. */

import { InferletError, Subscription, messaging, session } from 'inferlet';

interface Input {
  do: keyof typeof tasks;
  topic: string;
  messages: string[];
  n: number;
  size: number;
}

const tasks = { reference, push, pull, forward, broadcast, listen, fill, give_up: giveUp, values };

export async function main(input: Input): Promise<unknown> {
  return await tasks[input.do](input);
}

async function reference(): Promise<unknown[]> {
  using sub: Subscription = messaging.subscribe('topic');
  messaging.broadcast('topic', 'message');
  messaging.push('topic', 'message');
  const pulled: string = await messaging.pull('topic');
  const heard: string | undefined = await sub.next();
  messaging.broadcast('topic', 'another');
  let another: string | undefined;
  for await (const msg of sub) {
    another = msg;
    break;
  }
  sub.unsubscribe();
  const ended: string | undefined = await sub.next();
  for await (const _ of sub) throw new Error('the subscription has ended');
  if (!(sub instanceof Subscription)) throw new Error('the class is exported');
  return [pulled, heard, another, ended ?? null];
}

function push({ topic, messages }: Input): void {
  for (const message of messages) messaging.push(topic, message);
}

async function pull({ topic, n }: Input): Promise<string[]> {
  const pulled = [];
  while (pulled.length < n) pulled.push(await messaging.pull(topic));
  return pulled;
}

/** Sends everything that it pulls to its client, until it is ended. */
async function forward({ topic }: Input): Promise<never> {
  session.send('ready');
  for (;;) session.send(await messaging.pull(topic));
}

function broadcast({ topic, messages }: Input): void {
  for (const message of messages) messaging.broadcast(topic, message);
}

async function listen({ topic, n }: Input): Promise<unknown[]> {
  using sub = messaging.subscribe(topic);
  session.send('ready');
  const heard = [];
  while (heard.length < n) heard.push(await sub.next());
  return heard;
}

/** Pushes until it is refused; answers how often it was not, and why it was. */
function fill({ topic, n, size }: Input): unknown[] {
  for (let index = 0; index < n; index++) {
    try {
      messaging.push(topic, 'x'.repeat(size));
    } catch (error) {
      if (error instanceof InferletError) return [index, error.code, error.message];
      throw error;
    }
  }
  return [n, null, null];
}

/** Gives pulls up, and then gets what they did not take. */
async function giveUp({ topic }: Input): Promise<string> {
  for (let index = 0; index < 3; index++) {
    await Promise.race([messaging.pull(topic), new Promise<void>((resolve) => setTimeout(resolve, 1))]);
  }
  session.send('ready');
  return await messaging.pull(topic);
}

/** What is not a text becomes JSON. */
async function values(): Promise<unknown[]> {
  messaging.push('values', { 'ü': [1, null] });
  const sub = messaging.subscribe('values');
  messaging.broadcast('values', [1.5]);
  return [await messaging.pull('values'), sub.tryNext(), sub.tryNext() ?? null];
}
