/**
 * The session as the reference documents print it: one function a snippet, with what the document leaves out completed.
 */

import { Context, Model, Sampler, SessionClosed, chat, runtime, session } from 'inferlet';

const snippets = { send, forms, receive, stream, structured, files, signals, instance, patience };

export async function main(snippet: keyof typeof snippets): Promise<unknown> {
  return await snippets[snippet]();
}

function send(): void {
  const pdfBytes = Uint8Array.of(0x25, 0x50, 0x44, 0x46, 0x2d, 0x31, 0x2e, 0x37, 0x0a, 0xff);

  session.send('hello');
  session.send({ event: 'tick', n: 3 }); // object → JSON
  session.sendFile(pdfBytes); // Uint8Array
}

function forms(): void {
  session.send('text');
  session.send({ n: 3 });
  console.log('printed');
  session.message('beside');
  session.send(7);
}

async function receive(): Promise<string> {
  const text: string = await session.receive();
  return text;
}

async function stream(): Promise<number> {
  const model = Model.load('default');
  const ctx = new Context(model).user('Hello!');

  const g = ctx.generate(Sampler.topP(0.6, 0.95), { maxTokens: 512 });
  const dec = new chat.Decoder(model);
  for await (const step of g) {
    const out = await step.execute();
    const ev = dec.feed(out.tokens);
    if (ev.type === 'delta') session.send(ev.text);
  }

  return g.tokensGenerated;
}

function structured(): void {
  session.send({ channel: 'progress', step: 3, of: 10 });
}

async function files(): Promise<void> {
  const blob: Uint8Array = await session.receiveFile();
  processPdf(blob);
}

/** What the document leaves to the reader: here the file goes back. */
function processPdf(blob: Uint8Array): void {
  session.sendFile(blob);
}

async function signals(): Promise<string> {
  // Client side: await proc.signal('stop').
  // Inferlet side: pick the message up via session.receive.
  const msg = await session.receive();
  if (msg === 'stop') return 'stopped';

  return await session.receiveSignal();
}

function instance(): string {
  return runtime.instanceId();
}

/** Gives a wait for a file up, and asks again when the client knows of it. */
async function patience(): Promise<[boolean, number[], number[] | null]> {
  const late = new Promise<null>((resolve) => setTimeout(() => resolve(null), 5));
  const givenUp = (await Promise.race([session.receiveFile(), late])) === null;
  session.send('waiting');
  const first = Array.from(await session.receiveFile());
  try {
    return [givenUp, first, Array.from(await session.receiveFile())];
  } catch (error) {
    if (!(error instanceof SessionClosed)) throw error;
    return [givenUp, first, null];
  }
}
