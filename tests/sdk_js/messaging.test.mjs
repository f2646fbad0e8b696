// Messages between programs: what crosses to the engine, and how subscriptions are read and ended.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { InferletError, Subscription, messaging } from '../../js/inferlet/dist/index.js';

beforeEach(() => {
  host.reset();
  host.held.length = 0;
});

const settle = (index, value) => host.waits[index].settle(undefined, value);

test('[JS-187 JS-189] texts are sent as they are, and anything else as JSON', () => {
  messaging.push('jobs', 'text');
  messaging.push('jobs', { a: [1, null] });
  messaging.broadcast('news', 'text');
  messaging.broadcast('news', 1.5);
  assert.deepEqual(host.calls, [
    ['push', 'jobs', 'text'], ['push', 'jobs', '{"a":[1,null]}'], ['broadcast', 'news', 'text'], ['broadcast', 'news', '1.5'],
  ]);
});

test('a queue that stays full is an error', () => {
  assert.throws(() => messaging.push('full', 'x'), (error) => error instanceof InferletError && error.code === 'queue-full');
});

test('what is not a topic or a message is refused before the engine is asked', () => {
  for (const call of [() => messaging.push(1, 'x'), () => messaging.pull(undefined), () => messaging.subscribe({}), () => messaging.broadcast(null, 'x')]) {
    assert.throws(call, (error) => error instanceof TypeError && error.code === 'invalid-argument');
  }
  assert.throws(() => messaging.push('jobs', '\ud800'), { code: 'invalid-argument' });
  assert.throws(() => messaging.push('jobs', 1n), { code: 'invalid-argument' });
  assert.deepEqual(host.calls, []);
});

test('[JS-190] a pull that has lost its race is given up', async () => {
  const pulled = messaging.pull('jobs');
  await Promise.race([pulled, Promise.resolve('other')]);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(host.waits[0].lost, true);
  assert.equal(host.waits[0].interested, 0);
});

test('[JS-186 JS-188 JS-191..194] a subscription is read one by one and by a loop, and ends', async () => {
  const sub = messaging.subscribe('news');
  assert.ok(sub instanceof Subscription);
  const next = sub.next();
  settle(0, 'one');
  assert.equal(await next, 'one');
  const heard = [];
  const loop = (async () => {
    for await (const message of sub) heard.push(message);
  })();
  settle(1, 'two');
  await new Promise((resolve) => setImmediate(resolve));
  settle(2, undefined);
  await loop;
  assert.deepEqual(heard, ['two']);
  assert.equal(sub.lagged, 3);
  sub.unsubscribe();
  assert.deepEqual(host.calls.at(-1), ['subscription.unsubscribe']);
});

test('[JS-191] `using` ends a subscription', () => {
  const sub = messaging.subscribe('news');
  sub[Symbol.dispose]();
  assert.deepEqual(host.calls, [['subscribe', 'news'], ['subscription.unsubscribe']]);
});

test('tryNext never waits', () => {
  const sub = messaging.subscribe('news');
  host.held.push('one');
  assert.deepEqual([sub.tryNext(), sub.tryNext()], ['one', undefined]);
  assert.equal(host.waits.length, 0);
});
