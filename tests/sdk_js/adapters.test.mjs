// Adapters: what reaches the engine, and what is refused before.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import * as host from './host.mjs';
import { foundNothing, namesThereAre, noteNothingFound } from '../../js/inferlet/dist/absent.js';
import { Adapter, Context, InferletError, Model, Sampler } from '../../js/inferlet/dist/index.js';

const model = Model.load('tiny');

beforeEach(() => host.reset());

test('[JS-148..152] adapters are made, copied, saved, loaded and changed', () => {
  const adapter = Adapter.create(model, 'mine');
  assert.deepEqual(host.calls.splice(0), [['adapterCreate', 'mine'], ['shape', 8, 16]]);
  Adapter.create(model, 'wide', { rank: 64, alpha: 0.5 });
  assert.deepEqual(host.calls.splice(0).at(-1), ['shape', 64, 0.5]);
  for (const [given, message] of [
    [4, 'the options of Adapter.create() must be an object, not 4'],
    [null, 'the options of Adapter.create() must be an object, not null'],
    [{ Rank: 4 }, "Adapter.create() has no option 'Rank'; did you mean 'rank'?"],
  ]) {
    assert.throws(() => Adapter.create(model, 'wrong', given), { code: 'invalid-argument', message });
  }
  assert.deepEqual(host.calls, []);
  assert.equal(Adapter.open(model, 'absent'), undefined);
  assert.ok(Adapter.open(model, 'kept') instanceof Adapter);
  assert.deepEqual(Adapter.names(model), ['kept']);
  host.calls.length = 0;
  const fork = adapter.fork('theirs');
  fork.save('folder');
  fork.load('/scratch/folder');
  fork.change([{ seed: -3, factor: 0.5 }, { seed: 2n ** 63n - 1n, factor: -1 }]);
  fork.change([], 0.25);
  for (const given of [{ seed: 1, factor: 0.5 }, 'ab', undefined]) {
    assert.throws(() => fork.change(given, 1), { code: 'invalid-argument', message: /^changes must be a list of \{ seed, factor \}, not / });
  }
  assert.deepEqual(host.calls, [
    ['adapter.fork', 'theirs'],
    ['adapter.save', 'folder'],
    ['adapter.load', '/scratch/folder'],
    ['adapter.change', [{ seed: -3n, factor: 0.5 }, { seed: 2n ** 63n - 1n, factor: -1 }], undefined],
    ['adapter.change', [], 0.25],
  ]);
});

test('[JS-153..154] destroying asks the engine, which answers later calls, and disposing does not', () => {
  const adapter = Adapter.create(model, 'mine');
  adapter.destroy();
  assert.deepEqual(host.calls.at(-1), ['adapter.destroy']);
  adapter.save('folder');
  assert.deepEqual(host.calls.at(-1), ['adapter.save', 'folder']);
  const kept = Adapter.create(model, 'kept');
  kept[Symbol.dispose]();
  const names = host.calls.map(([name]) => name);
  assert.equal(names.filter((name) => name === 'adapter.destroy').length, 1);
  assert.throws(() => kept.save('folder'), (error) => error instanceof InferletError && error.code === 'invalid-argument');
});

test('what open found nothing of is kept, and told where the option of that name is undefined', () => {
  const ctx = new Context(model);
  assert.equal(Adapter.open(model, 'absent'), undefined);
  assert.equal(Context.open(model, 'absent'), undefined);
  assert.ok(foundNothing.includes('Adapter.open(model, "absent")'));
  assert.ok(foundNothing.includes('Context.open(model, "absent")'));
  ctx.generate(Sampler.argmax());
  const told = () => host.calls.filter(([name]) => name === 'write');
  assert.deepEqual(told(), []);
  ctx.generate(Sampler.argmax(), { adapter: undefined });
  ctx.generate(Sampler.argmax(), { adapter: undefined });
  assert.equal(told().length, 1);
  assert.match(told()[0][2], /^warning: `Adapter\.open\(model, "absent"\)` found nothing of that name/);
  assert.match(told()[0][2], /before it is used\. The adapters of this user are "kept"\n$/);
  noteNothingFound('Context.open', 'nots', () => ['b', 'notes']);
  assert.equal(namesThereAre('Context.open(model, "nots")'), '; did you mean "notes"? The snapshots of this user are "b", "notes"');
  noteNothingFound('Context.open', 'nots', () => []);
  assert.equal(
    namesThereAre('Context.open(model, "nots")'),
    '. This user has no snapshots of this model; those of an engine that has ended, as of an earlier `pie run`, are kept where snapshots.durability = "disk"',
  );
  // The last eight are kept, each once, and as much of a name as tells which it is.
  for (const n of [1, 2, 3, 4, 5, 6, 7, 8, 9, 5]) noteNothingFound('Context.open', `absent${n}`, () => []);
  assert.deepEqual(foundNothing, [2, 3, 4, 6, 7, 8, 9, 5].map((n) => `Context.open(model, "absent${n}")`));
  noteNothingFound('Adapter.open', 'x'.repeat(1e6), () => []);
  assert.ok(foundNothing.at(-1).length < 100);
});

for (const [call, kind] of [
  [(adapter) => adapter.fork(3), TypeError],
  [(adapter) => adapter.save(), TypeError],
  [(adapter) => adapter.load('\ud800'), InferletError],
  [(adapter) => adapter.change([{ seed: 0.5, factor: 1 }]), InferletError],
  [(adapter) => adapter.change([{ seed: 1, factor: '1' }]), TypeError],
  [() => Adapter.create(model, 'x', { rank: -1 }), InferletError],
  [() => Adapter.create(model, 'x', { alpha: '8' }), TypeError],
]) {
  test(`refused before it reaches the engine: ${call}`, () => {
    const adapter = Adapter.create(model, 'mine');
    host.calls.length = 0;
    assert.throws(() => call(adapter), kind);
    assert.deepEqual(host.calls, []);
  });
}
