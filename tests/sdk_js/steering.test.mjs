// What a program says in the steps of a generator: constraints, speculators, probes and its own tokens.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { Adapter, Context, Entropy, InferletError, Logits, Model, Sampler, brle } from '../../js/inferlet/dist/index.js';

beforeEach(() => host.reset());

const model = Model.load('tiny');
const ids = (...values) => new Uint32Array(values);
const generate = (options) => new Context(model).generate(Sampler.argmax(), options);
const soon = () => new Promise((resolve) => setImmediate(resolve));
const namesOf = (calls) => calls.map(([name]) => name);

/** What the engine answers a step with. */
function answer(tokens, { finish, slots = [], drafted = 0, accepted = 0 } = {}) {
  return { tokens: ids(...tokens), finish, slots, speculation: { drafted, accepted } };
}

/** Runs a step that accepts these tokens. */
async function step(generator, tokens, more) {
  const { value } = await generator.next();
  const executed = value.execute();
  host.waits.at(-1).settle(undefined, answer(tokens, more));
  const out = await executed;
  host.steps.next += 1;
  return out;
}

/** Answers every step with one of the tokens, as long as there are some. */
async function answerAll(...runs) {
  for (const [index, run] of runs.entries()) {
    if (index === runs.length - 1) host.steps.next = undefined;
    else host.steps.next += 1;
    host.waits.at(-1).settle(undefined, answer(run));
    await soon();
  }
}

/** A constraint that gives these masks one after the other, and remembers what was accepted. */
function constraint(...masks) {
  const seen = [];
  return { seen, step: (accepted) => (seen.push([...accepted]), masks[seen.length - 1]) };
}

/** A speculator that proposes these drafts, and writes down what it is told. */
function speculator(...drafts) {
  const told = [];
  return {
    told,
    draft: () => drafts.shift() ?? [[], []],
    accept: (tokens) => told.push(['accept', [...tokens]]),
    rollback: (n) => told.push(['rollback', n]),
    reset: () => told.push(['reset']),
  };
}

test('[JS-051 JS-124..125] a constraint is asked once in each step, while the step runs', async () => {
  const c = constraint([3, 1], undefined, [], null);
  const generator = generate({ constrain: c });
  for (const tokens of [[7], [8, 9], [10], [11]]) await step(generator, tokens);
  assert.deepEqual(c.seen, [[], [7], [8, 9], [10]]);
  assert.deepEqual(namesOf(host.calls).slice(2, 5), ['generator.askMasks', 'generator.nextStep', 'generator.step']);
  const masks = host.calls.filter(([name]) => name === 'generator.giveMask').map(([, mask]) => [...mask]);
  assert.deepEqual(masks, [[3, 1], [], [], []]);
});

test('[JS-051..052 JS-063] several constraints, schemas among them, and a mask are joined by AND', async () => {
  const schema = { buildConstraint: (given) => (assert.equal(given, model), constraint([2])) };
  const generator = generate({ constrain: [constraint([1]), schema], logitMask: [4] });
  assert.equal(generator.constrain(constraint([3])), generator);
  await step(generator, [7]);
  assert.deepEqual(host.calls.find(([name]) => name === 'intersection'), ['intersection', [ids(1), ids(2), ids(3)], 100]);
  assert.deepEqual(host.calls.at(-1), ['generator.giveMask', ids(1, 2, 3)]);
  assert.deepEqual([...host.calls.find(([name]) => name === 'generatorCreate')[2].logitMask], [4]);
});

test('[JS-122] what has buildConstraint is a schema, and makes a constraint for each generation', () => {
  let built = 0;
  const schema = { buildConstraint: () => (built++, constraint()) };
  generate({ constrain: schema }).constrain(schema);
  assert.equal(built, 2);
});

test('[JS-051 JS-078 JS-124] a constraint that throws gives its step up, and is asked again by the next one', async () => {
  const own = new Error('no way on');
  const first = constraint([1], [2]);
  let broken = true;
  const second = { step: () => { if (broken) throw own; return []; } };
  const generator = generate({ constrain: [first, second] });
  const { value } = await generator.next();
  await assert.rejects(value.execute(), (error) => error === own);
  assert.equal(host.waits[0].lost, true);
  broken = false;
  await step(generator, [7]);
  assert.deepEqual(first.seen, [[]]);
});

