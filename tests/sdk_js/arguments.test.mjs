// What the calls of the SDK accept, and how they refuse the rest.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { Context, InferletError, Model, Sampler, messaging, runtime, session, tools } from '../../js/inferlet/dist/index.js';

beforeEach(() => host.reset());

const model = Model.load('tiny');
const fresh = () => new Context(model);

/** The call throws an error of that class and code, whose message has those words. */
function refuses(call, kind, code, words) {
  assert.throws(call, (error) => {
    assert.ok(error instanceof kind, `${error} is not a ${kind.name}`);
    assert.equal(error.code, code);
    assert.ok(error.message.includes(words), error.message);
    return true;
  });
}

const CASES = [
  ['[JS-046] an unknown option', () => fresh().generate(Sampler.argmax(), { maxToken: 3 }), TypeError, 'invalid-argument', "generate() has no option 'maxToken'; did you mean 'maxTokens'?"],
  ['an option as Python writes it', () => fresh().generate(Sampler.argmax(), { max_tokens: 3 }), TypeError, 'invalid-argument', "no option 'max_tokens'; did you mean 'maxTokens'?"],
  ['an option that is like none', () => fresh().generate(Sampler.argmax(), { riddle: 3 }), TypeError, 'invalid-argument', "no option 'riddle'; its options are maxTokens, stop, seed, autoFlush, ignoreEos"],
  ['[JS-103] an option of the sampler that is none', () => Sampler.topP(0.6, 0.95, { sed: 1 }), TypeError, 'invalid-argument', "no option 'sed'"],
  ['[JS-046] options that are none', () => fresh().generate(Sampler.argmax(), 64), TypeError, 'invalid-argument', 'must be an object, not 64'],
  ['options of a question in place of the sampler', () => fresh().ask('q', { maxTokens: 5 }), TypeError, 'invalid-argument', 'ask() takes its options (maxTokens) behind the sampler: ctx.ask(text, Sampler.argmax(), {'],
  ['a misspelt option of a question in that place', () => fresh().ask('q', { maxToken: 5 }), TypeError, 'invalid-argument', "ask() has no option 'maxToken'; did you mean 'maxTokens'?"],
  ['a misspelt option of a question', () => fresh().ask('q', Sampler.argmax(), { maxToken: 5 }), TypeError, 'invalid-argument', "ask() has no option 'maxToken'; did you mean 'maxTokens'?"],
  ['a question with what is no sampler', () => fresh().ask('q', 5), TypeError, 'invalid-argument', 'sampler must be a Sampler, such as Sampler.argmax(), not 5'],
  ['a question with null for a sampler', () => fresh().ask('q', null), TypeError, 'invalid-argument', 'sampler must be a Sampler, such as Sampler.argmax(), not null'],
  ['a loop over texts that does not wait', () => [...fresh().generate(Sampler.argmax()).texts()], TypeError, 'invalid-argument', 'write `for await (const text of g.texts())`'],
  ['a loop over steps that does not wait', () => [...fresh().generate(Sampler.argmax())], TypeError, 'invalid-argument', 'write `for await (const step of g)`'],
  ['a function for a sampler', () => fresh().generate((ids, ps) => ids[0]), TypeError, 'invalid-argument', 'takes its place by clearSampler and accept'],
  ['a sampler that was not called', () => fresh().generate(Sampler.argmax), TypeError, 'invalid-argument', 'the function argmax; write `()` behind the name'],
  ['[JS-046] what is no sampler', () => fresh().generate({ kind: 'argmax' }), TypeError, 'invalid-argument', 'sampler must be a Sampler'],
  ['[JS-024] what is no model', () => new Context('tiny'), TypeError, 'invalid-argument', 'model must be a Model, not "tiny"'],
  ['[JS-049] a negative cap', () => fresh().generate(Sampler.argmax(), { maxTokens: -1 }), InferletError, 'invalid-argument', 'maxTokens is -1; pass a whole number from 0 to 4294967295'],
  ['[JS-049] a cap of 33 bits', () => fresh().generate(Sampler.argmax(), { maxTokens: 2 ** 32 }), InferletError, 'invalid-argument', 'maxTokens is 4294967296'],
  ['[JS-049] half a token', () => fresh().generate(Sampler.argmax(), { maxTokens: 1.5 }), InferletError, 'invalid-argument', 'maxTokens is 1.5'],
  ['[JS-049] a cap in words', () => fresh().generate(Sampler.argmax(), { maxTokens: '3' }), TypeError, 'invalid-argument', 'maxTokens must be a number, not "3"'],
  ['[JS-049] a long text for a cap', () => fresh().generate(Sampler.argmax(), { maxTokens: 'x'.repeat(41) }), TypeError, 'invalid-argument', `not "${'x'.repeat(40)}…"`],
  ['[JS-049] a bigint for a cap', () => fresh().generate(Sampler.argmax(), { maxTokens: 3n }), TypeError, 'invalid-argument', 'maxTokens must be a number, not 3n'],
  ['[JS-058] a flag that is none', () => fresh().generate(Sampler.argmax(), { autoFlush: 1 }), TypeError, 'invalid-argument', 'autoFlush must be true or false, not 1'],
  ['a negative seed', () => fresh().generate(Sampler.argmax(), { seed: -1 }), InferletError, 'invalid-argument', 'seed is -1'],
  ['an inexact seed', () => fresh().generate(Sampler.argmax(), { seed: 2 ** 53 }), InferletError, 'invalid-argument', 'bigint'],
  ['a seed of 65 bits', () => fresh().generate(Sampler.argmax(), { seed: 2n ** 64n }), InferletError, 'invalid-argument', 'seed is 18446744073709551616'],
  ['[JS-104] half a candidate', () => fresh().generate(Sampler.topK(1, 1.5)), InferletError, 'invalid-sampler', 'k of the sampler is 1.5'],
  ['[JS-107] half a draw', () => fresh().generate(Sampler.multinomial(1, 1.5)), InferletError, 'invalid-sampler', 'draws of the sampler is 1.5'],
  ['[JS-103] a temperature in words', () => fresh().generate(Sampler.topP('hot')), TypeError, 'invalid-argument', 'temperature of the sampler must be a number'],
  ['[JS-104] too many candidates', () => fresh().generate(Sampler.topK(1, 2 ** 32)), InferletError, 'invalid-sampler', 'k of the sampler is 4294967296'],
  ['[JS-103] a part in words', () => fresh().generate(Sampler.topP(1, 'most')), TypeError, 'invalid-argument', 'p of the sampler must be a number'],
  ['[JS-037] a negative token', () => fresh().append([1, -2]), InferletError, 'invalid-token', 'tokens[1] is -2'],
  ['[JS-037] a text where tokens belong', () => fresh().append('ab'), TypeError, 'invalid-argument', 'tokens must be a list of token ids'],
  ['[JS-037] tokens in words', () => fresh().append(['1']), TypeError, 'invalid-argument', 'tokens[0] must be a token id, not "1"'],
  ['[JS-033] a number where text belongs', () => fresh().user(3), TypeError, 'invalid-argument', 'text must be a string, not 3'],
  ['[JS-033] half a character', () => fresh().user('a\u{1f98a}\ud800b'), InferletError, 'invalid-argument', 'text holds a lone surrogate, as its character 2'],
  ['two messages at once', () => session.send('a', 'b'), TypeError, 'invalid-argument', 'session.send() takes 1 argument and was given 2, of which the rest would be lost; call it once for each'],
  ['undefined behind a message', () => session.send('a', undefined), TypeError, 'invalid-argument', 'session.send() takes 1 argument and was given 2'],
  ['a send that is called for each of a list', () => ['a'].forEach(session.send), TypeError, 'invalid-argument', '`forEach` as `(value) => session.send(value)`'],
  ['two messages beside the output', () => session.message('a', 'b'), TypeError, 'invalid-argument', 'session.message() takes 1 argument and was given 2'],
  ['two files', () => session.sendFile(new Uint8Array(), 'name'), TypeError, 'invalid-argument', 'session.sendFile() takes 1 argument and was given 2'],
  ['two texts of the user', () => fresh().user('hi', 'there'), TypeError, 'invalid-argument', 'ctx.user() takes 1 argument and was given 2'],
  ['two texts of the system', () => fresh().system('hi', 'there'), TypeError, 'invalid-argument', 'ctx.system() takes 1 argument and was given 2'],
  ['two texts of the assistant', () => fresh().assistant('hi', 'there'), TypeError, 'invalid-argument', 'ctx.assistant() takes 1 argument and was given 2'],
  ['two raw texts', () => fresh().appendText('hi', 'there'), TypeError, 'invalid-argument', 'ctx.appendText() takes 1 argument and was given 2'],
  ['tokens as arguments', () => fresh().append(1, 2), TypeError, 'invalid-argument', 'ctx.append() takes 1 argument and was given 2'],
  ['two answers of a tool', () => fresh().answer('price', 5, 'id', 6), TypeError, 'invalid-argument', 'ctx.answer() takes 3 arguments and was given 4'],
  ['a tool without an answer', () => fresh().answer('price', undefined), TypeError, 'invalid-argument', 'the answer of the tool is undefined; write `return`'],
  ['the tokens of a tool without an answer', () => tools.answerPrefix(model, 'price'), TypeError, 'invalid-argument', 'the answer of the tool is undefined'],
  ['two messages to a topic', () => messaging.push('jobs', 'a', 'b'), TypeError, 'invalid-argument', 'messaging.push() takes 2 arguments and was given 3, of which the rest would be lost; call it once for each, and give it to `forEach` as `(value) => messaging.push(..., value)`'],
  ['undefined pushed to a topic', () => messaging.push('jobs', undefined), TypeError, 'invalid-argument', 'the message is undefined; give null for nothing'],
  ['no message to a topic', () => messaging.push('jobs'), TypeError, 'invalid-argument', 'the message is undefined'],
  ['two messages to everybody', () => messaging.broadcast('news', 'a', 'b'), TypeError, 'invalid-argument', 'messaging.broadcast() takes 2 arguments and was given 3'],
  ['undefined to everybody', () => messaging.broadcast('news', undefined), TypeError, 'invalid-argument', 'the message is undefined'],
  ['undefined as a message', () => session.send(undefined), TypeError, 'invalid-argument', 'the message is undefined; send null for nothing'],
  ['a promise as a message', () => session.send(Promise.resolve(1)), InferletError, 'invalid-argument', 'a Promise that nothing awaited'],
  ['a generator as a message', () => session.send(fresh().generate(Sampler.argmax())), InferletError, 'invalid-argument', 'await g.collectText()'],
  ['a generator in a text', () => `${fresh().generate(Sampler.argmax())}`, TypeError, 'invalid-argument', 'a generator is not a text; run it and await'],
  ['a context as a message', () => session.send(fresh()), InferletError, 'invalid-argument', 'an object of type Context'],
  ['a context in a text', () => `${fresh()}`, TypeError, 'invalid-argument', 'a context is not a text; await what the model says in it: await ctx.ask(question)'],
  ['a stream in a text', () => `${fresh().generate(Sampler.argmax()).texts()}`, TypeError, 'invalid-argument', 'a stream of texts is not a text; write `for await'],
  ['a stream as a message', () => session.send(fresh().generate(Sampler.argmax()).texts()), InferletError, 'invalid-argument', 'an object of type TextStream'],
  ['a subscription in a text', () => `${messaging.subscribe('news')}`, TypeError, 'invalid-argument', 'a subscription is not a text; wait for its next message'],
  ['a child in a text', () => `${runtime.spawn('.')}`, TypeError, 'invalid-argument', 'a child is not a text; await it for what it returned'],
  ['an error as a message', () => session.send({ error: new Error('no piano') }), InferletError, 'invalid-argument', "at the key 'error', is the error `Error: no piano`"],
  ['an error as the answer of a tool', () => fresh().answer('price', new Error('no piano')), InferletError, 'invalid-argument', 'write `error.message` or `String(error)`'],
  ['an error pushed to a topic', () => messaging.push('jobs', [new Error('no piano')]), InferletError, 'invalid-argument', 'is the error `Error: no piano`'],
  ['a message with half a character', () => session.send('\udfff'), InferletError, 'invalid-argument', 'message holds a lone surrogate'],
  ['a negative length', () => fresh().truncate(-1), InferletError, 'invalid-argument', 'n is -1'],
  ['[JS-029] a snapshot without a name', () => fresh().save(), TypeError, 'invalid-argument', 'name must be a string, not undefined'],
  ['[JS-025] a snapshot of what is no model', () => Context.open('tiny', 'kept'), TypeError, 'invalid-argument', 'model must be a Model, not "tiny"'],
  ['[JS-014] a model without a name', () => Model.load(), TypeError, 'invalid-argument', 'name must be a string, not undefined'],
  ['[JS-014] a model that is not loaded', () => Model.load('absent'), InferletError, 'unknown-model', "no model 'absent'"],
  ['a file that is no bytes', () => session.sendFile('text'), TypeError, 'invalid-argument', 'the file must be a Uint8Array, not "text"'],
  ['a message beside the output that is no text', () => session.message(5), TypeError, 'invalid-argument', 'text must be a string, not 5'],
  ['a message that is no JSON', () => session.send({ score: NaN }), InferletError, 'invalid-argument', "at the key 'score', is NaN"],
];

