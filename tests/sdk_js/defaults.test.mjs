// What the calls of the SDK do where an argument is left out: every default, stated a second time.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { Context, Model, Sampler, brle, tools } from '../../js/inferlet/dist/index.js';

beforeEach(() => host.reset());

const SAMPLERS = [
  [Sampler.argmax(), { temperature: 0, draws: 1 }],
  [Sampler.topP(), { temperature: 0.6, topP: 0.95, draws: 1 }],
  [Sampler.topP(0.3), { temperature: 0.3, topP: 0.95, draws: 1 }],
  [Sampler.topK(), { temperature: 0.6, topK: 50, draws: 1 }],
  [Sampler.topK(0.3), { temperature: 0.3, topK: 50, draws: 1 }],
  [Sampler.minP(), { temperature: 0.6, minP: 0.1, draws: 1 }],
  [Sampler.minP(0.3), { temperature: 0.3, minP: 0.1, draws: 1 }],
  [Sampler.topKTopP(), { temperature: 0.6, topK: 50, topP: 0.95, draws: 1 }],
  [Sampler.topKTopP(0.3, 7), { temperature: 0.3, topK: 7, topP: 0.95, draws: 1 }],
  [Sampler.multinomial(), { temperature: 1, draws: 1 }],
  [Sampler.multinomial(0.3), { temperature: 0.3, draws: 1 }],
];

/** What reached the engine, without fields that are undefined. */
const given = (record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));

for (const [sampler, expected] of SAMPLERS) {
  test(`[JS-102..107] the sampler ${JSON.stringify(expected)}`, () => {
    new Context(Model.load('tiny')).generate(sampler);
    const [, record] = host.calls.find(([name]) => name === 'generatorCreate');
    assert.deepEqual(given(record), expected);
  });
}

test('a number that alone is given to topK is told of once', () => {
  const told = () => host.calls.filter(([name]) => name === 'write').map(([, , text]) => text);
  for (const meant of [[], [1], [2.5], [2, 40], [2, undefined], [2, 40, {}]]) Sampler.topK(...meant);
  assert.deepEqual(told(), []);
  Sampler.topK(40);
  Sampler.topK(40);
  assert.equal(told().length, 1);
  assert.match(told()[0], /^warning: \S+:\d+: Sampler\.topK\(40\) is a temperature of 40; write Sampler\.topK\(1, 40\)\n$/);
});

test('[JS-046 JS-058] a generator without options', () => {
  const context = new Context(Model.load('tiny'));
  context.generate(Sampler.argmax());
  context.generate(Sampler.argmax(), {});
  const made = host.calls.filter(([name]) => name === 'generatorCreate').map(([, , options]) => given(options));
  assert.equal(made.length, 2);
  for (const { stop, stopTexts, logitMask, ...options } of made) {
    assert.deepEqual(options, { autoFlush: true, ignoreEos: false, drafting: { type: 'none' } });
    assert.deepEqual([[...stop], stopTexts, [...logitMask]], [[], [], []]);
  }
});

test('[JS-084] a window without sinks', () => {
  brle.window(0, 3, 2);
  assert.deepEqual(host.calls, [['window', 0, 3, 2, 0]]);
});

test('ignoreEos without a value', () => {
  const generator = new Context(Model.load('tiny')).generate(Sampler.argmax());
  generator.ignoreEos();
  generator.ignoreEos(false);
  const values = host.calls.filter(([name]) => name === 'generator.ignoreEos').map(([, value]) => value);
  assert.deepEqual(values, [true, false]);
});

test('[JS-179] a native grammar asks for a call', () => {
  const model = Model.load('tiny');
  const tool = '{"name": "now"}';
  assert.equal(tools.nativeMatcher(model, [tool]), undefined);
  tools.nativeGrammar(model, [tool], 'auto');
  tools.nativeGrammar(model, [tool], { name: 'now' });
  const choices = host.calls.filter(([name]) => name === 'nativeGrammar').map(([, , choice]) => choice);
  assert.deepEqual(choices, [{ type: 'required' }, { type: 'auto' }, { type: 'named', value: 'now' }]);
});

// A parameter with a default that no test above knows has to be stated here.
const STATED = {
  // Stated in the tests of adapters.
  'adapter.ts': ['options = {}'],
  // Tested where what has no end is.
  'arguments.ts': ['length = MAX_ROW', 'length = MAX_ROW'],
  // What the Web's own have (tests/sdk_js/test_js_globals.py).
  'blob.ts': ['end = this.size', "endings = 'transparent' }: BlobOptions = {}", 'options = {}', 'parts = []', 'start = 0', "type = ''", "type = ''"],
  'brle.ts': ['sinks = 0'],
  'chat.ts': ['options = {}'],
  // The options of `generate`, and those of `ask` with its sampler (tests/sdk_js/waiting.test.mjs).
  'context.ts': ['options = {}', 'options = {}', 'sampler = Sampler.argmax()'],
  'errors.ts': ['details = {}'],
  // Stated in the tests of requests.
  'fetch.ts': ['init = {}'],
  'generator.ts': ['ignore = true', 'options = {}', 'proposer = true', 'rebid = true'],
  // Stated in the tests of programs that serve.
  'http-server.ts': ["data = ''", 'init = {}'],
  // Stated in the tests of requests.
  'request.ts': ['ResponseInit = {}', 'body = null', 'init = {}', 'init = {}', 'status = 200', 'status = 302', "statusText = ''"],
  // Stated in the tests of children.
  'runtime.ts': ['options = {}'],
  'sampler.ts': [
    'draws = 1', 'k = 50', 'k = 50', 'options = {}', 'options = {}', 'options = {}', 'options = {}', 'options = {}',
    'p = 0.1', 'p = 0.95', 'p = 0.95', 'temperature = 0.6', 'temperature = 0.6', 'temperature = 0.6', 'temperature = 0.6',
    'temperature = 1',
  ],
  // Stated in the tests of requests.
  'streams.ts': ['source = {}'],
  'tools.ts': ["choice = 'required'", "choice = 'required'"],
  // What the Web's own has (tests/sdk_js/test_js_globals.py).
  'url.ts': ["init = ''"],
};

test('[JS-102..107] no default is left out', () => {
  const folder = new URL('../../js/inferlet/src/', import.meta.url);
  const found = {};
  for (const file of readdirSync(folder).filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))) {
    for (const line of readFileSync(new URL(file, folder), 'utf8').split('\n')) {
      const head = /^ {2}(?!\s)(?:static |async )*[a-zA-Z]\w*\((.*)\)(?:: [^=]*)? \{$/.exec(line) ?? /^export (?:async )?function \w+\((.*)\)(?:: [^=]*)? \{$/.exec(line);
      const parameters = (head?.[1] ?? '').matchAll(/(\w+)(?:: (?:[^=,<]|<[^=]*>)*)? = ([^,]+)/g);
      const defaults = [...parameters].map(([, name, value]) => `${name} = ${value}`);
      if (defaults.length > 0) found[file] = [...(found[file] ?? []), ...defaults].sort();
    }
  }
  assert.deepEqual(found, STATED);
});