test('[JS-124] a mask that is none gives the step up', async () => {
  for (const [mask, words] of [[7, 'step() must be a list of run lengths'], [[-1], 'step()[0] is -1'], [['1'], 'step()[0] must be a run length'], [new Set([5]), 'step() must be a mask']]) {
    const { value } = await generate({ constrain: constraint(mask) }).next();
    await assert.rejects(value.execute(), (error) => error.code === 'invalid-argument' && error.message.includes(words));
    assert.equal(host.waits.at(-1).lost, true);
  }
});

test('[JS-053 JS-142..146] a speculator proposes, and is told what came of it', async () => {
  const spec = speculator([[5, 6, 7], [10, 11, 12]], [[8], new Set([13])]);
  const generator = generate({ speculator: spec });
  await step(generator, [5, 9], { drafted: 3, accepted: 1 });
  await step(generator, [8, 4], { drafted: 1, accepted: 1 });
  await step(generator, [2]);
  const drafts = host.calls.filter(([name]) => name === 'generator.draft');
  assert.deepEqual(drafts, [['generator.draft', ids(5, 6, 7), ids(10, 11, 12)], ['generator.draft', ids(8), ids(13)]]);
  assert.deepEqual(spec.told, [['reset'], ['rollback', 2], ['accept', [5, 9]], ['accept', [8, 4]], ['accept', [2]]]);
});

test('[JS-053 JS-142..143] a speculator needs neither rollback nor reset', async () => {
  const told = [];
  const generator = generate({ speculator: { draft: () => [[1], [1]], accept: (tokens) => told.push([...tokens]) } });
  await step(generator, [9], { drafted: 1 });
  generator.accept([3]);
  assert.deepEqual(told, [[9], [3]]);
});

test('[JS-053 JS-142] a draft of one half reaches the engine, which refuses it', async () => {
  for (const draft of [[[5], []], [[], [3]]]) {
    await step(generate({ speculator: { draft: () => draft, accept: () => {} } }), [1]);
    const [, tokens, positions] = host.calls.findLast(([name]) => name === 'generator.draft');
    assert.deepEqual([[...tokens], [...positions]], draft);
  }
});

test('[JS-053 JS-142..143] what a speculator throws comes out of the step', async () => {
  const own = new Error('lost');
  const throws = () => { throw own; };
  const drafting = generate({ speculator: { draft: throws, accept: () => {} } });
  const { value } = await drafting.next();
  await assert.rejects(value.execute(), own);
  // The step is given up as one that was run and cancelled, so that it comes again.
  const calls = namesOf(host.calls);
  assert.deepEqual(calls.slice(calls.indexOf('generator.nextStep')), ['generator.nextStep', 'generator.step']);
  await assert.rejects(step(generate({ speculator: { draft: () => [[], []], accept: throws } }), [1]), own);
  await assert.rejects(step(generate({ speculator: { draft: () => 3, accept: () => {} } }), [1]), (error) => error.message.includes('draft() must return'));
});

test('[JS-075..078] a step behind which another one was opened is over', async () => {
  const g = generate({});
  const { value: old } = await g.next();
  host.steps.next = 1;
  await g.next();
  const isOver = (error) => error instanceof InferletError && error.code === 'step-pending' && error.message.includes('step 0 of this generator is over');
  assert.throws(() => old.probe(0, Entropy()), isOver);
  assert.throws(() => old.clearSampler(), isOver);
  await assert.rejects(old.execute(), isOver);
});

test('[JS-079 JS-143 JS-145] what is accepted besides is told alone', async () => {
  const told = [];
  const speculator = {
    draft: () => [[], []], accept: (tokens) => told.push(['accept', [...tokens]]), reset: () => told.push(['reset']),
  };
  const g = generate({ speculator });
  await step(g, [1]);
  for (const tokens of [[1], [1, 4], [5]]) g.accept(tokens);
  assert.deepEqual(told, [['reset'], ['accept', [1]], ['accept', [4]], ['reset'], ['accept', [5]]]);
});

