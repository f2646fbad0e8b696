// What the SDK hands to the engine of bids and of the market for pages.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import * as sdk from '../../js/inferlet/dist/index.js';

const { Context, Model, Sampler, scheduling } = sdk;

beforeEach(() => host.reset());

const fresh = () => new Context(Model.load('tiny'));
const NAMES = `Model Tokenizer Context Adapter Forward Output Generator GenStep Sampler Logits Distribution Logprob
Logprobs Entropy Grammar GrammarConstraint jsonSchema anyJson regex ebnf grammar chat reasoning tools runtime
scheduling session messaging mcp`;

test('[JS-007] every name of the reference is exported', () => {
  const names = NAMES.split(/\s+/);
  assert.equal(names.length, 29);
  assert.deepEqual(names.filter((name) => sdk[name] === undefined), []);
});

test('[JS-205..209] the market is read by model and by context', () => {
  const context = fresh();
  const told = [scheduling.balance(context.model), scheduling.rent(context), scheduling.dividend(context.model), scheduling.latency(context), scheduling.price()];
  assert.deepEqual(told, [1000, 2.5, 0.25, 0.01, 1]);
  assert.deepEqual(host.calls.slice(-5).map(([name]) => name), ['balance', 'rent', 'dividend', 'latency', 'price']);
});

test('what is none of them is refused before the engine is asked', () => {
  const context = fresh();
  const before = host.calls.length;
  for (const call of [
    () => scheduling.balance(context), () => scheduling.dividend(undefined), () => scheduling.rent(context.model),
    () => scheduling.latency({}), () => context.setBid('5'), () => context.setBid(), () => context.generate(Sampler.argmax(), { rebidEachStep: 1 }),
  ]) {
    assert.throws(call, TypeError);
  }
  assert.equal(host.calls.length, before);
});

test('[JS-210] a bid is for the engine to judge', () => {
  const context = fresh();
  for (const bid of [2.5, 0, -1, NaN]) context.setBid(bid);
  assert.deepEqual(host.calls.slice(-4), [2.5, 0, -1, NaN].map((bid) => ['context.setBid', bid]));
});

test('[JS-211] nothing is bid until the scope is disposed of, once', () => {
  const context = fresh();
  const idle = context.idle();
  assert.deepEqual(host.calls.at(-1), ['context.beginIdle']);
  idle[Symbol.dispose]();
  idle[Symbol.dispose]();
  assert.deepEqual(host.calls.map(([name]) => name).filter((name) => name.includes('Idle')), ['context.beginIdle', 'context.endIdle']);
});

test('whether a bid holds for all steps reaches the engine', () => {
  const generator = fresh().generate(Sampler.argmax(), { rebidEachStep: false });
  assert.deepEqual(host.calls.at(-1), ['generator.rebidEachStep', false]);
  assert.equal(generator.rebidEachStep(), generator);
  assert.deepEqual(host.calls.at(-1), ['generator.rebidEachStep', true]);
  assert.throws(() => generator.rebidEachStep('no'), TypeError);
});
