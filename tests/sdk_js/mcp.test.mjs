// Sessions with MCP servers: what crosses to the engine, what blocks, and when a session is closed.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { InferletError, McpSession, mcp } from '../../js/inferlet/dist/index.js';

beforeEach(() => host.reset());

const closed = () => host.calls.filter(([name]) => name === 'session.close').length;

test('[JS-196 JS-198..203] every method blocks until its answer is there', () => {
  assert.deepEqual(mcp.availableServers(), ['files', 'web']);
  host.blocking.push([undefined, '{"serverInfo":{}}']);
  const session = mcp.connect('files');
  assert.ok(session instanceof McpSession);
  assert.equal(session.serverInfo, '{"serverInfo":{}}');
  host.calls.length = 0;
  host.blocking.push([undefined, '{"tools":[]}']);
  assert.equal(session.listTools(), '{"tools":[]}');
  session.callTool('a', { x: [1, 'ü'] });
  session.callTool('a', '{"x": 1}');
  session.callTool('a');
  session.listResources();
  session.readResource('memo://x');
  session.listPrompts();
  session.getPrompt('p', { who: 'Ada' });
  assert.deepEqual(host.calls, [
    ['session.listTools'], ['session.callTool', 'a', '{"x":[1,"ü"]}'], ['session.callTool', 'a', '{"x": 1}'], ['session.callTool', 'a', ''],
    ['session.listResources'], ['session.readResource', 'memo://x'], ['session.listPrompts'], ['session.getPrompt', 'p', '{"who":"Ada"}'],
  ]);
  assert.deepEqual(host.waits, []);
});

test('what is awaited overlaps', async () => {
  const connecting = mcp.connectAsync('files');
  host.waits[0].settle(undefined, '{}');
  const session = await connecting;
  const calls = [
    session.callToolAsync('a'), session.listToolsAsync(), session.listResourcesAsync(), session.readResourceAsync('x'),
    session.listPromptsAsync(), session.getPromptAsync('p'),
  ];
  for (const [index, wait] of host.waits.slice(1).entries()) wait.settle(undefined, String(index));
  assert.deepEqual(await Promise.all(calls), ['0', '1', '2', '3', '4', '5']);
});

test('a call that has lost its race is given up', async () => {
  const session = mcp.connect('files');
  const call = session.callToolAsync('a');
  await Promise.race([call, Promise.resolve('other')]);
  assert.equal(host.waits[0].lost, true);
});

test('using closes a session at the end of its block', () => {
  const session = mcp.connect('files');
  session[Symbol.dispose]();
  session.close();
  assert.equal(closed(), 2);
});

test('[JS-197] a server that is unknown, or does not come, is an error and leaves no session', async () => {
  assert.throws(() => mcp.connect('nobody'), (error) => error instanceof InferletError && error.code === 'unknown-mcp-server');
  host.blocking.push([host.engineError('mcp-unavailable', 'it has ended'), undefined]);
  assert.throws(() => mcp.connect('files'), { code: 'mcp-unavailable' });
  assert.equal(closed(), 1);
  const connecting = mcp.connectAsync('files');
  host.waits[0].settle(host.engineError('mcp-unavailable', 'it has ended'), undefined);
  await assert.rejects(connecting, { code: 'mcp-unavailable' });
  assert.equal(closed(), 2);
});

test('what is wrong is refused before the engine is asked', () => {
  const session = mcp.connect('files');
  host.calls.length = 0;
  for (const call of [() => mcp.connect(1), () => session.callTool(1, {}), () => session.readResource(undefined)]) {
    assert.throws(call, (error) => error instanceof TypeError && error.code === 'invalid-argument');
  }
  assert.throws(() => session.callTool('a', { x: NaN }), { code: 'invalid-argument' });
  assert.throws(() => session.callTool('a', '\ud800'), { code: 'invalid-argument' });
  assert.deepEqual(host.calls, []);
});