test('[JS-059] a speculator and the engine cannot both propose', () => {
  const made = () => generate({ speculator: speculator(), systemSpeculation: true });
  assert.throws(made, (error) => error instanceof InferletError && error.code === 'invalid-argument');
  assert.deepEqual(namesOf(host.calls), ['contextCreate']);
});

test('[JS-052..057] options reach the engine', () => {
  const adapter = Adapter.create(model, 'kept');
  generate({ logitMask: new Uint16Array([3, 1]), systemSpeculation: true, adapter, zoSeed: -5n, horizon: 40 });
  const [, , options] = host.calls.find(([name]) => name === 'generatorCreate');
  assert.deepEqual([options.logitMask, options.drafting], [ids(3, 1), { type: 'n-gram' }]);
  assert.deepEqual(host.calls.slice(-2), [['generator.setZoSeed', -5n], ['generator.setHorizon', 40]]);
  assert.equal(host.calls.at(-3)[0], 'generator.setAdapter');
  generate({ systemSpeculation: 'small' });
  assert.deepEqual(host.calls.at(-1)[2].drafting, { type: 'model', value: 'small' });
  for (const off of [{}, { systemSpeculation: false, speculator: speculator() }]) {
    generate(off);
    assert.deepEqual(host.calls.findLast(([name]) => name === 'generatorCreate')[2].drafting, { type: 'none' });
  }
});

test('[JS-064..066] builder methods reach the engine and chain', () => {
  const generator = generate();
  const adapter = Adapter.create(model, 'kept');
  assert.equal(generator.horizon(9).adapter(adapter).zoSeed(2 ** 53 - 1), generator);
  assert.deepEqual(namesOf(host.calls).slice(-3), ['generator.setHorizon', 'generator.setAdapter', 'generator.setZoSeed']);
  assert.deepEqual(host.calls.at(-1), ['generator.setZoSeed', 2n ** 53n - 1n]);
});

test('[JS-052 JS-054 JS-059] masks and who proposes are put in place of the options', () => {
  const generator = generate();
  assert.equal(generator.logitMask([3, 1]).systemSpeculation(), generator);
  generator.systemSpeculation('small').systemSpeculation(false);
  assert.deepEqual(host.calls.slice(-4), [
    ['generator.setLogitMask', ids(3, 1)],
    ['generator.setDrafting', { type: 'n-gram' }],
    ['generator.setDrafting', { type: 'model', value: 'small' }],
    ['generator.setDrafting', { type: 'none' }],
  ]);
  const proposed = generate({ speculator: speculator() });
  const nCalls = host.calls.length;
  assert.throws(() => proposed.systemSpeculation(), (error) => error.code === 'invalid-argument');
  assert.throws(() => generator.logitMask('any'), TypeError);
  assert.equal(host.calls.length, nCalls);
});

test('[JS-052 JS-124] what has no end is not read to its end', () => {
  const endless = { * [Symbol.iterator]() { for (;;) yield 0; } };
  const refused = (call, words) => assert.throws(call, ({ code, message }) => code === 'invalid-argument' && message.includes(words));
  refused(() => generate({ logitMask: endless }), 'logitMask has more than 1048577 run lengths');
  refused(() => brle.shortest(endless, 4), 'mask has more than 5 run lengths');
  refused(() => brle.intersection([[1], new Uint32Array(6)], 4), 'masks[1] has more than 5 run lengths');
  refused(() => brle.intersection([[1], new Set([2])], 4), 'masks[1] must be a mask: a list of run lengths');
  assert.deepEqual(host.calls.filter(([name]) => name !== 'contextCreate'), []);
});

test('[JS-051 JS-073] a schema of a library constrains to its documents', () => {
  const library = { toJSONSchema: () => ({ const: 1 }) };
  const standard = Object.assign(() => {}, { '~standard': { jsonSchema: { input: ({ target }) => ({ $comment: target }) } } });
  const sources = () => host.calls.filter(([name]) => name === 'grammarCreate').map(([, { value }]) => value);
  generate({ constrain: library });
  generate().constrain([library, standard]);
  assert.deepEqual(sources(), ['{"const":1}', '{"const":1}', '{"$comment":"draft-2020-12"}']);
});

