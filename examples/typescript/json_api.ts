/** An API that takes and gives JSON: POST /titles {"text"} -> {"title"}. Serve it by `pie run --port 8000`. */

import { Context, Model, Sampler } from 'inferlet';

const MAX_TEXT = 4000;

export default {
  async fetch(request: Request): Promise<Response> {
    const path = request.url.replace(/^\w+:\/\/[^/]*/, '');
    if (request.method !== 'POST' || path !== '/titles') return refused(404, 'ask by POST /titles');
    const text = textOf(await request.json().catch(() => undefined));
    if (text === undefined) return refused(400, `send {"text": "..."} of at most ${MAX_TEXT} characters`);
    return Response.json({ title: await titleOf(text) });
  },
};

function textOf(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('text' in body)) return undefined;
  return typeof body.text === 'string' && body.text.length <= MAX_TEXT ? body.text : undefined;
}

async function titleOf(text: string): Promise<string> {
  using ctx = new Context(Model.load('default'));
  ctx.user(`Give this text a title of a few words:\n\n${text}`);
  return await ctx.generate(Sampler.topP(0.6, 0.95), { maxTokens: 16 }).collectText();
}

function refused(status: number, message: string): Response {
  return Response.json({ error: message }, { status });
}
