// MCP servers that a client offers: processes that it starts, and objects that serve by a transport.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connected, refused } from './fake.mjs';

// Says its number and its variables, then echoes messages, each behind a line of no meaning.
const ECHO = `
const variables = Object.fromEntries(['PIE_KEY', 'PIE_CLIENT__KEY', 'OWN'].map((name) => [name, process.env[name] ?? null]));
console.log(JSON.stringify({ pid: process.pid, variables }));
let text = '';
for await (const piece of process.stdin) {
  text += piece;
  const lines = text.split('\\n');
  text = lines.pop();
  for (const line of lines) {
    const message = JSON.parse(line);
    console.log('noise');
    if (message.long) message.long = 'x'.repeat(message.long);
    console.log(JSON.stringify(message));
    if (message.end) process.exit(message.end);
  }
}
`;
const NODE = { command: process.execPath, args: ['--input-type=module', '--eval', ECHO] };

/** A client that has registered a server. */
async function registered(server, options) {
  const { client, peer } = await connected(options);
  const registering = client.registerMcpServer('files', server);
  const request = await peer.expect('register_mcp_server');
  assert.equal(request.name, 'files');
  peer.answer(request);
  await registering;
  return { client, peer };
}

async function line(peer, link = 1) {
  const message = await peer.expect('mcp_line');
  assert.equal(message.link, link);
  return JSON.parse(message.text);
}

const tell = (peer, message, link = 1) => peer.tell({ type: 'mcp_line', link, text: JSON.stringify(message) });

/** A server that keeps its transport, and what came by it. */
class Kept {
  received = [];
  n = 0;
  async connect(transport) {
    this.n += 1;
    this.transport = transport;
    this.hasClosed = new Promise((resolve) => {
      transport.onclose = resolve;
    });
    transport.onmessage = (message) => {
      this.received.push(message);
      void transport.send({ jsonrpc: '2.0', id: message.id, result: message.params });
    };
    await transport.start();
  }
}

test('a process is started when it is asked for, and its messages are carried', async () => {
  process.env.PIE_KEY = 'secret';
  process.env.PIE_CLIENT__KEY = 'secret';
  const { client, peer } = await registered({ ...NODE, env: { OWN: 'a=b' } });
  delete process.env.PIE_KEY;
  delete process.env.PIE_CLIENT__KEY;
  peer.tell({ type: 'mcp_start', link: 1, server: 'files' });
  tell(peer, { id: 1 }); // before it reads
  assert.deepEqual((await line(peer)).variables, { PIE_KEY: null, PIE_CLIENT__KEY: null, OWN: 'a=b' });
  assert.deepEqual(await line(peer), { id: 1 });
  tell(peer, { id: 2, end: 3 });
  assert.deepEqual(await line(peer), { id: 2, end: 3 });
  const ended = await peer.expect('mcp_end');
  assert.deepEqual([ended.link, ended.text], [1, 'it ended (status 3)']);
  tell(peer, { id: 3 }); // of a link that there is no more
  await client.close();
});

test('a line that is too long is the error of its call', async () => {
  const { client, peer } = await registered(NODE, { limits: { frame_bytes: 64 << 10 } });
  peer.tell({ type: 'mcp_start', link: 1, server: 'files' });
  await line(peer);
  tell(peer, { jsonrpc: '2.0', id: 7, long: 1 << 20 });
  const { id, error } = await line(peer);
  assert.equal(id, 7);
  assert.match(error.message, /^the answer is longer than the 28672 bytes/);
  tell(peer, { id: 8 });
  assert.deepEqual(await line(peer), { id: 8 });
  await client.close();
});

test('a process ends with the connection', async () => {
  const { client, peer } = await registered(NODE);
  peer.tell({ type: 'mcp_start', link: 1, server: 'files' });
  const { pid } = await line(peer);
  await client.close();
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
});

