// What bodies of requests are made of: addresses, blobs and forms.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { Blob, File, FormData, Request, Response, fetch } from '../../js/inferlet/dist/fetch.js';
import { URL, URLSearchParams } from '../../js/inferlet/dist/url.js';

beforeEach(() => host.reset());

test('parameters and their address change each other', () => {
  const url = new URL('../items?a=1&a=2#end', 'https://example.com/shop/list');
  assert.equal(url.href, 'https://example.com/items?a=1&a=2#end');
  const { searchParams } = url;
  assert.deepEqual(searchParams.getAll('a'), ['1', '2']);
  searchParams.set('a', 'ü ');
  searchParams.append('b', '&');
  assert.equal(url.search, '?a=%C3%BC+&b=%26');
  url.search = '?c=3';
  assert.deepEqual([...searchParams], [['c', '3']]);
  assert.equal(url.searchParams, searchParams);
  searchParams.delete('c');
  assert.equal(url.href, 'https://example.com/items#end');
  url.port = '8080';
  assert.deepEqual([url.host, url.origin, JSON.stringify(url)], ['example.com:8080', 'https://example.com:8080', `"${url.href}"`]);
});

test('what is not an address is a TypeError that says so', () => {
  assert.throws(() => new URL('items'), { name: 'TypeError', code: 'ERR_INVALID_URL', message: /"items" is not a URL.*https:/ });
  assert.deepEqual([URL.canParse('items'), URL.canParse('items', 'http://a/'), URL.parse('items')], [false, true, null]);
});

test('parameters are made of texts, lists and objects', () => {
  const params = new URLSearchParams({ b: '2', a: '1' });
  params.append('a', '0');
  params.sort();
  assert.deepEqual([...params.entries()], [['a', '1'], ['a', '0'], ['b', '2']]);
  assert.deepEqual([params.size, params.has('a', '0'), params.has('a', '9'), params.get('c')], [3, true, false, null]);
  assert.equal(new URLSearchParams('?x=1+2').get('x'), '1 2');
  assert.equal(String(new URLSearchParams([['k', 'v']])), 'k=v');
  assert.throws(() => new URLSearchParams([['k']]), TypeError);
});

test('a part of a blob shares its bytes and has a type of its own', async () => {
  const blob = new Blob(['hé', new Uint8Array([33]), new Blob(['!'])], { type: 'Text/Plain' });
  assert.deepEqual([blob.size, blob.type, await blob.text()], [5, 'text/plain', 'hé!!']);
  const part = blob.slice(-2, undefined, 'a/b');
  assert.deepEqual([part.size, part.type, await part.bytes()], [2, 'a/b', new Uint8Array([33, 33])]);
  let read = '';
  for await (const chunk of blob.stream()) read += new TextDecoder().decode(chunk);
  assert.equal(read, 'hé!!');
  const file = new File(['x'], 'x.txt', { lastModified: 5 });
  assert.deepEqual([file.name, file.lastModified, file instanceof Blob], ['x.txt', 5, true]);
});

test('what was given to a blob may change afterwards', async () => {
  const bytes = new Uint8Array([65]);
  const blob = new Blob([bytes]);
  bytes[0] = 66;
  assert.equal(await blob.text(), 'A');
});

test('forms, blobs and parameters cross with their types', () => {
  const sent = (body) => {
    fetch('http://a/', { method: 'POST', body }).catch(() => {});
    const [, request] = host.calls.findLast(([name]) => name === 'exchangeStart');
    return [request.headers[0]?.value, new TextDecoder().decode(request.body.value)];
  };
  assert.deepEqual(sent(new URLSearchParams({ a: '1 2' })), ['application/x-www-form-urlencoded;charset=UTF-8', 'a=1+2']);
  assert.deepEqual(sent(new Blob(['x'], { type: 'a/b' })), ['a/b', 'x']);
  assert.deepEqual(sent(new Blob(['x'])), [undefined, 'x']);
  const form = new FormData();
  form.append('na"me', 'one\ntwo');
  form.append('f', new Blob(['x'], { type: 'a/b' }), 'x.bin');
  const boundary = `----pie-form-${'07'.repeat(16)}`;
  assert.deepEqual(sent(form), [
    `multipart/form-data; boundary=${boundary}`,
    `--${boundary}\r\nContent-Disposition: form-data; name="na%22me"\r\n\r\none\r\ntwo\r\n` +
      `--${boundary}\r\nContent-Disposition: form-data; name="f"; filename="x.bin"\r\nContent-Type: a/b\r\n\r\nx\r\n--${boundary}--\r\n`,
  ]);
});

test('a form that was written is read', async () => {
  const form = new FormData();
  form.append('a', '');
  form.append('a', '--\r\n');
  // Heads are bounded, each by itself, and not where they stand.
  form.append('long', 'x'.repeat(32 << 10));
  form.append('f', new File([new Uint8Array([0, 13, 10, 45])], 'ü.bin', { type: 'a/b' }));
  const read = await new Request('http://a/', { method: 'POST', body: form }).formData();
  assert.deepEqual(read.getAll('a'), ['', '--\r\n']);
  assert.equal(read.get('long').length, 32 << 10);
  const file = read.get('f');
  assert.deepEqual([file.name, file.type, await file.bytes()], ['ü.bin', 'a/b', new Uint8Array([0, 13, 10, 45])]);
  const urlencoded = new Response(new URLSearchParams({ x: 'ü' }));
  assert.equal((await urlencoded.formData()).get('x'), 'ü');
  assert.equal((await new Response('x', { headers: { 'content-type': 'a/b' } }).blob()).type, 'a/b');
});

test('what is not a form is refused', async () => {
  const read = (body, type) => new Response(body, { headers: { 'content-type': type } }).formData();
  const multipart = 'multipart/form-data; boundary=x';
  for (const [body, type] of [
    ['{}', 'application/json'],
    ['--x\r\n', 'multipart/form-data'],
    ['', multipart],
    ['--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1', multipart],
    ['--x\r\nContent-Disposition: form-data\r\n\r\n1\r\n--x--', multipart],
    ['--x', multipart],
  ]) {
    await assert.rejects(read(body, type), TypeError, body);
  }
  assert.deepEqual([...(await read('--x--', multipart))], []);
});

test('a field is put in the place of all of its name', () => {
  const form = new FormData();
  for (const value of ['1', '2']) form.append('a', value);
  form.append('b', '3');
  form.set('a', '4');
  form.delete('b');
  assert.deepEqual([[...form], form.get('b'), form.has('a')], [[['a', '4']], null, true]);
  assert.throws(() => form.append('a', 'text', 'name.txt'), TypeError);
});

test('what belongs to requests is not written as JSON, and neither is an error', () => {
  const { body } = new Response('x');
  const refused = [new Blob(['x']), new File(['x'], 'f'), new FormData(), new URLSearchParams('a=1'), new Request('http://a/'), new Response('x'), new Response('x').headers, body, body.getReader()];
  for (const value of refused) {
    const message = `the body, at the key 'value', is an object of type ${value.constructor.name}, which JSON cannot hold; `;
    assert.throws(() => Response.json({ value }), (error) => error.code === 'invalid-argument' && error.message.startsWith(message));
  }
  const message = "the body, at the key 'error', is the error `Error: no`, which JSON cannot hold; write `error.message` or `String(error)`";
  assert.throws(() => Response.json({ error: new Error('no') }, { status: 500 }), { code: 'invalid-argument', message });
});
