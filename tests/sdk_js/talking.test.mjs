// What the model says and may say: decoders, tools, grammars, and documents that become values.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import {
  Context, Grammar, GrammarConstraint, InferletError, JsonCutError, Matcher, Model, Sampler,
  anyJson, chat, ebnf, grammar, jsonSchema, reasoning, regex, tools,
} from '../../js/inferlet/dist/index.js';

beforeEach(() => host.reset());

const model = Model.load('tiny');
const ids = (...values) => new Uint32Array(values);
const soon = () => new Promise((resolve) => setImmediate(resolve));
const namesOf = (calls) => calls.map(([name]) => name);

// The events of the engine, and those of the SDK.
const CALL = { name: 'f', args: '{"a":1}', id: '3' };
const DECODERS = {
  '[JS-155..161] chat': [chat.Decoder, [
    [{ type: 'delta', value: 'a' }, { type: 'delta', text: 'a' }],
    [{ type: 'done', value: 'ab' }, { type: 'done', text: 'ab' }],
    [{ type: 'interrupt', value: 7 }, { type: 'interrupt', token: 7 }],
  ]],
  '[JS-155 JS-168..172] reasoning': [reasoning.Decoder, [
    [{ type: 'start' }, { type: 'start' }],
    [{ type: 'delta', value: 'a' }, { type: 'delta', text: 'a' }],
    [{ type: 'end', value: 'ab' }, { type: 'end', text: 'ab' }],
  ]],
  '[JS-155 JS-173..175] tools': [tools.Decoder, [
    [{ type: 'start' }, { type: 'start' }],
    [{ type: 'call', value: CALL }, { type: 'call', ...CALL, arguments: CALL.args }],
    [{ type: 'malformed', value: '<x>' }, { type: 'malformed', text: '<x>' }],
  ]],
};

for (const [name, [Decoder, events]] of Object.entries(DECODERS)) {
  test(`${name} gives the events of the engine, one a feed or all of them`, () => {
    const [first, ...rest] = events.map(([, event]) => event);
    const decoder = new Decoder(model);
    host.events.push(...events.map(([event]) => event));
    assert.deepEqual(decoder.feed([1, 2]), first);
    assert.deepEqual([...decoder.events(ids(3))], rest);
    assert.deepEqual(decoder.feed([]), { type: 'idle' });
    const drained = rest.map(() => ['decoder.feed', []]);
    assert.deepEqual(host.calls, [['decoder.feed', [1, 2]], ['decoder.feed', [3]], ...drained, ['decoder.feed', []]]);
    host.calls.length = 0;
    host.events.push(...events.map(([event]) => event));
    assert.deepEqual(decoder.feedOutput({ tokens: ids(4, 5), finishReason: 'stop' }), first);
    assert.deepEqual([...decoder.events([])], rest);
    assert.deepEqual(decoder.finish(), { type: 'idle' });
    decoder.reset();
    assert.deepEqual(host.calls[0], ['decoder.feedOutput', ids(4, 5), 'stop']);
    assert.deepEqual(namesOf(host.calls).slice(-2), ['decoder.finish', 'decoder.reset']);
    assert.throws(() => new Decoder('tiny'), TypeError);
  });
}

test('[JS-156] a chat decoder hides what it is told to', () => {
  new chat.Decoder(model);
  new chat.Decoder(model, { hideThoughts: false, hideCalls: false });
  assert.deepEqual(host.calls, []);
  new chat.Decoder(model, { hideThoughts: true });
  new chat.Decoder(model, { hideCalls: true });
  assert.deepEqual(host.calls, [['decoderCreateHiding', true, false], ['decoderCreateHiding', false, true]]);
  for (const options of [{ hideThoughts: 1 }, { hideCalls: 'yes' }, { hide: true }]) {
    assert.throws(() => new chat.Decoder(model, options), (error) => error.code === 'invalid-argument');
  }
});

