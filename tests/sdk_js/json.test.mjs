// JSON as the SDK writes it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as sdk from '../../js/inferlet/dist/index.js';
import { refuseInJson, toJson } from '../../js/inferlet/dist/json.js';

class Step {}
refuseInJson(Step, 'execute it');

class Mine extends Step {}
class Point {
  x = 1;
}
class Failure extends TypeError {}
class Told extends Error {
  toJSON() {
    return { told: this.message };
  }
}
const without = (name, value) => Object.defineProperty({}, name, { value, configurable: true });
const unreadable = Object.assign(new Error('lost'), { toString: () => { throw new Error('unreadable'); } });

const write = (value) => toJson(value, 'the answer', 'invalid-output');

const WRITTEN = [
  [undefined, 'null'],
  [{ b: 1, a: [true, null, 'é'] }, '{"b":1,"a":[true,null,"é"]}'],
  [new Uint32Array([1, 2]), '[1,2]'],
  [{ tokens: new Uint32Array([3]) }, '{"tokens":[3]}'],
  [new Date(0), '"1970-01-01T00:00:00.000Z"'],
  [{ a: undefined }, '{}'],
  [[new String('é'), new Number(1), new Boolean(false)], '["é",1,false]'],
  [{ '\ud83e\udd8a': '\\ud800' }, '{"\ud83e\udd8a":"\\\\ud800"}'],
  [new Point(), '{"x":1}'],
  [[Object.create(null)], '[{}]'],
  [new Told('why'), '{"told":"why"}'],
  [[{ toJSON: () => undefined }], '[null]'],
  [without(Symbol.toPrimitive, () => 1), '{}'],
  [{ [Symbol('kept')]: 1, a: 2 }, '{"a":2}'],
  [{ a: null }, '{"a":null}'],
];

for (const [value, text] of WRITTEN) {
  test(`[JS-004 JS-177] written: ${text}`, () => assert.equal(write(value), text));
}

/** A value with so many lists around it. */
const nested = (nLevels, inner) => (nLevels === 0 ? inner : [nested(nLevels - 1, inner)]);

test('values nest as deep as clients can hold', () => {
  for (const inner of [1, '["\\'.repeat(2000), [], {}]) {
    assert.deepEqual(JSON.parse(write(nested(500, inner))), nested(500, inner));
    assert.throws(() => write(nested(501, inner)), /^InferletError: the answer is nested more than 500 deep, which JSON cannot hold; give it flatter$/);
  }
  assert.equal(write(Array(2000).fill([1])).length, 8001);
});

const cycle = {};
cycle.self = cycle;

const REFUSED = [
  [NaN, 'the answer is NaN'],
  [{ a: { scores: [1, -Infinity] } }, "at the key '1', is -Infinity"],
  [10n, 'the BigInt 10'],
  [[() => 1], 'the function (without a name)'],
  [{ f: write }, 'the function write'],
  [Symbol('s'), 'the symbol s'],
  [new Map(), 'a Map'],
  [[new Set()], 'a Set'],
  [[Promise.resolve()], 'a Promise'],
  [{ text: Promise.resolve() }, "at the key 'text', is a Promise that nothing awaited, which JSON cannot hold; write `await` before"],
  [new Step(), 'an object of type Step, which JSON cannot hold; execute it'],
  [new Mine(), 'an object of type Mine, which JSON cannot hold; execute it'],
  [new Error('no piano'), 'is the error `Error: no piano`, which JSON cannot hold; write `error.message` or `String(error)`'],
  [[{ error: new Failure('no piano') }], "at the key 'error', is the error `TypeError: no piano`, which"],
  [{ reason: new sdk.InferletError('empty-context', 'nothing') }, "at the key 'reason', is the error `InferletError: nothing`"],
  [new Error('x'.repeat(300)), `\`Error: ${'x'.repeat(193)}…\``],
  [unreadable, 'is the error `Error`, which'],
  [(function* () { yield 1; })(), 'is a generator, which JSON cannot hold; collect what it yields: `[...values]`'],
  [(async function* () { yield 1; })(), 'is an async generator, which JSON cannot hold; collect what it yields: `for await ('],
  [{ values: [1].values() }, "at the key 'values', is an iterator"],
  [/x/, 'a RegExp, which JSON cannot hold; write `String(pattern)`'],
  [new ArrayBuffer(1), 'an ArrayBuffer, which JSON cannot hold; write `new Uint8Array(buffer)`'],
  [new DataView(new ArrayBuffer(1)), 'a DataView'],
  [new WeakRef({}), 'a WeakRef'],
  [Object(1n), 'an object that holds a BigInt'],
  [Object(Symbol('s')), 'an object that holds a symbol'],
  [[{ [Symbol('s')]: 1 }], "at the key '0', is an object whose keys are symbols"],
  [new Date(NaN), 'an invalid Date'],
  [{ at: new Date('never') }, "at the key 'at', is an invalid Date"],
  [{ toJSON: () => undefined }, 'an object whose toJSON gives undefined'],
  [{ toJSON: async () => 1 }, 'a Promise that nothing awaited'],
  [new WeakMap(), 'a WeakMap'],
  [{ set: new WeakSet() }, "at the key 'set', is a WeakSet"],
  [cycle, 'a cycle'],
  ['x\ud800', 'the answer is text with a lone surrogate'],
  [{ a: ['\udfff'] }, "at the key '0', is text with a lone surrogate"],
  [new String('x\ud800'), 'the answer is text with a lone surrogate'],
  [{ b: new String('\udfff') }, "at the key 'b', is text with a lone surrogate"],
  [{ '\udfff': 1 }, 'a value whose key holds a lone surrogate'],
];

for (const [value, words] of REFUSED) {
  test(`[JS-004 JS-177] refused: ${words}`, () => {
    assert.throws(() => write(value), (error) => error.code === 'invalid-output' && error.message.includes(words));
  });
}

test('no object of the SDK is written', () => {
  const exported = [sdk, ...Object.values(sdk).filter((value) => Object.prototype.toString.call(value) === '[object Module]')];
  const isClass = (value) => typeof value === 'function' && Function.prototype.toString.call(value).startsWith('class');
  const classes = exported.flatMap((names) => Object.values(names)).filter(isClass);
  assert.ok(classes.includes(sdk.Model) && classes.includes(sdk.chat.Decoder));
  for (const kind of classes) {
    assert.throws(() => write([Object.create(kind.prototype)]), { code: 'invalid-output', message: /which JSON cannot hold/ }, kind.name);
  }
});