test('what cannot be started, and what is not there, is said', async () => {
  const { client, peer } = await registered({ command: '/nowhere/at/all' });
  peer.tell({ type: 'mcp_start', link: 1, server: 'files' });
  assert.match((await peer.expect('mcp_end')).text, /^it cannot be started/);
  peer.tell({ type: 'mcp_start', link: 2, server: 'other' });
  assert.equal((await peer.expect('mcp_end')).text, 'this client has no such server');
  await client.close();
});

test('an object serves by a transport, each link by one of its own', async () => {
  const kept = new Kept();
  const { client, peer } = await registered(kept);
  peer.tell({ type: 'mcp_start', link: 1, server: 'files' });
  tell(peer, { jsonrpc: '2.0', id: 1, method: 'x', params: { text: 'ü' } });
  assert.deepEqual(await line(peer), { jsonrpc: '2.0', id: 1, result: { text: 'ü' } });
  peer.tell({ type: 'mcp_stop', link: 1 });
  assert.equal((await peer.expect('mcp_end')).text, 'it was ended');
  await kept.hasClosed;
  await assert.rejects(kept.transport.send({}), /has ended/);
  peer.tell({ type: 'mcp_start', link: 2, server: 'files' });
  tell(peer, { jsonrpc: '2.0', id: 2, params: null }, 2);
  assert.deepEqual(await line(peer, 2), { jsonrpc: '2.0', id: 2, result: null });
  await kept.transport.close();
  assert.equal((await peer.expect('mcp_end')).text, 'it ended');
  assert.equal(kept.n, 2);
  await client.close();
});

test('an object that fails to begin ends its link', async () => {
  const { client, peer } = await registered({ connect: () => Promise.reject(new Error('not today')) });
  peer.tell({ type: 'mcp_start', link: 1, server: 'files' });
  assert.equal((await peer.expect('mcp_end')).text, 'it cannot be started (Error: not today)');
  await client.close();
});

test('an answer of an object that is too long is the error of its call', async () => {
  const kept = new Kept();
  const { client, peer } = await registered(kept, { limits: { frame_bytes: 64 << 10 } });
  peer.tell({ type: 'mcp_start', link: 1, server: 'files' });
  tell(peer, { id: 1, params: 'x'.repeat(40_000) });
  assert.equal((await line(peer)).error.code, -32603);
  await assert.rejects(kept.transport.send({ method: 'x'.repeat(40_000) }), /send less/);
  await client.close();
});

test('a registration that is refused leaves the one before', async () => {
  const kept = new Kept();
  const { client, peer } = await registered(kept);
  const registering = client.registerMcpServer('files', NODE);
  peer.refuse(await peer.expect('register_mcp_server'), 'limit-mcp-calls');
  assert.equal((await refused(registering)).code, 'limit-mcp-calls');
  peer.tell({ type: 'mcp_start', link: 1, server: 'files' });
  tell(peer, { id: 1, params: 1 });
  assert.equal((await line(peer)).result, 1);
  const leaving = client.unregisterMcpServer('files');
  peer.answer(await peer.expect('unregister_mcp_server'));
  await leaving;
  peer.tell({ type: 'mcp_start', link: 2, server: 'files' });
  assert.equal((await peer.expect('mcp_end')).link, 2);
  await client.close();
});

test('a second start of a link ends the connection', async () => {
  const { client, peer } = await registered(new Kept());
  const pinging = client.ping();
  await peer.expect('ping');
  for (let n = 0; n < 2; n += 1) peer.tell({ type: 'mcp_start', link: 1, server: 'files' });
  const error = await refused(pinging);
  assert.equal(error.code, 'protocol-error');
  assert.equal(
    error.message,
    'the server of Pie started an MCP server as the link 1, which is still open; connect again',
  );
  assert.equal(peer.closedWith.reason, 'protocol-error');
  await client.close();
});

