// Promises of the engine: how they settle, and when the engine may give them up.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { Context, InferletError, Model, Sampler, SessionClosed, chat, session } from '../../js/inferlet/dist/index.js';

beforeEach(() => host.reset());

const model = Model.load('tiny');
const settled = () => new Promise((resolve) => setImmediate(resolve));
const generate = () => new Context(model).generate(Sampler.argmax());

test('[JS-071] a collector is answered once', async () => {
  const text = generate().collectText();
  host.waits[0].settle(undefined, 'hello');
  assert.equal(await text, 'hello');
  assert.deepEqual(host.calls.map(([name]) => name), ['contextCreate', 'generatorCreate', 'generator.collectText']);
});

test('[JS-075 JS-078 JS-098] a step gives its tokens and why it was the last', async () => {
  for await (const step of generate()) {
    const executed = step.execute();
    host.waits[0].settle(undefined, { tokens: new Uint32Array([5]), finish: 'stop', slots: [], speculation: { drafted: 0, accepted: 0 } });
    const out = await executed;
    assert.deepEqual([[...out.tokens], out.finishReason], [[5], 'stop']);
    break;
  }
});

test('[JS-070] an error is raised where the call was made', async () => {
  async function asking() {
    return await generate().collectTokens();
  }
  const asked = asking();
  host.waits[0].settle(host.engineError('context-full', 'full'), undefined);
  await assert.rejects(asked, (error) => error instanceof InferletError && error.code === 'context-full' && error.stack.includes('asking'));
});

test('a disconnect is an error of its own', async () => {
  const received = session.receive();
  host.waits[0].settle(host.engineError('session-closed', 'the client has disconnected'), undefined);
  await assert.rejects(received, SessionClosed);
});

test('a promise of the engine is one of JavaScript', () => {
  const received = session.receive();
  assert.ok(received instanceof Promise);
  assert.equal(received.then().constructor, Promise);
});

const soon = () => new Promise((resolve) => setImmediate(resolve));

for (const combine of ['race', 'any']) {
  test(`what loses a ${combine} is given up`, async () => {
    assert.equal(await Promise[combine]([session.receive(), Promise.resolve('timer')]), 'timer');
    assert.equal(host.waits[0].interested, 0);
  });

  test(`what loses a ${combine} and is awaited elsewhere is not given up`, async () => {
    const received = session.receive();
    const elsewhere = received.then((text) => text.length);
    await Promise[combine]([received, Promise.resolve('timer')]);
    assert.equal(host.waits[0].interested, 1);
    host.waits[0].settle(undefined, 'four');
    assert.equal(await elsewhere, 4);
  });
}

test('a race with only ordinary promises is an ordinary race', async () => {
  assert.equal(await Promise.race([soon(), 'first']), 'first');
  await assert.rejects(Promise.race([Promise.reject(new Error('lost'))]), /lost/);
});

test('all waits for every promise of the engine', async () => {
  const both = Promise.all([session.receive(), session.receive()]);
  await soon();
  host.waits[1].settle(undefined, 'b');
  host.waits[0].settle(undefined, 'a');
  assert.deepEqual(await both, ['a', 'b']);
});

test('[JS-155..157 JS-159..160] a decoder gives one event a feed, and all of them by its iterator', () => {
  host.events.push({ type: 'delta', value: 'a' }, { type: 'done', value: 'a' }, { type: 'delta', value: 'b' });
  const decoder = new chat.Decoder(model);
  assert.deepEqual(decoder.feed([1]), { type: 'delta', text: 'a' });
  assert.deepEqual([...decoder.events([2])].map((event) => event.type), ['done', 'delta']);
  const fed = host.calls.filter(([name]) => name === 'decoder.feed').map(([, tokens]) => tokens);
  assert.deepEqual(fed, [[1], [2], [], []]);
});

test('[JS-157] tokens are taken where events are made, not iterated', () => {
  host.events.push({ type: 'delta', value: 'a' }, { type: 'done', value: 'a' });
  const decoder = new chat.Decoder(model);
  const events = decoder.events([1]);
  assert.deepEqual(host.calls.filter(([name]) => name === 'decoder.feed'), [['decoder.feed', [1]]]);
  decoder.events([2]);
  assert.deepEqual([...events].map((event) => event.type), ['delta']);
  const fed = host.calls.filter(([name]) => name === 'decoder.feed').map(([, tokens]) => tokens);
  assert.deepEqual(fed, [[1], [2], []]);
});

