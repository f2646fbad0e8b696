// Children: what crosses to the engine when one is started, and how it is waited for.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { runtime } from '../../js/inferlet/dist/index.js';

beforeEach(() => host.reset());

test('a child is started with the defaults, or with what is given', () => {
  runtime.spawn('.');
  const options = { args: ['-v'], output: true, detached: true, seed: 7, tokenBudget: 100n, credits: 2.5 };
  assert.equal(runtime.spawn('count', { text: 'a' }, options).pid, 8);
  const left = { output: false, detached: false, seed: undefined, tokenBudget: undefined, credits: undefined };
  assert.deepEqual(host.calls, [
    ['spawn', '.', 'null', [], left],
    ['spawn', 'count', '{"text":"a"}', ['-v'], { output: true, detached: true, seed: 7n, tokenBudget: 100n, credits: 2.5 }],
  ]);
});

test('what cannot be spawned is refused before the engine is asked', () => {
  for (const given of [[1], ['.', 1n], ['.', null, { args: [1] }], ['.', null, { output: 1 }], ['.', null, { seed: -1 }]]) {
    assert.throws(() => runtime.spawn(...given), { code: 'invalid-argument' });
  }
  assert.throws(() => runtime.spawn('.', null, { sead: 1 }), /sead/);
  assert.deepEqual(host.calls, []);
});

test('awaiting a child gives its value, each time anew, and it is cancelled once', async () => {
  const child = runtime.spawn('.');
  const [awaited, waited] = [(async () => await child)(), child.wait()];
  await new Promise((resolve) => setImmediate(resolve));
  for (const { settle } of host.waits) settle(undefined, '{"n":1}');
  assert.deepEqual(await Promise.all([awaited, waited]), [{ n: 1 }, { n: 1 }]);
  child.cancel();
  assert.deepEqual(host.calls.at(-1), ['child.cancel']);
});

test('a child that fails throws its error', async () => {
  const waited = runtime.spawn('.').wait();
  host.waits[0].settle(host.engineError('program-error', 'no', { pid: 8 }));
  await assert.rejects(waited, { code: 'program-error', message: 'no', details: { pid: 8 } });
});