test('one link more than a client carries ends the connection', async () => {
  const { client, peer } = await registered(NODE);
  const pinging = client.ping();
  await peer.expect('ping');
  peer.bufferedBytes = 2 << 20; // no end can be said
  for (let link = 0; link < 1024; link += 1) peer.tell({ type: 'mcp_start', link, server: 'absent' });
  assert.equal(peer.closedWith, null);
  peer.tell({ type: 'mcp_start', link: 1024, server: 'absent' });
  const error = await refused(pinging);
  assert.equal(error.code, 'limit-mcp-calls');
  assert.equal(
    error.message,
    'the server of Pie started one more MCP server than the 1024 that this client runs at once; connect again',
  );
  await client.close();
});

test('a server that does not read ends at the bound of what waits', async () => {
  const sleeping = ['--eval', 'setInterval(() => undefined, 1000)'];
  for (const [nLines, nBytes, bound] of [
    [20, 900_000, 'bytes would wait, of at most 16777216 of one server at this client (limit-mcp-bytes)'],
    [1200, 1000, '1024 lines wait, the most of one server at this client (limit-mcp-calls)'],
  ]) {
    for (const server of [{ command: process.execPath, args: sleeping }, { connect: () => new Promise(() => undefined) }]) {
      const { client, peer } = await registered(server);
      peer.tell({ type: 'mcp_start', link: 1, server: 'files' });
      for (let id = 0; id < nLines; id += 1) tell(peer, { id, text: 'x'.repeat(nBytes) });
      const { text } = await peer.expect('mcp_end');
      assert.ok(text.startsWith('it does not read what it is sent: '), text);
      assert.ok(text.includes(bound), text);
      await client.close();
    }
  }
});

test('what waits for all servers is bounded, and free again with their end', async () => {
  const { client, peer } = await registered({ connect: () => new Promise(() => undefined) });
  const text = 'x'.repeat((8 << 20) - 1);
  for (let link = 1; link < 6; link += 1) peer.tell({ type: 'mcp_start', link, server: 'files' });
  for (const link of [1, 1, 2, 2, 3, 3, 4, 4]) peer.tell({ type: 'mcp_line', link, text });
  peer.tell({ type: 'mcp_line', link: 5, text: '{}' });
  const ended = await peer.expect('mcp_end');
  assert.equal(ended.link, 5);
  assert.match(ended.text, /67108867 bytes would wait, of at most 67108864 of all servers at this client/);
  peer.tell({ type: 'mcp_stop', link: 1 });
  assert.equal((await peer.expect('mcp_end')).link, 1);
  peer.tell({ type: 'mcp_start', link: 6, server: 'files' });
  peer.tell({ type: 'mcp_line', link: 6, text });
  peer.tell({ type: 'mcp_stop', link: 6 });
  assert.equal((await peer.expect('mcp_end')).text, 'it was ended');
  await client.close();
});

test('a registration that is given up is taken back', async () => {
  const { client, peer } = await connected();
  const giving = new AbortController();
  const registering = client.registerMcpServer('files', NODE, { signal: giving.signal });
  const request = await peer.expect('register_mcp_server');
  giving.abort(new Error('enough'));
  assert.equal((await refused(registering)).message, 'enough');
  peer.answer(request);
  const taken = await peer.expect('unregister_mcp_server');
  assert.equal(taken.name, 'files');
  peer.answer(taken);
  await client.close();
});

test('a daemon is installed as a program that serves', async () => {
  const { client, peer } = await connected({ user: 'ada' });
  for (const [options, http, path] of [
    [{}, { shared: true, public: false }, '/http/chat@0.1.0/'],
    [{ shared: false, public: true, version: '2' }, { shared: false, public: true }, '/http/~ada/chat@2/'],
  ]) {
    const launching = client.launchDaemon(new Uint8Array(1), { name: 'chat', ...options });
    peer.answer(await peer.expect('upload'));
    const request = await peer.expect('install');
    assert.deepEqual([request.name, request.http], ['chat', http]);
    peer.answer(request);
    assert.equal(await launching, path);
  }
  await client.close();
});