test('[JS-155..157 JS-161] a decoder takes what a step accepted, and ends a turn', async () => {
  host.events.push({ type: 'delta', value: 'a' }, { type: 'done', value: 'a' }, { type: 'interrupt', value: 7 });
  const decoder = new chat.Decoder(model);
  const output = { tokens: new Uint32Array([1, 2]), finish: 'stop', slots: [], speculation: { drafted: 0, accepted: 0 } };
  const { value: step } = await generate().next();
  const executed = step.execute();
  host.waits[0].settle(undefined, output);
  const events = [...decoder.events(await executed)];
  assert.deepEqual(events.map((event) => event.type), ['delta', 'done', 'interrupt']);
  assert.deepEqual(host.calls.find(([name]) => name === 'decoder.feedOutput'), ['decoder.feedOutput', output.tokens, 'stop']);
  host.events.push({ type: 'interrupt', value: 7 });
  assert.deepEqual(decoder.finish(), { type: 'interrupt', token: 7 });
});

test('[JS-023] a context is released by using', () => {
  const ctx = new Context(model);
  ctx[Symbol.dispose]();
  assert.deepEqual(host.calls.at(-1), ['context.release']);
});

test('the combinators that end losers are as replaceable as those of the language', () => {
  for (const name of ['race', 'any']) {
    const { value, ...flags } = Object.getOwnPropertyDescriptor(Promise, name);
    assert.deepEqual(flags, { writable: true, enumerable: false, configurable: true });
    assert.equal(value.name, name);
  }
});

test('a stream gives the text of each step, and at the end what was held back', async () => {
  const answer = (tokens, finish) => ({ tokens: new Uint32Array(tokens), finish, slots: [], speculation: { drafted: 0, accepted: 0 } });
  const texts = generate().texts();
  assert.equal(texts.textSoFar, '');
  assert.ok(!host.calls.some(([name]) => name === 'decoderCreateFor'));
  host.events.push({ type: 'delta', value: 'one' });
  const first = texts.next();
  await settled();
  host.waits[0].settle(undefined, answer([1]));
  assert.deepEqual(await first, { done: false, value: 'one' });
  // A step that completes no character gives no piece: the stream asks for the next one.
  const second = texts.next();
  await settled();
  host.waits[1].settle(undefined, answer([2]));
  await settled();
  host.events.push({ type: 'delta', value: ' two' }, { type: 'done', value: 'one two' });
  host.waits[2].settle(undefined, answer([3], 'stop'));
  assert.deepEqual(await second, { done: false, value: ' two' });
  assert.deepEqual(await texts.next(), { done: true, value: undefined });
  assert.equal(texts.textSoFar, 'one two');
  const fed = host.calls.filter(([name]) => name === 'decoder.feedOutput').map(([, tokens, finish]) => [[...tokens], finish]);
  assert.deepEqual(fed, [[[1], undefined], [[2], undefined], [[3], 'stop']]);
});

test('a stream of a generation that has ended gives what its decoder holds', async () => {
  host.steps.next = undefined;
  const texts = generate().texts();
  host.events.push({ type: 'delta', value: '\ufffd' }, { type: 'done', value: '\ufffd' });
  const pieces = [];
  for await (const text of texts) pieces.push(text);
  assert.deepEqual(pieces, ['\ufffd']);
});

test('a question is a message, and its answer the text', async () => {
  const ctx = new Context(model);
  const answer = ctx.ask('Hi');
  await settled();
  host.waits[0].settle(undefined, 'hello');
  assert.equal(await answer, 'hello');
  assert.deepEqual(host.calls.slice(1, 3).map(([name, ...given]) => [name, ...given.slice(0, 2)])[0], ['fill', 'user', 'Hi']);
  assert.deepEqual(host.calls.map(([name]) => name).slice(2), ['generatorCreate', 'generator.collectText']);
});

test('a generation that was collected to its end is told of where it is collected again', async () => {
  const warnings = () => host.calls.filter(([name, stream]) => name === 'write' && stream === 'stderr').map(([, , text]) => text);
  const g = generate();
  const first = g.collectText();
  host.waits[0].settle(undefined, 'hello');
  assert.equal(await first, 'hello');
  // What a lost race has given up goes on.
  void g.collectText();
  assert.deepEqual(warnings(), []);
  host.steps.finish = 'stop';
  void generate().collectText();
  assert.deepEqual(warnings(), []);
  void g.collectText();
  g.texts();
  const told = 'the generation has ended and was collected already, so that collectText() gives nothing; keep what the first call gave';
  assert.deepEqual(warnings().map((text) => text.startsWith(`warning: ${told}`)), [true]);
});