test('[JS-162..167] messages and markers are tokens', () => {
  for (const role of ['system', 'user', 'assistant']) assert.deepEqual(chat[role](model, role[0]), ids(1));
  assert.deepEqual(host.calls, [['messageTokens', 'system', 's'], ['messageTokens', 'user', 'u'], ['messageTokens', 'assistant', 'a']]);
  assert.deepEqual([chat.cue(model), chat.seal(model), chat.stopTokens(model)], [ids(2), ids(3), ids(4)]);
});

test('[JS-176..177] what the model is told of tools crosses as text', () => {
  const tool = { name: 'f', parameters: { type: 'object' }, run: () => 1, description: undefined };
  assert.deepEqual(tools.equipPrefix(model, [tool, '{"name": "g"}', { type: 'function', function: { name: 'h' } }]), ids(5));
  const texts = ['{"name":"f","parameters":{"type":"object"}}', '{"name": "g"}', '{"type":"function","function":{"name":"h"}}'];
  assert.deepEqual(host.calls, [['equipTokens', texts]]);
  host.calls.length = 0;
  assert.deepEqual(tools.answerPrefix(model, 'f', { a: [1, 'é'] }), ids(6));
  assert.deepEqual(tools.answerPrefix(model, 'f', 'plain', '7'), ids(6));
  assert.deepEqual(host.calls, [['answerTokens', 'f', '{"a":[1,"é"]}', undefined], ['answerTokens', 'f', 'plain', '7']]);
});

test('[JS-175] the call of a finished text', () => {
  assert.deepEqual(tools.parseCall(model, 'text'), { name: 'a', args: '{}', arguments: '{}', id: undefined });
  assert.deepEqual(host.calls, [['parseCall', 'text']]);
});

const NO_TOOLS = [
  ['a text', '{"name": "f"}', InferletError], ['one tool', { name: 'f' }, InferletError], ['nothing', undefined, InferletError],
  ['half a character', ['\ud800'], InferletError], ['a value that JSON cannot hold', [{ name: 'f', parameters: { n: NaN } }], InferletError],
];

test('[JS-176] what is no list of tools is refused', () => {
  for (const [name, given, kind] of NO_TOOLS) {
    assert.throws(() => tools.equipPrefix(model, given), (error) => error instanceof kind && error.code === 'invalid-argument', name);
  }
  assert.deepEqual(host.calls, []);
  // The engine says what is wrong with JSON of another form.
  tools.equipPrefix(model, [5, null]);
  assert.deepEqual(host.calls, [['equipTokens', ['5', 'null']]]);
});

const SCHEMA = { const: 'é' };
const SOURCES = [
  [() => Grammar.fromJsonSchema(SCHEMA), { type: 'json-schema', value: '{"const":"é"}' }],
  [() => Grammar.fromJsonSchema('{"const":"é"}'), { type: 'json-schema', value: '{"const":"é"}' }],
  [() => Grammar.fromJsonSchema(true), { type: 'json-schema', value: 'true' }],
  [() => Grammar.json(), { type: 'any-json' }],
  [() => Grammar.fromRegex('a+'), { type: 'regex', value: 'a+' }],
  [() => Grammar.fromEbnf('root ::= [0-9]'), { type: 'ebnf', value: 'root ::= [0-9]' }],
  [() => GrammarConstraint.fromJsonSchema(SCHEMA, model), { type: 'json-schema', value: '{"const":"é"}' }],
  [() => GrammarConstraint.json(model), { type: 'any-json' }],
  [() => GrammarConstraint.fromRegex('a+', model), { type: 'regex', value: 'a+' }],
  [() => GrammarConstraint.fromEbnf('root ::= [0-9]', model), { type: 'ebnf', value: 'root ::= [0-9]' }],
  [() => jsonSchema(SCHEMA).buildConstraint(model), { type: 'json-schema', value: '{"const":"é"}' }],
  [() => anyJson().buildConstraint(model), { type: 'any-json' }],
  [() => regex('a+').buildConstraint(model), { type: 'regex', value: 'a+' }],
  [() => ebnf('root ::= [0-9]').buildConstraint(model), { type: 'ebnf', value: 'root ::= [0-9]' }],
  [() => grammar(Grammar.json()).buildConstraint(model), { type: 'any-json' }],
];

