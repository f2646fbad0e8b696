/** A program that serves HTTP: one function a path. */

import { Context, Model, Sampler, httpServer, messaging } from 'inferlet';

const PART = new Uint8Array(64 << 10).fill(120);
const N_PARTS = 1024;
const counts = { requests: 0, parts: 0 };

export default {
  async fetch(request: Request): Promise<Response> {
    counts.requests += 1;
    const path = request.url.replace(/^\w+:\/\/[^/]*/, '');
    const task = TASKS[path.split(/[/?]/)[1] ?? ''];
    if (task === undefined) return new Response(`there is no ${path}`, { status: 404 });
    return task(request, path);
  },
};

async function echo(request: Request, path: string): Promise<Response> {
  const [name, query = ''] = path.split('?');
  const pairs = query === '' ? [] : query.split('&').map((pair) => pair.split('='));
  const value = { method: request.method, path: name, query: Object.fromEntries(pairs), header: request.headers.get('x-a'), body: await request.text() };
  return Response.json(value, { status: 201, headers: { 'X-Own': 'ü' } });
}

async function count(): Promise<Response> {
  return Response.json(counts.requests);
}

async function length(request: Request): Promise<Response> {
  return Response.json((await request.bytes()).length);
}

async function stream(): Promise<Response> {
  async function* parts(): AsyncGenerator<string> {
    yield 'one';
    await messaging.pull('go');
    yield 'two';
  }
  return new Response(parts());
}

async function go(): Promise<Response> {
  messaging.push('go', 'on');
  return new Response('going');
}

async function events(): Promise<Response> {
  return httpServer.events([{ n: 1 }, httpServer.serverEvent({ data: 'a\nb', event: 'text' })]);
}

async function fail(): Promise<Response> {
  throw new RangeError('no answer comes of this');
}

async function broken(): Promise<Response> {
  async function* parts(): AsyncGenerator<string> {
    yield 'one';
    throw new RangeError('the rest is not there');
  }
  return new Response(parts());
}

async function silent(): Promise<Response> {
  return new Response(await messaging.pull('never'));
}

async function tokens(): Promise<Response> {
  async function* written(): AsyncGenerator<string> {
    const ctx = new Context(Model.load('default'));
    try {
      ctx.user('Tell me something without an end.');
      while (true) {
        for await (const step of ctx.generate(Sampler.argmax(), { maxTokens: 64, ignoreEos: true })) {
          yield `${(await step.execute()).tokens[0]}\n`;
        }
      }
    } finally {
      ctx.release();
      messaging.push('gone', 'it has');
    }
  }
  return new Response(written());
}

async function gone(): Promise<Response> {
  return new Response(await messaging.pull('gone'));
}

async function flood(): Promise<Response> {
  async function* parts(): AsyncGenerator<Uint8Array> {
    for (let n = 0; n < N_PARTS; n += 1) {
      counts.parts += 1;
      yield PART;
    }
  }
  return new Response(parts());
}

async function parts(): Promise<Response> {
  return Response.json(counts.parts);
}

async function empty(): Promise<Response> {
  return new Response(null, { status: 204 });
}

type Task = (request: Request, path: string) => Promise<Response>;

const TASKS: Readonly<Record<string, Task>> = {
  echo, count, length, stream, go, events, fail, broken, silent, tokens, gone, flood, parts, empty,
};
