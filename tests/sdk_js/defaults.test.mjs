// What the calls of the SDK do where an argument is left out: every default, stated a second time.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { Context, Model, Sampler } from '../../js/inferlet/dist/index.js';

beforeEach(() => host.reset());

const SAMPLERS = [
  [Sampler.argmax(), { kind: 'argmax' }],
  [Sampler.topP(), { kind: 'top-p', temperature: 0.6, p: 0.95 }],
  [Sampler.topP(0.3), { kind: 'top-p', temperature: 0.3, p: 0.95 }],
  [Sampler.topK(), { kind: 'top-k', temperature: 0.6, k: 50 }],
  [Sampler.topK(0.3), { kind: 'top-k', temperature: 0.3, k: 50 }],
  [Sampler.minP(), { kind: 'min-p', temperature: 0.6, p: 0.1 }],
  [Sampler.minP(0.3), { kind: 'min-p', temperature: 0.3, p: 0.1 }],
  [Sampler.topKTopP(), { kind: 'top-k-top-p', temperature: 0.6, k: 50, p: 0.95 }],
  [Sampler.topKTopP(0.3, 7), { kind: 'top-k-top-p', temperature: 0.3, k: 7, p: 0.95 }],
  [Sampler.multinomial(), { kind: 'multinomial', temperature: 1, draws: 1 }],
  [Sampler.multinomial(0.3), { kind: 'multinomial', temperature: 0.3, draws: 1 }],
];

/** What reached the engine, without fields that are undefined. */
const given = (record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));

for (const [sampler, expected] of SAMPLERS) {
  test(`the sampler ${JSON.stringify(expected)}`, () => {
    new Context(Model.load('tiny')).generate(sampler);
    const [, record] = host.calls.find(([name]) => name === 'newGenerator');
    assert.deepEqual(given(record), expected);
  });
}

test('a generator without options', () => {
  const context = new Context(Model.load('tiny'));
  context.generate(Sampler.argmax());
  context.generate(Sampler.argmax(), {});
  const made = host.calls.filter(([name]) => name === 'newGenerator').map(([, , options]) => given(options));
  assert.equal(made.length, 2);
  for (const { stop, ...options } of made) {
    assert.deepEqual(options, { autoFlush: true });
    assert.deepEqual([...(stop ?? [])], []);
  }
});

test('ignoreEos without a value', () => {
  const generator = new Context(Model.load('tiny')).generate(Sampler.argmax());
  generator.ignoreEos();
  generator.ignoreEos(false);
  const values = host.calls.filter(([name]) => name === 'generator.ignoreEos').map(([, value]) => value);
  assert.deepEqual(values, [true, false]);
});

// A parameter with a default that no test above knows has to be stated here.
const STATED = {
  'context.ts': ['options = {}'],
  'errors.ts': ['details = {}'],
  'generator.ts': ['ignore = true'],
  'sampler.ts': [
    'draws = 1', 'k = 50', 'k = 50', 'options = {}', 'options = {}', 'options = {}', 'options = {}', 'options = {}',
    'p = 0.1', 'p = 0.95', 'p = 0.95', 'temperature = 0.6', 'temperature = 0.6', 'temperature = 0.6', 'temperature = 0.6',
    'temperature = 1',
  ],
};

test('no default is left out', () => {
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