test('[JS-114..121 JS-127..135] grammars, constraints and schemas are those of the engine', () => {
  for (const [make, source] of SOURCES) {
    host.reset();
    const walks = make() instanceof GrammarConstraint;
    assert.deepEqual(host.calls, [['grammarCreate', source], ...(walks ? [['grammar.matcher']] : [])]);
  }
  for (const given of [null, undefined, 5, Symbol('a')]) {
    assert.throws(() => Grammar.fromJsonSchema(given), (error) => error instanceof TypeError && error.code === 'invalid-argument');
  }
  for (const given of [{ const: Number.NaN }, { enum: [new Set([1])] }]) {
    assert.throws(() => Grammar.fromJsonSchema(given), (error) => error.code === 'invalid-argument');
  }
});

test('[JS-136..140 JS-178] a matcher walks a text of a grammar', () => {
  const matcher = new Matcher(Grammar.json(), model.tokenizer());
  host.calls.length = 0;
  matcher.acceptTokens([1, 2]);
  assert.deepEqual([matcher.nextTokenLogitMask(), matcher.forcedTokens(), matcher.isTerminated()], [ids(1, 2), ids(5), true]);
  const copy = matcher.fork();
  assert.ok(copy instanceof Matcher && copy.handle !== matcher.handle);
  matcher.reset();
  assert.deepEqual(new GrammarConstraint(matcher).step(ids(7)), ids(1, 2));
  const names = namesOf(host.calls).filter((name) => name.startsWith('matcher.')).map((name) => name.slice(8));
  assert.deepEqual(names, ['accept', 'mask', 'forced', 'isTerminated', 'fork', 'reset', 'accept', 'mask']);
  assert.deepEqual(host.calls[0], ['matcher.accept', ids(1, 2)]);
  for (const make of [() => new Matcher('g', model.tokenizer()), () => new Matcher(Grammar.json(), 't'), () => new GrammarConstraint('m')]) {
    assert.throws(make, (error) => error instanceof TypeError && error.code === 'invalid-argument');
  }
});

/** A document that the model wrote, as the collector of a generator takes it. */
async function written(options, text, finish = 'stop') {
  host.reset();
  const generator = new Context(model).generate(Sampler.argmax());
  const collected = generator.collectJson(options);
  // Whoever fails is asked at the end.
  collected.catch(() => {});
  await soon();
  host.steps.finish = finish;
  host.steps.next = undefined;
  host.waits.at(-1)?.settle(undefined, text);
  return collected;
}

const sourceOf = () => host.calls.find(([name]) => name === 'grammarCreate')[1];
const STANDARD = { validate: (value) => ({ value: [value] }), jsonSchema: { input: ({ target }) => ({ $comment: target }) } };

test('[JS-072..074] a document becomes the value that its schema makes of it', async () => {
  const callable = Object.assign(() => 0, { toJSONSchema: () => ({ const: 2 }) });
  const cases = [
    [undefined, '[1]', [1], { type: 'any-json' }],
    [{}, '1', 1, { type: 'any-json' }],
    [{ schema: '{"const": 1}' }, '1', 1, { type: 'json-schema', value: '{"const": 1}' }],
    [{ schema: { const: 1 } }, '1', 1, { type: 'json-schema', value: '{"const":1}' }],
    [{ schema: true }, '{}', {}, { type: 'json-schema', value: 'true' }],
    [{ schema: { toJSONSchema: () => ({ const: 1 }) } }, '1', 1, { type: 'json-schema', value: '{"const":1}' }],
    [{ schema: callable }, '2', 2, { type: 'json-schema', value: '{"const":2}' }],
    [{ schema: { '~standard': STANDARD } }, '3', [3], { type: 'json-schema', value: '{"$comment":"draft-2020-12"}' }],
    [{ schema: { '~standard': { jsonSchema: STANDARD.jsonSchema } } }, '3', 3, { type: 'json-schema', value: '{"$comment":"draft-2020-12"}' }],
    [{ parse: (value) => value.a + 1 }, '{"a":1}', 2, { type: 'any-json' }],
    [{ schema: { '~standard': STANDARD }, parse: async ([value]) => -value }, '3', -3, { type: 'json-schema', value: '{"$comment":"draft-2020-12"}' }],
  ];
  for (const [options, text, value, source] of cases) {
    for (const finish of ['stop', 'constraint']) {
      assert.deepEqual(await written(options, text, finish), value);
      assert.deepEqual(sourceOf(), source);
    }
  }
});

