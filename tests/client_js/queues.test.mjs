// What waits in a client, for its socket and for servers of MCP, ends with what it waited for.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Queue } from '../../js/client/dist/mcp-link.js';
import { Outgoing } from '../../js/client/dist/outgoing.js';

test('a line that is read after its server has ended is counted once', () => {
  const all = { nBytes: 0 };
  const [ended, other] = [new Queue(all), new Queue(all)];
  assert.equal(ended.enter('abc'), null);
  assert.equal(other.enter('abcd'), null);
  ended.end();
  assert.equal(all.nBytes, 5);
  ended.leave('abc');
  assert.equal(all.nBytes, 5);
  other.leave('abcd');
  assert.equal(all.nBytes, 0);
});

test('everybody who waits for room in a socket is let go at its end', async () => {
  const sent = [];
  const socket = { bufferedAmount: 2 << 20, send: (frame) => sent.push(frame) };
  const outgoing = new Outgoing(socket);
  const sending = [outgoing.send('a'), outgoing.send('b')];
  outgoing.end();
  await Promise.all(sending);
  await outgoing.send('c');
  assert.deepEqual(sent, []);
});
