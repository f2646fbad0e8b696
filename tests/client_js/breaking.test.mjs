// Connections that do not come about, break, hold back, or are given up.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { connect } from '../../js/client/dist/index.js';
import { LIMITS, collected, connected, launched, pack, refused, sockets } from './fake.mjs';

const EVENT = { type: 'event', pid: 5, seq: 1 };
const GARBAGE = [
  '',
  'hello',
  '[]',
  '{}',
  '{"id":"1"}',
  '{"id":999,"ok":{}}',
  '{"id":2}',
  '{"id":2,"ok":[]}',
  '{"id":2,"ok":null}',
  '{"id":2,"error":{"code":5}}',
  JSON.stringify({ ...EVENT, kind: 'riddle' }),
  JSON.stringify({ ...EVENT, seq: 'one', kind: 'stdout' }),
  JSON.stringify({ ...EVENT, kind: 'stdout', text: 5 }),
  JSON.stringify({ ...EVENT, kind: 'stdout', text: 'x', form: 'riddle' }),
  Uint8Array.of().buffer,
  Uint8Array.of(1, 2).buffer,
  Uint8Array.of(255, 255, 255, 255, 123, 125).buffer,
  Uint8Array.of(4, 0, 0, 0, 255, 254, 253, 252).buffer,
  pack({ type: 'event' }, new Uint8Array()),
];

for (const [n, garbage] of GARBAGE.entries()) {
  test(`garbage ${n} ends the connection, and everybody who waits is told`, async () => {
    const { client, peer, process } = await launched();
    const told = Promise.all([client.ping(), process.result(), process.events().next()].map(refused));
    await peer.expect('ping');
    peer.deliver(garbage);
    for (const error of await told) assert.equal(error.code, 'protocol-error');
    assert.equal(peer.closedWith.code, 4002);
    assert.equal((await refused(client.ping())).code, 'protocol-error');
  });
}

test('a connection that breaks ends every wait at once; what arrived before is read', async () => {
  const { client, peer, process } = await launched();
  const told = Promise.all(Array.from({ length: 100 }, () => refused(client.ping())));
  await peer.expect('ping');
  peer.event(5, 'stdout', { text: 'before' });
  peer.close(1001, 'the server ends');
  for (const error of await told) {
    assert.equal(error.code, 'connection-failed');
    assert.match(error.message, /1001: the server ends/);
  }
  const events = process.events();
  assert.equal((await events.next()).value.text, 'before');
  assert.equal((await refused(events.next())).code, 'connection-failed');
});

test('a call that the close of its own client ends is no unhandled rejection, and whoever waits is told', async () => {
  const { client, peer, process } = await launched();
  const calls = [process.result(), process.events().next(), client.ping()];
  await peer.expect('ping');
  await client.close();
  // An unhandled rejection is told, and fails the test, before this comes.
  await new Promise((resolve) => setImmediate(resolve));
  for (const call of calls) assert.match((await refused(call)).message, /this client has closed the connection/);
});

test('a failure that has another cause than the close stays one that somebody has to handle', () => {
  const calls = new URL('../../js/client/dist/calls.js', import.meta.url).href;
  const ran = (line) => {
    const text = `import { Calls } from ${JSON.stringify(calls)}; const calls = new Calls(); ${line}`;
    const done = spawnSync(process.execPath, ['--input-type=module', '-e', text], { encoding: 'utf8' });
    return [done.status, done.stderr.includes('Error: mine')];
  };
  const fails = "calls.make(() => new Promise((_, reject) => setImmediate(() => reject(new Error('mine')))))";
  assert.deepEqual(ran(`${fails};`), [1, true]);
  assert.deepEqual(ran(`${fails}; calls.excuse();`), [0, false]);
  assert.deepEqual(ran(`calls.excuse(); ${fails};`), [1, true]);
});

test('an end whose last event has arrived is told, also when the connection breaks', async () => {
  const { peer, process } = await launched();
  peer.event(5, 'return', { value: '1' });
  peer.close();
  assert.equal((await collected(process)).length, 1);
  assert.equal(await process.result(), 1);
});

test('a result is told of the end of a connection, also beside a loop that is busy with an event', async () => {
  const { peer, process } = await launched();
  const looping = process.events();
  peer.event(5, 'stdout', { text: 'read' });
  await looping.next();
  const result = process.result();
  peer.close(1001, 'the server ends');
  assert.equal((await refused(result)).code, 'connection-failed');
  assert.equal((await refused(looping.next())).code, 'connection-failed');
});