test('[JS-025..026 JS-040] a snapshot becomes a context of its model, and none becomes undefined', () => {
  const opened = Context.open(model, 'kept');
  assert.ok(opened instanceof Context);
  assert.equal(opened.model, model);
  assert.ok(Context.take(model, 'kept') instanceof Context);
  assert.equal(Context.open(model, 'absent'), undefined);
  assert.equal(Context.take(model, 'absent'), undefined);
  assert.deepEqual(host.calls.map(([name]) => name), ['contextOpen', 'contextTake', 'contextOpen', 'contextTake']);
  assert.deepEqual(host.calls.map(([, name]) => name), ['kept', 'kept', 'absent', 'absent']);
});

test('a question that is refused adds no message', () => {
  const ctx = fresh();
  host.calls.length = 0;
  refuses(() => ctx.ask('q', { maxTokens: 5 }), TypeError, 'invalid-argument', 'behind the sampler');
  refuses(() => ctx.ask('q', Sampler.argmax(), { maxToken: 5 }), TypeError, 'invalid-argument', 'no option');
  assert.deepEqual(host.calls, []);
});

test('what is refused for too many arguments changes nothing', () => {
  const ctx = fresh();
  host.calls.length = 0;
  for (const call of [() => ctx.user('hi', 'there'), () => session.send('a', 'b'), () => messaging.push('jobs', 'a', 'b')]) {
    assert.throws(call, { code: 'invalid-argument' });
  }
  assert.deepEqual(host.calls, []);
});