test('[JS-072] a document that failed leaves no schema, and one that was read has it once', async () => {
  host.reset();
  const generator = new Context(model).generate(Sampler.argmax());
  const failed = generator.collectJson({ schema: { const: 1 } });
  failed.catch(() => {});
  await soon();
  host.waits.at(-1).settle(new Error('the driver failed'));
  await assert.rejects(failed, /the driver failed/);
  const again = generator.collectJson({ schema: '{"const":1}' });
  await soon();
  host.steps.finish = 'constraint';
  host.waits.at(-1).settle(undefined, '1');
  assert.equal(await again, 1);
  const other = generator.collectJson({ schema: { const: 2 } });
  await soon();
  host.waits.at(-1).settle(undefined, '2');
  assert.equal(await other, 2);
  const sources = host.calls.filter(([name]) => name === 'grammarCreate').map(([, { value }]) => value);
  assert.deepEqual(sources, ['{"const":1}', '{"const":1}', '{"const":2}']);
});

test('[JS-072] a document that lost its race is given up, with its schema, and the same call begins anew', async () => {
  host.reset();
  const generator = new Context(model).generate(Sampler.argmax());
  const collect = () => generator.collectJson({ schema: { const: 1 } });
  assert.equal(await Promise.race([collect(), Promise.resolve('timer')]), 'timer');
  assert.deepEqual([host.waits.length, host.waits[0].interested, host.waits[0].lost], [1, 0, true]);
  const again = collect();
  host.steps.finish = 'constraint';
  host.waits.at(-1).settle(undefined, '1');
  assert.equal(await again, 1);
  // The schema is none of the generator's until the document is there.
  const names = namesOf(host.calls);
  assert.deepEqual(names.filter((name) => name.startsWith('generator.co')), Array(2).fill('generator.collectDocument'));
  const third = collect();
  host.waits.at(-1).settle(undefined, '1');
  assert.equal(await third, 1);
  assert.equal(namesOf(host.calls).filter((name) => name === 'generator.collectText').length, 1);
});

test('[JS-072..073] a document that is none of its schema is an error that says why', async () => {
  await assert.rejects(written({}, '{"a', 'length'), (error) =>
    error instanceof JsonCutError && error.code === 'json-cut' && error.text === '{"a' && error.message.includes('after 9 tokens'));
  const issues = [{ message: 'a is odd' }, { message: 'b is even' }];
  const schema = { '~standard': { ...STANDARD, validate: async () => ({ issues }) } };
  await assert.rejects(written({ schema }, '1'), (error) =>
    error instanceof InferletError && error.code === 'grammar-mismatch' && error.message.endsWith('a is odd; b is even'));
  await assert.rejects(written({ schema: { '~standard': { validate: (value) => value } } }, '1'), (error) =>
    error instanceof TypeError && error.code === 'invalid-argument' && error.message.includes('must tell its JSON Schema'));
  for (const schema of [5, null]) {
    await assert.rejects(written({ schema }, '1'), (error) =>
      error instanceof TypeError && error.code === 'invalid-argument' && error.message.includes(`schema is ${schema}; it must be a JSON Schema`));
  }
  await assert.rejects(written({ shema: {} }, '1'), (error) => error.code === 'invalid-argument' && error.message.includes("no option 'shema'"));
  assert.ok(!namesOf(host.calls).includes('grammarCreate'));
});
