// Forward passes, probes, handles and masks: what reaches the engine, and what outputs give.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import {
  Adapter, Context, Distribution, Embedding, Entropy, Forward, InferletError, Logits, Logprob, Logprobs, Model, Output, Sampler,
  brle,
} from '../../js/inferlet/dist/index.js';

beforeEach(() => host.reset());

const model = Model.load('tiny');
const ids = (...values) => new Uint32Array(values);
const NOTHING = { drafted: 0, accepted: 0 };

/** A pass, and what reached the engine since it was made. */
function fresh() {
  const fwd = new Context(model).forward();
  host.calls.length = 0;
  return fwd;
}

/** The output of a pass whose slots these are. */
async function answered(fwd, slots, speculation = NOTHING) {
  const executed = fwd.execute();
  host.waits.at(-1).settle(undefined, { slots, speculation });
  return await executed;
}

test('[JS-080 JS-082..089] what a pass is given reaches the engine', () => {
  const fwd = fresh();
  const adapter = Adapter.create(model, 'kept');
  host.calls.length = 0;
  assert.ok(fwd instanceof Forward);
  const built = fwd.input([1, 2]).inputAt(ids(3), [7]).attentionMask([[], ids(0, 3), [1, 2]]).mask([5, 1]);
  assert.equal(built.adapter(adapter).zoSeed(-3), fwd);
  fwd.sample(new Set([0, 2]), Sampler.topP(0.5, 0.25, { seed: 4 }));
  fwd.probe(1, Entropy());
  const names = host.calls.map(([name]) => name);
  assert.deepEqual(names, [
    'pass.input', 'pass.inputAt', 'pass.attentionMask', 'pass.logitMask', 'pass.setAdapter', 'pass.setZoSeed', 'pass.sample', 'pass.probe',
  ]);
  assert.deepEqual(host.calls[1], ['pass.inputAt', ids(3), ids(7)]);
  assert.deepEqual(host.calls[2], ['pass.attentionMask', [ids(), ids(0, 3), ids(1, 2)]]);
  assert.deepEqual(host.calls[5], ['pass.setZoSeed', -3n]);
  const sampler = { temperature: 0.5, topK: undefined, topP: 0.25, minP: undefined, draws: 1, seed: 4n };
  assert.deepEqual(host.calls[6], ['pass.sample', ids(0, 2), sampler]);
  assert.deepEqual(host.calls[7], ['pass.probe', 1, { type: 'entropy' }]);
});

test('[JS-091] a pass knows where it starts, and its page size', () => {
  const fwd = fresh();
  assert.deepEqual([fwd.startPosition(), fwd.pageSize], [12, 16]);
});

test('[JS-108..113] probes are what is read', () => {
  const fwd = fresh();
  for (const probe of [Logits(), Distribution(0.5, 3), Distribution(2, 0), Logprob(7), Logprobs(new Set([8, 9])), Entropy(), Embedding()]) fwd.probe(0, probe);
  assert.deepEqual(host.calls.map(([, , record]) => record), [
    { type: 'logits' },
    { type: 'distribution', value: { temperature: 0.5, k: 3 } },
    { type: 'distribution', value: { temperature: 2, k: 0 } },
    { type: 'logprobs', value: ids(7) },
    { type: 'logprobs', value: ids(8, 9) },
    { type: 'entropy' },
    { type: 'embedding' },
  ]);
});

test('[JS-090 JS-092..097 JS-100] an output is read by the handles of its pass', async () => {
  const fwd = fresh();
  const one = fwd.sample([0], Sampler.argmax());
  const logits = fwd.probe(0, Logits());
  const top = fwd.probe(0, Distribution(1, 2));
  const some = fwd.probe(0, Logprobs([1, 2]));
  const entropy = fwd.probe(0, Entropy());
  const hidden = fwd.probe(0, Embedding());
  const slots = [
    { type: 'tokens', value: ids(5, 6) },
    { type: 'logits', value: new Uint8Array(8) },
    { type: 'distribution', value: { tokens: ids(3, 1), values: new Float32Array([0.5, 0.25]) } },
    { type: 'logprobs', value: new Float32Array([-1, -2]) },
    { type: 'entropy', value: 0 },
    { type: 'embedding', value: new Uint8Array(4) },
  ];
  const out = await answered(fwd, slots, { drafted: 2, accepted: 1 });
  assert.ok(out instanceof Output);
  assert.deepEqual([out.token(one), [...out.tokensAt(one)]], [5, [5, 6]]);
  assert.equal(new Float32Array(out.logits(logits).buffer).length, 2);
  assert.deepEqual(out.distribution(top), [ids(3, 1), new Float32Array([0.5, 0.25])]);
  assert.deepEqual(out.logprobs(some), new Float32Array([-1, -2]));
  assert.equal(out.entropy(entropy), 0);
  assert.equal(out.embedding(hidden).length, 4);
  assert.deepEqual(out.raw, { slots, speculative: { drafted: 2, accepted: 1 } });
  assert.deepEqual([[...out.tokens], out.finishReason, out.autoSampler], [[], undefined, undefined]);
});

