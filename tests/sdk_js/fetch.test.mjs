// `fetch` and what belongs to it: what crosses to the engine, streams, and how requests end.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { Headers, ReadableStream, Request, Response, fetch } from '../../js/inferlet/dist/fetch.js';
import { InferletError } from '../../js/inferlet/dist/index.js';

beforeEach(() => host.reset());

const tick = () => new Promise((resolve) => setImmediate(resolve));
const HEAD = { status: 200, statusText: 'OK', url: 'http://a/', isRedirected: false, headers: [{ name: 'x-a', value: '1' }] };
const names = () => host.calls.map(([name]) => name);

test('a request crosses whole', async () => {
  const asked = fetch('http://a/', { method: 'post', body: 'ü', headers: { 'X-A': ' 1 ' }, redirect: 'manual' });
  host.waits[0].settle(undefined, HEAD);
  const response = await asked;
  const [, request] = host.calls[0];
  assert.deepEqual(
    [request.method, request.url, request.redirects, request.headers],
    ['POST', 'http://a/', 'keep', [{ name: 'content-type', value: 'text/plain;charset=UTF-8' }, { name: 'x-a', value: '1' }]],
  );
  assert.deepEqual(request.body, { type: 'whole', value: new TextEncoder().encode('ü') });
  assert.deepEqual([response.status, response.ok, response.url, response.headers.get('X-A')], [200, true, 'http://a/', '1']);
});

test('what the engine refuses is a TypeError with its code', async () => {
  const error = await fetch('http://denied/').catch((error) => error);
  assert.ok(error instanceof TypeError && error.cause instanceof InferletError);
  assert.deepEqual([error.code, error.message], ['net-denied', 'no request goes to denied.example:80']);
  const asked = fetch('http://a/');
  host.waits[0].settle(host.engineError('net-unreachable', 'gone'));
  await assert.rejects(asked, { code: 'net-unreachable' });
});

test('a body is read as it comes, and only when it is asked for', async () => {
  const asked = fetch('http://a/');
  host.waits[0].settle(undefined, HEAD);
  const response = await asked;
  assert.deepEqual(names(), ['exchangeStart', 'exchange.head']);
  const text = response.text();
  for (const part of [[0xc3], [0xbc, 0x62], undefined]) {
    await tick();
    host.waits.at(-1).settle(undefined, part && Uint8Array.from(part));
  }
  assert.equal(await text, 'üb');
  assert.equal(response.bodyUsed, true);
  await assert.rejects(response.text(), TypeError);
  assert.equal(names().filter((name) => name === 'exchange.read').length, 3);
});

test('a signal ends a request before its head and behind it', async () => {
  const early = new AbortController();
  const asked = fetch('http://a/', { signal: early.signal });
  early.abort('early');
  await assert.rejects(asked, (reason) => reason === 'early');
  assert.ok(names().includes('exchange.cancel'));

  host.reset();
  const late = new AbortController();
  const answered = fetch('http://a/', { signal: late.signal });
  host.waits[0].settle(undefined, HEAD);
  const reading = (await answered).text();
  await tick();
  late.abort('late');
  await assert.rejects(reading, (reason) => reason === 'late');
  assert.ok(names().includes('exchange.cancel'));

  host.reset();
  await assert.rejects(fetch('http://a/', { signal: AbortSignal.abort('before') }), (reason) => reason === 'before');
  assert.deepEqual(host.calls, []);
});

test('a signal that comes too late does nothing', async () => {
  const controller = new AbortController();
  const asked = fetch('http://a/', { signal: controller.signal });
  host.waits[0].settle(undefined, HEAD);
  const reading = (await asked).text();
  await tick();
  host.waits.at(-1).settle(undefined, undefined);
  await reading;
  controller.abort();
  assert.ok(!names().includes('exchange.cancel'));
});

test('leaving the loop over a body ends the request', async () => {
  const asked = fetch('http://a/');
  host.waits[0].settle(undefined, HEAD);
  const response = await asked;
  const left = (async () => {
    for await (const part of response.body) return part;
  })();
  await tick();
  host.waits.at(-1).settle(undefined, new Uint8Array([1]));
  assert.deepEqual(await left, new Uint8Array([1]));
  assert.ok(names().includes('exchange.cancel'));
});