test('null is sent, pushed and answered', () => {
  const ctx = fresh();
  host.calls.length = 0;
  session.send(null);
  messaging.push('jobs', null);
  messaging.broadcast('news', null);
  ctx.answer('price', null, undefined);
  assert.deepEqual(host.calls.map((call) => call.filter((part) => typeof part === 'string')), [
    ['sendJson', 'null'], ['push', 'jobs', 'null'], ['broadcast', 'news', 'null'], ['answer', 'price', 'null'],
  ]);
});

for (const [name, call, kind, code, words] of CASES) {
  test(`${name} is refused`, () => refuses(call, kind, code, words));
}

test('[JS-049..050 JS-058 JS-106] options reach the engine as they were given', () => {
  fresh().generate(Sampler.topKTopP(0.5, 40, 0.9, { seed: 0 }), { maxTokens: 0, stop: new Set([5, 6]), seed: 2n ** 64n - 1n, autoFlush: false, ignoreEos: true });
  const [, sampler, options] = host.calls.at(-1);
  assert.deepEqual(sampler, { temperature: 0.5, topK: 40, topP: 0.9, minP: undefined, draws: 1, seed: 0n });
  const given = { maxTokens: 0, stop: new Uint32Array([5, 6]), stopTexts: [], seed: 2n ** 64n - 1n, autoFlush: false, ignoreEos: true };
  assert.deepEqual(options, { ...given, logitMask: new Uint32Array(), drafting: { type: 'none' } });
});