test('[JS-092..097] a handle of another kind or another pass gives undefined', async () => {
  const [fwd, other] = [fresh(), fresh()];
  const [sampler, entropy] = [fwd.sample([0], Sampler.argmax()), fwd.probe(0, Entropy())];
  const foreign = other.sample([0], Sampler.argmax());
  const out = await answered(fwd, [{ type: 'tokens', value: ids(5) }, { type: 'entropy', value: 0.5 }]);
  const accessors = ['token', 'tokensAt', 'distribution', 'logits', 'logprobs', 'entropy', 'embedding'];
  const given = (handle) => accessors.filter((name) => out[name](handle) !== undefined);
  assert.deepEqual(given(sampler), ['token', 'tokensAt']);
  assert.deepEqual(given(entropy), ['entropy']);
  assert.deepEqual(given(foreign), []);
  // A handle of another kind is told of, each mistake once; one of another pass is not.
  const told = () => host.calls.filter(([name]) => name === 'write').map(([, , text]) => text);
  const entropyAsLogits = 'warning: `out.logits(...)` gives undefined for the handle of a probe of the kind entropy; `out.entropy(...)` reads that one\n';
  given(entropy);
  assert.equal(told().filter((text) => text === entropyAsLogits).length, 1);
  for (const handle of [0, 'a', {}, null, undefined]) {
    assert.throws(() => out.token(handle), (error) => error instanceof TypeError && error.code === 'invalid-argument', String(handle));
  }
});

test('[JS-090] a pass that fails rejects with the error of the engine', async () => {
  const executed = fresh().execute();
  host.waits[0].settle(host.engineError('unsupported', 'no adapters on this driver'), undefined);
  await assert.rejects(executed, (error) => error instanceof InferletError && error.code === 'unsupported');
});

test('[JS-090] a pass that lost its race is given up', async () => {
  assert.equal(await Promise.race([fresh().execute(), Promise.resolve('timer')]), 'timer');
  assert.equal(host.waits[0].interested, 0);
});

const REFUSED = [
  ['tokens that are none', (fwd) => fwd.input('ab'), TypeError, 'invalid-argument', 'tokens must be a list of token ids'],
  ['a negative token', (fwd) => fwd.input([-1]), InferletError, 'invalid-token', 'tokens[0] is -1'],
  ['half a position', (fwd) => fwd.inputAt([1], [0.5]), InferletError, 'invalid-argument', 'positions[0] is 0.5'],
  ['a position in words', (fwd) => fwd.inputAt([1], ['0']), TypeError, 'invalid-argument', 'positions[0] must be a position, not "0"'],
  ['a mask for all tokens', (fwd) => fwd.attentionMask([0, 3]), TypeError, 'invalid-argument', 'masks[0] must be a list of run lengths'],
  ['masks that are none', (fwd) => fwd.attentionMask(3), TypeError, 'invalid-argument', 'masks must be masks'],
  ['a mask of fractions', (fwd) => fwd.mask([0.5]), InferletError, 'invalid-argument', 'mask[0] is 0.5, which cannot be a run length'],
  ['an endless run', (fwd) => fwd.mask([0, Infinity]), InferletError, 'invalid-argument', 'mask[1] is Infinity'],
  ['an index that is none', (fwd) => fwd.sample(0, Sampler.argmax()), TypeError, 'invalid-argument', 'indices must be a list of indices'],
  ['a negative index', (fwd) => fwd.sample([-1], Sampler.argmax()), InferletError, 'invalid-argument', 'indices[0] is -1'],
  ['a probe where a sampler belongs', (fwd) => fwd.sample([0], Entropy()), TypeError, 'invalid-argument', 'sampler must be a Sampler'],
  ['a sampler where a probe belongs', (fwd) => fwd.probe(0, Sampler.argmax()), TypeError, 'invalid-argument', 'probe must be a probe'],
  ['a probe that was not called', (fwd) => fwd.probe(0, Entropy), TypeError, 'invalid-argument', 'probe must be a probe, such as Entropy()'],
  ['half a candidate', (fwd) => fwd.probe(0, Distribution(1, 0.5)), InferletError, 'invalid-probe', 'k of the probe is 0.5'],
  ['fewer candidates than none', (fwd) => fwd.probe(0, Distribution(1, -1)), InferletError, 'invalid-probe', 'k of the probe is -1'],
  ['no temperature', (fwd) => fwd.probe(0, Distribution()), TypeError, 'invalid-argument', 'temperature of the probe must be a number'],
  ['a negative candidate', (fwd) => fwd.probe(0, Logprobs([1, -2])), InferletError, 'invalid-token', 'tokens[1] is -2'],
  ['a candidate in words', (fwd) => fwd.probe(0, Logprob('a')), TypeError, 'invalid-argument', 'must be a token id, not "a"'],
  ['what is no adapter', (fwd) => fwd.adapter('kept'), TypeError, 'invalid-argument', 'adapter must be an Adapter, not "kept"; Adapter.open(model, "kept") gives'],
  ['a seed of 65 bits', (fwd) => fwd.zoSeed(2n ** 63n), InferletError, 'invalid-argument', 'seed is 9223372036854775808'],
  ['an inexact seed', (fwd) => fwd.zoSeed(2 ** 53), InferletError, 'invalid-argument', 'bigint'],
  ['bits that are none', () => brle.unpack([1], 8), TypeError, 'invalid-argument', 'bits must be a Uint8Array'],
  ['a row of half an element', () => brle.shortest([], 0.5), InferletError, 'invalid-argument', 'length is 0.5'],
];