test('a body goes out part by part', async () => {
  async function* parts() {
    yield 'one';
    yield new Uint8Array([1]);
  }
  const asked = fetch('http://a/', { method: 'PUT', body: ReadableStream.from(parts()) });
  assert.deepEqual(host.calls[0][1].body, { type: 'streamed' });
  for (const n of [1, 2]) {
    await tick();
    const writes = host.calls.filter(([name]) => name === 'exchange.writePart');
    assert.equal(writes.length, n);
    host.waits.at(-1).settle(undefined);
  }
  await tick();
  assert.ok(names().includes('exchange.finish'));
  host.waits[0].settle(undefined, HEAD);
  assert.equal((await asked).status, 200);
});

test('what a body throws ends the request', async () => {
  const broken = new ReadableStream({
    pull() {
      throw new RangeError('no more');
    },
  });
  await assert.rejects(fetch('http://a/', { method: 'PUT', body: broken }), RangeError);
  assert.ok(names().includes('exchange.cancel'));
});

test('requests, answers and streams without options', async () => {
  const request = new Request('http://a/');
  assert.deepEqual([request.method, request.redirect, request.body, request.signal, [...request.headers]], ['GET', 'follow', null, null, []]);
  const response = new Response();
  assert.deepEqual([response.status, response.statusText, response.body, response.url, [...response.headers]], [200, '', null, '', []]);
  assert.equal(await response.text(), '');
  assert.equal(Response.json(1).status, 200);
  assert.equal(Response.redirect('/x').status, 302);
  assert.equal(new ReadableStream().locked, false);
});

test('headers are by names in any case', () => {
  const headers = new Headers([['B', '1'], ['a', ' x '], ['b', '2'], ['Set-Cookie', 'c'], ['set-cookie', 'd']]);
  assert.deepEqual([...headers], [['a', 'x'], ['b', '1, 2'], ['set-cookie', 'c'], ['set-cookie', 'd']]);
  assert.deepEqual(headers.getSetCookie(), ['c', 'd']);
  headers.delete('B');
  headers.set('A', 'y');
  assert.deepEqual([headers.has('b'), headers.get('a'), headers.get('none')], [false, 'y', null]);
  for (const bad of [['', 'x'], ['a b', 'x'], ['a', 'x\ny'], ['a', '\u0100'], ['a']]) {
    assert.throws(() => new Headers([bad]), TypeError, JSON.stringify(bad));
  }
});

test('requests and answers are copied with their bodies', async () => {
  const request = new Request('http://a/', { method: 'POST', body: 'x' });
  const copy = new Request(request.clone(), { headers: { a: '1' } });
  assert.deepEqual([copy.method, await copy.text(), await request.text()], ['POST', 'x', 'x']);
  const response = Response.json({ a: 1 });
  const other = response.clone();
  assert.deepEqual([await response.json(), await other.json(), other.headers.get('content-type')], [{ a: 1 }, { a: 1 }, 'application/json']);
  assert.throws(() => response.clone(), TypeError);
  assert.throws(() => new Request('http://a/', { body: 'x' }), TypeError);
  assert.throws(() => new Request('http://a/', { method: 'TRACE' }), { code: 'invalid-argument' });
  for (const status of [199, 600, 1.5]) assert.throws(() => new Response(null, { status }), RangeError);
  assert.throws(() => new Response('x', { status: 204 }), TypeError);
});

test('a stream gives what it holds, ends and fails as it is told', async () => {
  let controller;
  const stream = new ReadableStream({ start: (given) => void (controller = given) });
  const reader = stream.getReader();
  assert.throws(() => stream.getReader(), TypeError);
  const waiting = reader.read();
  controller.enqueue(1);
  controller.enqueue(2);
  controller.close();
  assert.deepEqual([await waiting, await reader.read(), await reader.read()], [
    { done: false, value: 1 }, { done: false, value: 2 }, { done: true, value: undefined },
  ]);
  assert.throws(() => controller.enqueue(3), TypeError);
  await reader.closed;
  reader.releaseLock();
  await assert.rejects(reader.read(), TypeError);

  const failing = new ReadableStream({ pull: (given) => given.error('why') });
  await assert.rejects(failing.getReader().read(), (reason) => reason === 'why');
  const [one, other] = ReadableStream.from([1, 2]).tee();
  const all = async (items) => {
    const seen = [];
    for await (const item of items) seen.push(item);
    return seen;
  };
  assert.deepEqual([await all(one), await all(other)], [[1, 2], [1, 2]]);
});
