// Programs that answer requests by HTTP: what crosses to the engine, and what becomes of a request whose client goes.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { ReadableStream, Response } from '../../js/inferlet/dist/fetch.js';
import { httpServer } from '../../js/inferlet/dist/index.js';

beforeEach(() => host.reset());

const tick = () => new Promise((resolve) => setImmediate(resolve));
const names = () => host.calls.map(([name]) => name);
const text = (bytes) => new TextDecoder().decode(bytes);
const HEAD = { method: 'POST', url: 'http://a/b?c', headers: [{ name: 'x-a', value: '1' }], remoteAddress: '192.0.2.1' };

/** Serves one request; what it gives settles the waits of it, and ends the serving. */
async function begin(fetch) {
  const [incoming, pending] = host.incomingRequest(HEAD);
  const served = httpServer.serve({ fetch });
  host.waits[0].settle(undefined, incoming);
  await tick();
  const end = async () => {
    host.waits.at(-1).settle(undefined, undefined);
    await served;
  };
  return [pending, end];
}

test('a request is read and answered part by part', async () => {
  const [pending, end] = await begin(async (request) => {
    const body = `${request.method} ${request.url} ${request.headers.get('X-A')} ${request.remoteAddress} ${await request.text()}`;
    return new Response(body, { status: 201, headers: { 'X-B': '2' } });
  });
  pending.read(undefined, new TextEncoder().encode('hi'));
  await tick();
  pending.read(undefined, undefined);
  await tick();
  const responded = host.calls.find(([name]) => name === 'incoming.respond');
  const headers = [{ name: 'content-type', value: 'text/plain;charset=UTF-8' }, { name: 'x-b', value: '2' }];
  assert.deepEqual(responded, ['incoming.respond', 201, headers]);
  const written = host.calls.find(([name]) => name === 'incoming.writePart');
  assert.equal(text(written[1]), 'POST http://a/b?c 1 192.0.2.1 hi');
  assert.ok(!names().includes('incoming.finish'));
  pending.writePart(undefined, undefined);
  await tick();
  assert.ok(names().includes('incoming.finish') && !names().includes('incoming.abandon'));
  await end();
});

test('a client that goes aborts the signal and cancels the stream', async () => {
  const seen = [];
  const [pending, end] = await begin((request) => {
    request.signal.addEventListener('abort', () => seen.push(request.signal.reason.code));
    return new Response(new ReadableStream({ pull: () => new Promise(() => {}), cancel: (reason) => void seen.push(reason.code) }));
  });
  pending.gone(undefined, undefined);
  await tick();
  assert.deepEqual(seen, ['client-gone', 'client-gone']);
  assert.ok(names().includes('incoming.abandon'));
  await end();
});

test('what a handler throws is told on stderr alone', async () => {
  const [, end] = await begin(() => {
    throw new RangeError('no answer comes of this');
  });
  assert.ok(names().includes('incoming.abandon') && !names().includes('incoming.respond'));
  assert.match(host.calls.find(([name]) => name === 'write')[2], /RangeError: no answer comes of this/);
  // The process may end as soon as its client has heard of it.
  assert.ok(names().indexOf('write') < names().indexOf('incoming.abandon'));
  await end();
});

test('what a handler throws that nobody can describe gives its request up', async () => {
  const refusing = () => { throw new Error('no'); };
  const hidden = new Proxy({}, { get: refusing, getPrototypeOf: refusing });
  const odd = Object.assign(new Error('odd'), { toString: refusing });
  for (const thrown of [hidden, odd]) {
    host.reset();
    const [, end] = await begin(() => { throw thrown; });
    assert.match(host.calls.find(([name]) => name === 'write')[2], /the program threw something that cannot be shown/);
    assert.ok(names().includes('incoming.abandon'));
    await end();
  }
});

test('what is no answer is told with what to return in its place', async () => {
  for (const [given, said] of [
    [undefined, /fetch returned undefined; write `return` in front of/],
    [{ a: 1 }, /fetch returned \{"a":1\}; it returns a Response: write `return Response\.json\(value\)`/],
    ['hello', /fetch returned "hello"; it returns a Response: write `return new Response\(text\)`/],
  ]) {
    host.reset();
    const [, end] = await begin(async () => given);
    assert.match(host.calls.find(([name]) => name === 'write')[2], said);
    assert.ok(names().indexOf('write') < names().indexOf('incoming.abandon'));
    await end();
  }
});

test('events have a line of data for each line of their text', async () => {
  const event = httpServer.serverEvent({ data: 'a\nb', event: 'text', id: '7', retryMs: 1500 });
  const response = httpServer.events(['plain', { n: 1 }, event]);
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  const said = await response.text();
  assert.equal(said, 'data: plain\n\ndata: {"n":1}\n\nevent: text\nid: 7\nretry: 1500\ndata: a\ndata: b\n\n');
  assert.equal(await httpServer.events([httpServer.serverEvent({})]).text(), 'data: \n\n');
  const made = httpServer.events([], { status: 203, headers: { 'cache-control': 'no-cache' } });
  assert.deepEqual([made.status, made.headers.get('cache-control')], [203, 'no-cache']);
  for (const mistake of [{ event: 'a\nb' }, { id: 7 }, { retryMs: -1 }, { retryMs: 1.5 }, { retryMs: NaN }]) {
    assert.throws(() => httpServer.serverEvent(mistake), { code: 'invalid-argument' });
  }
});

test('an event that is undefined is refused, as a message of the session is', async () => {
  const refused = { name: 'TypeError', code: 'invalid-argument', message: /^the event 1 is undefined; give null for nothing/ };
  assert.throws(() => httpServer.events(['a', undefined]), refused);
  async function* source() {
    yield null;
    yield undefined;
  }
  await assert.rejects(httpServer.events(source()).text(), refused);
  assert.equal(await httpServer.events([null]).text(), 'data: null\n\n');
});

test('whether a program serves is what the engine says', () => {
  assert.equal(httpServer.isServing(), false);
});