test('the error of a server that closes is the one that counts', async () => {
  const { client, peer } = await connected();
  const ping = refused(client.ping());
  peer.tell({ type: 'error', error: { code: 'limit-connections', message: 'too many', details: {} } });
  peer.close(1013);
  assert.equal((await ping).code, 'limit-connections');
  const other = await connected();
  other.peer.close(1008, 'the key is no longer good');
  assert.equal((await refused(other.client.ping())).code, 'authentication-failed');
});

test('a call that is given up before it is sent sends nothing', async () => {
  const { client, peer } = await connected();
  const reason = new Error('enough');
  assert.equal(await refused(client.ping({ signal: AbortSignal.abort(reason) })), reason);
  assert.equal(peer.nUnread, 0);
});

test('a launch that is given up is ended when its answer comes, and an attachment is let go', async () => {
  const { client, peer } = await connected();
  for (const [call, type, ok, taken] of [
    [(signal) => client.launch('p', { signal }), 'launch', { pid: 5, launch_seed: 1 }, 'terminate'],
    [(signal) => client.attach(5, { signal }), 'attach', { pid: 5 }, 'detach'],
  ]) {
    const control = new AbortController();
    const calling = call(control.signal);
    const request = await peer.expect(type);
    control.abort(new Error('enough'));
    assert.equal((await refused(calling)).message, 'enough');
    peer.answer(request, ok);
    const undoing = await peer.expect(taken);
    assert.equal(undoing.pid, 5);
    peer.answer(undoing);
  }
  const ping = client.ping();
  peer.answer(await peer.expect('ping'));
  await ping;
});

test('closing takes back what an unanswered launch has done, and is done once', async () => {
  const { client, peer } = await connected();
  const launching = client.launch('p');
  const request = await peer.expect('launch');
  // One that closes while another does waits with it.
  const closing = Promise.all([client.close(), client.close()]);
  assert.equal((await refused(launching)).code, 'connection-failed');
  peer.answer(request, { pid: 6, launch_seed: 1 });
  const undoing = await peer.expect('terminate');
  assert.equal(undoing.pid, 6);
  assert.equal(peer.closedWith, null, 'the answer is waited for');
  peer.answer(undoing);
  await closing;
  assert.equal(peer.closedWith.code, 1000);
  await client.close();
  assert.match((await refused(client.ping())).message, /this client has closed the connection/);
});

test('a result that is given up leaves the process and its events', async () => {
  const { peer, process } = await launched();
  const control = new AbortController();
  const waiting = process.result({ signal: control.signal });
  control.abort(new Error('enough'));
  assert.equal((await refused(waiting)).message, 'enough');
  peer.event(5, 'return', { value: '4' });
  assert.equal(await process.result(), 4);
});

test('an upload that is refused stops, and its last part frees its number', async () => {
  const { client, peer } = await connected();
  peer.fillsAt = 'upload';
  const uploading = refused(client.upload(new Uint8Array(1 << 20)));
  const part = await peer.expect('upload');
  peer.refuse(part, 'limit-upload');
  assert.equal((await uploading).code, 'limit-upload');
  assert.equal(peer.nUnread, 0, 'the socket is full');
  peer.fillsAt = null;
  peer.bufferedBytes = 0;
  let last = await peer.expect('upload');
  while (!last.last) last = await peer.expect('upload');
  assert.deepEqual([last.id, last.payload.length], [part.id, 0]);
});

test('an upload that is given up is ended early, also while it waits for the socket', async () => {
  const { client, peer } = await connected();
  const control = new AbortController();
  peer.fillsAt = 'upload';
  const uploading = refused(client.upload(new Uint8Array(1 << 20), { signal: control.signal }));
  const part = await peer.expect('upload');
  control.abort(new Error('enough'));
  assert.equal((await uploading).message, 'enough');
  peer.fillsAt = null;
  peer.bufferedBytes = 0;
  let last = await peer.expect('upload');
  while (!last.last) last = await peer.expect('upload');
  assert.deepEqual([last.id, last.payload.length], [part.id, 0]);
  peer.refuse(last, 'upload-damaged');
});

test('frames wait for the socket, and keep their order', async () => {
  const { peer, process } = await launched();
  peer.bufferedBytes = 2 << 20;
  const calls = ['a', 'b', 'c'].map((text) => process.send(text));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(peer.nUnread, 0);
  peer.bufferedBytes = 0;
  for (const text of ['a', 'b', 'c']) {
    const request = await peer.expect('send');
    assert.equal(request.text, text);
    peer.answer(request);
  }
  await Promise.all(calls);
});