const REFUSED = [
  [{ constrain: 3 }, TypeError, 'constrain must be a schema (jsonSchema(...), anyJson(), regex(...), ebnf(...)), a schema of a library, an object with a method step(accepted) or buildConstraint(model), or a list of them; it is 3'],
  [{ constrain: 'a+' }, TypeError, 'or a list of them; it is "a+"'],
  [{ constrain: { type: 'object' } }, TypeError, 'constrain must be a schema (jsonSchema(...)'],
  [{ constrain: [{}] }, TypeError, 'constrain must be a schema'],
  [{ constrain: [null] }, TypeError, 'or a list of them; it is null'],
  [{ constrain: { buildConstraint: () => 7 } }, TypeError, 'it is 7'],
  [{ constrain: { '~standard': { vendor: 'tests' } } }, TypeError, 'schema must tell its JSON Schema'],
  [{ speculator: { draft() {} } }, TypeError, 'speculator must have the methods draft() and accept(tokens)'],
  [{ systemSpeculation: 1 }, TypeError, 'systemSpeculation must be true or false, not 1'],
  [{ logitMask: 'any' }, TypeError, 'logitMask must be a list of run lengths'],
  [{ logitMask: [-1] }, InferletError, 'logitMask[0] is -1'],
  [{ logitMask: new Set([5, 6]) }, TypeError, 'logitMask must be a mask: a list of run lengths, not an object of type Set; brle.allowing(tokens, length)'],
  [{ logitMask: new Map([[5, 6]]) }, TypeError, 'logitMask must be a mask: a list of run lengths, not an object of type Map'],
  [{ adapter: 'kept' }, TypeError, 'adapter must be an Adapter'],
  [{ zoSeed: 0.5 }, InferletError, 'zoSeed is 0.5'],
  [{ horizon: -1 }, InferletError, 'horizon is -1; it is how many tokens the text is thought to become'],
];

for (const [options, kind, words] of REFUSED) {
  test(`[JS-051..057] refused before a generator is made: ${JSON.stringify(options)}`, () => {
    assert.throws(() => generate(options), (error) => {
      assert.ok(error instanceof kind, String(error));
      assert.equal(error.code, 'invalid-argument');
      assert.ok(error.message.includes(words), error.message);
      return true;
    });
    assert.deepEqual(namesOf(host.calls), ['contextCreate']);
  });
}

test('[JS-067 JS-077 JS-099] handles of every step and of one step find their slots', async () => {
  const generator = generate();
  const each = generator.probeEachStep(0, Entropy());
  const { value: first } = await generator.next();
  const own = first.probe(0, Logits());
  const executed = first.execute();
  const slots = [{ type: 'tokens', value: ids(5) }, { type: 'entropy', value: 0.5 }, { type: 'logits', value: new Uint8Array(4) }];
  host.waits[0].settle(undefined, answer([5], { slots }));
  const out = await executed;
  assert.deepEqual([out.token(out.autoSampler), out.entropy(each), out.logits(own).length], [5, 0.5, 4]);
  assert.deepEqual(host.calls.slice(2, 5), [
    ['generator.probeEachStep', 0, { type: 'entropy' }],
    ['generator.nextStep'],
    ['generator.probe', 0, { type: 'logits' }],
  ]);
  host.steps.next += 1;
  const later = await step(generator, [6], { slots: [{ type: 'tokens', value: ids(6) }, { type: 'entropy', value: 0.25 }] });
  assert.deepEqual([later.entropy(each), later.logits(own), later.token(out.autoSampler)], [0.25, undefined, undefined]);
  assert.equal(later.token(later.autoSampler), 6);
});

test('[JS-067 JS-077] a handle of a step stays with its slot where a probe of every step comes after it', async () => {
  const generator = generate();
  const { value } = await generator.next();
  const own = value.probe(0, Logits());
  const each = generator.probeEachStep(0, Entropy());
  const executed = value.execute();
  const slots = [{ type: 'tokens', value: ids(5) }, { type: 'entropy', value: 0.5 }, { type: 'logits', value: new Uint8Array(4) }];
  host.waits[0].settle(undefined, answer([5], { slots }));
  const out = await executed;
  assert.deepEqual([out.entropy(each), out.logits(own)?.length, out.token(out.autoSampler)], [0.5, 4, 5]);
});