test('[JS-050 JS-061..062] stop texts go beside stop tokens, in any iterable', () => {
  const stopsOf = (stop) => {
    host.reset();
    const g = fresh().generate(Sampler.argmax(), { stop });
    const [, , options] = host.calls.find(([name]) => name === 'generatorCreate');
    return [g, [...options.stop], options.stopTexts];
  };
  assert.deepEqual(stopsOf('\n').slice(1), [[], ['\n']]);
  assert.deepEqual(stopsOf(['END', 7]).slice(1), [[7], ['END']]);
  assert.deepEqual(stopsOf(['a', 'b'].values()).slice(1), [[], ['a', 'b']]);
  assert.deepEqual(stopsOf([7]).slice(1), [[7], []]);
  const [g] = stopsOf(undefined);
  host.calls.length = 0;
  g.stop('\n').stop([]).addStop(['x', 5]).addStop([6]);
  const none = new Uint32Array();
  assert.deepEqual(host.calls, [
    ['generator.setStopTexts', ['\n']], ['generator.setStop', none],
    ['generator.setStopTexts', []], ['generator.setStop', none],
    ['generator.addStopTexts', ['x']], ['generator.addStop', new Uint32Array([5])],
    ['generator.addStop', new Uint32Array([6])],
  ]);
  refuses(() => g.stop(5), TypeError, 'invalid-argument', 'stop must be a text, or a list of token ids and texts, not 5');
  refuses(() => g.stop(['a', 1.5]), InferletError, 'invalid-token', 'the token ids of stop[0] is 1.5');
  refuses(() => g.addStop(['ok', '\ud800']), InferletError, 'invalid-argument', 'stop[1] holds a lone surrogate');
});