test('no more requests are open than the server takes', async () => {
  const { client, peer } = await connected({ limits: { open_requests: 4 } });
  const pings = Array.from({ length: 5 }, () => client.ping());
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(peer.nUnread, 2, 'two are kept for what is taken back');
  for (let n = 0; n < 5; n += 1) peer.answer(await peer.expect('ping'));
  await Promise.all(pings);
});

test('a message that is too large is refused here', async () => {
  const { process } = await launched();
  for (const call of [() => process.send('x'.repeat(1 << 20)), () => process.transferFile(new Uint8Array(1 << 20))]) {
    assert.equal((await refused(call())).code, 'limit-message');
  }
});

const OPENINGS = [
  ['nobody answers', () => undefined, 'connection-failed', /no answer within 0\.01 s/],
  ['a socket that closes', (peer) => peer.close(), 'connection-failed', /nothing that speaks WebSocket answers there/],
  ['a socket that fails and tells of no end', (_, socket) => socket.onerror({}), 'connection-failed', /nothing that speaks WebSocket answers there/],
  [
    'a server that closes after the hello',
    async (peer, socket) => {
      socket.onopen({});
      await peer.expect('hello');
      peer.close(1008, 'why');
    },
    'connection-failed',
    /closed the connection before it said hello \(why\)/,
  ],
  [
    'a refusal',
    async (peer, socket) => {
      socket.onopen({});
      await peer.expect('hello');
      peer.tell({ type: 'error', error: { code: 'authentication-required', message: 'a key' } });
    },
    'authentication-required',
    /a key/,
  ],
  [
    'another protocol',
    async (peer, socket) => {
      socket.onopen({});
      await peer.expect('hello');
      peer.tell({ type: 'hello', protocol: 2, server: 'pie/9' });
    },
    'protocol-version',
    /"pie\/9" speaks protocol 2/,
  ],
];

for (const [title, greet, code, message] of OPENINGS) {
  test(`no connection: ${title}`, async () => {
    const timeoutS = code === 'connection-failed' && title === 'nobody answers' ? 0.01 : 60;
    const error = await refused(connect('ws://fake:1', { webSocket: sockets(greet), timeoutS }));
    assert.equal(error.code, code);
    assert.match(error.message, message);
  });
}

test('where there is no page, none is refused', async () => {
  const gone = () => refused(connect('ws://fake:1', { webSocket: sockets((peer) => peer.close()) }));
  assert.doesNotMatch((await gone()).message, /page|allowed_origins/);
  globalThis.location = new URL('https://page.example/');
  try {
    assert.match((await gone()).message, /or it refuses this page; .* server\.allowed_origins/);
  } finally {
    delete globalThis.location;
  }
});

for (const [title, greet, timeoutS] of [
  ['closes', (peer) => peer.close(), 60],
  ['waits', () => undefined, 0.01],
]) {
  test(`a server that ${title} at the beginning of TLS may have none`, async () => {
    const told = /; where the server answers without TLS, write ws:\/\/ in place of wss:\/\//;
    const secure = await refused(connect('wss://fake:1', { webSocket: sockets(greet), timeoutS }));
    assert.equal(secure.code, 'connection-failed');
    assert.match(secure.message, told);
    const plain = await refused(connect('ws://fake:1', { webSocket: sockets(greet), timeoutS }));
    assert.doesNotMatch(plain.message, told);
  });
}

test('a server that sends without end while a connection opens is cut off', async () => {
  let peer;
  const webSocket = sockets(async (of, socket) => {
    peer = of;
    socket.onopen({});
    await of.expect('hello');
    const hello = { type: 'hello', protocol: 1, server: 'fake/1', instance: 'i', user: 'nobody', role: 'user', limits: LIMITS };
    for (let n = 0; n < 1000; n += 1) of.tell(hello);
  });
  const client = await connect('ws://fake:1', { webSocket });
  const error = await refused(client.ping());
  assert.equal(error.code, 'connection-failed');
  assert.match(error.message, /it sent more than 16 messages before they were read/);
  assert.notEqual(peer.closedWith, null);
});

test('an opening can be given up', async () => {
  const control = new AbortController();
  const opening = connect('ws://fake:1', { webSocket: sockets(() => undefined), signal: control.signal });
  control.abort(new Error('enough'));
  assert.equal((await refused(opening)).message, 'enough');
});