test('[JS-099] the sampler of a step without probes has its tokens', async () => {
  const out = await step(generate(), [5, 6]);
  assert.deepEqual([out.token(out.autoSampler), [...out.tokensAt(out.autoSampler)]], [5, [5, 6]]);
});

test('[JS-076 JS-079 JS-099] a step without a sampler, and the tokens of the program', async () => {
  const generator = generate();
  const each = generator.probeEachStep(0, Entropy());
  const { value } = await generator.next();
  const own = value.clearSampler().probe(0, Logits());
  const executed = value.execute();
  host.waits[0].settle(undefined, answer([], { slots: [{ type: 'entropy', value: 2 }, { type: 'logits', value: new Uint8Array(8) }] }));
  const out = await executed;
  assert.deepEqual([out.autoSampler, out.entropy(each), out.logits(own).length], [undefined, 2, 8]);
  host.steps.kept = 1;
  assert.deepEqual(generator.accept([9, 8]), ids(9));
  assert.deepEqual(host.calls.at(-1), ['generator.accept', ids(9, 8)]);
});

test('[JS-079 JS-124 JS-143] constraints and speculators see the tokens that were kept', async () => {
  const [c, spec] = [constraint(), speculator()];
  const generator = generate({ constrain: c, speculator: spec });
  await step(generator, [1]);
  await step(generator, [2, 3]);
  host.steps.kept = 2;
  generator.accept([7, 8, 9]);
  await step(generator, [4]);
  assert.deepEqual(c.seen, [[], [1], [7, 8]]);
  assert.deepEqual(spec.told, [['reset'], ['accept', [1]], ['accept', [2, 3]], ['reset'], ['accept', [1, 7, 8]], ['accept', [4]]]);
});

test('[JS-077..078] a step that is opened again keeps its probes, its mask and its drafts', async () => {
  const [c, spec] = [constraint([1], [2]), speculator([[5], [9]])];
  const generator = generate({ constrain: c, speculator: spec });
  const { value } = await generator.next();
  value.probe(0, Entropy());
  assert.equal(await Promise.race([value.execute(), Promise.resolve('timer')]), 'timer');
  assert.equal((await generator.next()).value, value);
  await step(generator, [7]);
  assert.deepEqual(c.seen, [[]]);
  assert.equal(namesOf(host.calls).filter((name) => name === 'generator.draft').length, 1);
  assert.deepEqual(host.calls.filter(([name]) => name === 'generator.giveMask').map(([, mask]) => [...mask]), [[1], [1]]);
});

test('[JS-051 JS-070] collectors run step by step where the program has a part', async () => {
  const c = constraint();
  const tokens = generate({ constrain: c }).collectTokens();
  await answerAll([1], [2, 3], [4]);
  assert.deepEqual(await tokens, ids(1, 2, 3, 4));
  assert.deepEqual(c.seen, [[], [1], [2, 3]]);
  assert.ok(!namesOf(host.calls).includes('generator.collectTokens'));
});

const FILLING = {
  append: (ctx) => ctx.append([5]),
  appendText: (ctx) => ctx.appendText('no'),
  user: (ctx) => ctx.user('Say no.'),
  cue: (ctx) => ctx.cue(),
  seal: (ctx) => ctx.seal(),
  equip: (ctx) => ctx.equip([]),
  answer: (ctx) => ctx.answer('clock', 5),
};
const isBusy = (error) => error instanceof InferletError && error.code === 'context-busy' && error.message.includes('while a collector runs that asks the program; go step by step');
/** What was filled into contexts. */
const filled = () => namesOf(host.calls).filter((name) => ['fill', 'cue', 'seal', 'equip', 'answer', 'context.append', 'context.appendText'].includes(name));

for (const [name, fill] of Object.entries(FILLING)) {
  test(`[JS-070..071] while a collector runs that asks the program, ctx.${name} is refused`, async () => {
    for (const how of ['collectTokens', 'collectText']) {
      const ctx = new Context(model);
      const constrain = { step: () => void fill(ctx) };
      await assert.rejects(ctx.generate(Sampler.argmax(), { constrain })[how](), isBusy);
      assert.deepEqual(filled(), []);
    }
    // Another task of the program is refused too, until the collector has ended or was given up.
    const ctx = new Context(model);
    const c = constraint();
    const tokens = ctx.generate(Sampler.argmax(), { constrain: c }).collectTokens();
    assert.throws(() => fill(ctx), isBusy);
    assert.equal(await Promise.race([tokens, Promise.resolve('timer')]), 'timer');
    fill(ctx);
    assert.equal(filled().length, 1);
    const collected = tokens.then((all) => [...all]);
    assert.throws(() => fill(ctx), isBusy);
    await answerAll([1], [2]);
    assert.deepEqual(await collected, [1, 2]);
    fill(ctx);
    assert.equal(filled().length, 2);
  });
}