for (const [name, call, kind, code, words] of REFUSED) {
  test(`[JS-082..089 JS-110..112] refused before the engine is asked: ${name}`, () => {
    const fwd = fresh();
    assert.throws(() => call(fwd), (error) => {
      assert.ok(error instanceof kind, `${error} is not a ${kind.name}`);
      assert.equal(error.code, code);
      assert.ok(error.message.includes(words), error.message);
      return true;
    });
    assert.deepEqual(host.calls, []);
  });
}

test('[JS-084..085] masks are what the engine makes of them', () => {
  assert.deepEqual(brle.shortest([0, 3], 5), ids(1));
  assert.deepEqual(brle.intersection([[], [2, 1]], 5), ids(2, 1));
  assert.deepEqual(brle.allowing([4, 1], 5), ids(2));
  assert.deepEqual(brle.allowed([1, 1], 5), ids(3));
  assert.deepEqual(brle.pack([1, 1], 5), new Uint8Array([5]));
  assert.deepEqual(brle.toBools([1, 1], 4), [true, false, true, false]);
  assert.deepEqual(brle.unpack(new Uint8Array([7]), 5), ids(4));
  assert.deepEqual(brle.fromBools([true, 0, 'yes']), ids(2));
  for (const given of [{ 104: true }, new Map([[1, true]]), 'abc', 5, undefined]) {
    assert.throws(() => brle.fromBools(given), { code: 'invalid-argument', message: /^allowed must be a list of truth values, not / });
  }
  assert.deepEqual(brle.window(0, 3, 2, 1), [ids(5)]);
  assert.deepEqual(brle.causal(0, 3), [ids(6)]);
  assert.deepEqual(host.calls, [
    ['shortest', ids(0, 3), 5],
    ['intersection', [ids(), ids(2, 1)], 5],
    ['allowing', ids(4, 1), 5],
    ['allowed', ids(1, 1), 5],
    ['pack', ids(1, 1), 5],
    ['pack', ids(1, 1), 4],
    ['unpack', new Uint8Array([7]), 5],
    ['allowing', ids(0, 2), 3],
    ['window', 0, 3, 2, 1],
    ['causal', 0, 3],
  ]);
});

test('[JS-147 JS-154] an adapter is let go of, and not deleted', () => {
  assert.equal(Adapter.open(model, 'absent'), undefined);
  const fwd = fresh();
  const adapter = Adapter.open(model, 'kept');
  fwd.adapter(adapter);
  adapter[Symbol.dispose]();
  adapter[Symbol.dispose]();
  assert.throws(() => fwd.adapter(adapter), (error) => error.code === 'invalid-argument' && error.message.includes('disposed'));
  assert.deepEqual(host.calls.map(([name]) => name), ['adapterOpen', 'pass.setAdapter']);
});