test('a name of another language says what it is called here', async () => {
  refuses(() => Sampler.top_p(0.6), TypeError, 'invalid-argument', 'Sampler has no top_p(); in JavaScript and TypeScript it is Sampler.topP()');
  refuses(() => Sampler.top_k_top_p(), TypeError, 'invalid-argument', 'Sampler.topKTopP()');
  const { value: step } = await fresh().generate(Sampler.argmax()).next();
  refuses(() => step.tokens, TypeError, 'invalid-argument', 'const out = await step.execute(), and then out.tokens');
});

test('[JS-102..107] a sampler is what restricts the tokens', () => {
  const all = { topK: undefined, topP: undefined, minP: undefined, draws: 1, seed: undefined };
  // What stands where nothing is given is in `defaults.test.mjs`.
  const records = [
    [Sampler.topP(0.7, 0.5), { ...all, temperature: 0.7, topP: 0.5 }],
    [Sampler.topK(0.7, 5), { ...all, temperature: 0.7, topK: 5 }],
    [Sampler.minP(0.7, 0.5), { ...all, temperature: 0.7, minP: 0.5 }],
    [Sampler.topKTopP(0.7, 5, 0.5), { ...all, temperature: 0.7, topK: 5, topP: 0.5 }],
    [Sampler.multinomial(0.9, 3, { seed: 5 }), { ...all, temperature: 0.9, draws: 3, seed: 5n }],
  ];
  for (const [sampler, record] of records) {
    fresh().generate(sampler);
    assert.deepEqual(host.calls.at(-1)[1], record);
  }
});

test('[JS-032..038] fill-ins chain', () => {
  const ctx = fresh();
  assert.equal(ctx.system('s').user('u').assistant('a').cue().seal().append([1]).appendText('t'), ctx);
  assert.deepEqual(host.calls.slice(1), [
    ['fill', 'system', 's'],
    ['fill', 'user', 'u'],
    ['fill', 'assistant', 'a'],
    ['cue'],
    ['seal'],
    ['context.append', new Uint32Array([1])],
    ['context.appendText', 't'],
  ]);
});

test('[JS-045] a context has no operations on its pages', () => {
  assert.deepEqual(Object.getOwnPropertyNames(Context.prototype).filter((name) => /page/i.test(name)), ['pageSize']);
});

test('details of an error are its values', () => {
  assert.throws(() => Model.load('absent'), (error) => error.details.name === 'absent' && error.name === 'InferletError');
});