test('[JS-070..071] a collector that begins while the last step of another one is on its way keeps its context', async () => {
  const ctx = new Context(model);
  const collect = () => ctx.generate(Sampler.argmax(), { constrain: constraint() }).collectTokens();
  const first = collect();
  host.waits[0].settle(undefined, answer([1]));
  const second = collect();
  host.steps.next = undefined;
  assert.deepEqual(await first, ids(1));
  assert.throws(() => ctx.append([5]), isBusy);
  host.waits[1].settle(undefined, answer([2]));
  assert.deepEqual(await second, ids(2));
  ctx.append([5]);
  assert.deepEqual(filled(), ['context.append']);
});

test('[JS-070] a context that was released says so while a collector runs', async () => {
  const ctx = new Context(model);
  const tokens = ctx.generate(Sampler.argmax(), { constrain: constraint() }).collectTokens();
  host.lengths.push(() => { throw host.engineError('context-released', 'the context was released'); });
  assert.throws(() => ctx.append([5]), (error) => error.code === 'context-released');
  await answerAll([1]);
  assert.deepEqual(await tokens, ids(1));
});

test('[JS-078] what is filled in while a step of the program runs is for the next one', async () => {
  const ctx = new Context(model);
  const g = ctx.generate(Sampler.argmax(), { constrain: { step: () => void ctx.append([5]) } });
  await step(g, [1]);
  assert.deepEqual(filled(), ['context.append']);
});

test('[JS-071] the text of a collector is what the decoder shows of all tokens', async () => {
  host.events.push({ type: 'delta', value: 'so ' }, { type: 'delta', value: 'be it' }, { type: 'done', value: 'so be it' });
  const text = generate({ speculator: speculator() }).collectText();
  await answerAll([1], [2]);
  assert.equal(await text, 'so be it');
  assert.deepEqual(host.calls.find(([name]) => name === 'decoder.feedOutput')[1], ids(1, 2));
});

test('[JS-070] an error of a step is that of its collector', async () => {
  const tokens = generate({ constrain: constraint() }).collectTokens();
  host.waits[0].settle(host.engineError('late-mask', 'too late'), undefined);
  await assert.rejects(tokens, (error) => error.code === 'late-mask');
  const own = new Error('no way on');
  await assert.rejects(generate({ constrain: { step() { throw own; } } }).collectTokens(), (error) => error === own);
});

test('[JS-070] a collector that lost its race ends its step, and goes on when it is asked again', async () => {
  const c = constraint();
  const tokens = generate({ constrain: c }).collectTokens();
  assert.equal(await Promise.race([tokens, Promise.resolve('timer')]), 'timer');
  assert.equal(host.waits.length, 1);
  assert.deepEqual([host.waits[0].interested, host.waits[0].lost], [0, true]);
  await soon();
  assert.equal(host.waits.length, 1);
  const collected = tokens.then((all) => [...all]);
  assert.equal(host.waits.length, 2);
  await answerAll([1], [2]);
  assert.deepEqual(await collected, [1, 2]);
  assert.deepEqual(c.seen, [[], [1]]);
});

test('[JS-070] a collector goes on where one of those that wait for it loses its race', async () => {
  const c = constraint();
  const tokens = generate({ constrain: c }).collectTokens();
  const collected = tokens.then((all) => [...all]);
  assert.equal(await Promise.race([tokens, Promise.resolve('timer')]), 'timer');
  assert.deepEqual([host.waits.length, host.waits[0].interested], [1, 1]);
  await answerAll([1], [2]);
  assert.deepEqual(await collected, [1, 2]);
  assert.equal(host.waits.filter((wait) => wait.lost).length, 0);
});
