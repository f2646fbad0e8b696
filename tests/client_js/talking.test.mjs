// Requests and their answers, events and their readers.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { WINDOW_BYTES, collected, connected, launched, refused } from './fake.mjs';

const PROGRAM = (name, version, digest) => ({ name, version, digest, bytes: 1, installed: 0.5 });

test('a client says who it is and learns who it is taken for', async () => {
  const { client, peer } = await connected({ user: 'ada' });
  assert.deepEqual([client.user, client.role, client.server, client.instance, client.isDraining], ['ada', 'user', 'fake/1', 'i', false]);
  peer.tell({ type: 'draining' });
  assert.equal(client.isDraining, true);
  const pinging = client.ping();
  peer.answer(await peer.expect('ping'));
  await pinging;
});

test('a launch keeps all digits, and its events come in order up to the last', async () => {
  const { client, peer } = await connected();
  const input = { n: 2n ** 64n - 1n, list: [1.5, null, true, 'ü', 1n], left: undefined };
  const options = { input, seed: 2n ** 64n - 1n, tokenBudget: 7, credits: 2.5, args: ['--x', ''], limits: { cpu_s: 0.5, wall_s: null }, programs: { b: 'b@1' } };
  const launching = client.launch('p@1', options);
  const launch = await peer.expect('launch');
  assert.ok(launch.raw.includes('"input":{"n":18446744073709551615,"list":[1.5,null,true,"ü",1]}'), launch.raw);
  assert.ok(launch.raw.includes('"seed":18446744073709551615,"token_budget":7,"credits":2.5'), launch.raw);
  const { args, limits, programs, attach, detached } = launch;
  assert.deepEqual({ args, limits, programs, attach, detached }, { ...{ args: options.args, limits: options.limits }, programs: { b: 'b@1' }, attach: true, detached: false });
  peer.tell(`{"id":${launch.id},"ok":{"pid":5,"launch_seed":18446744073709551615}}`);
  const process = await launching;
  assert.deepEqual([process.pid, process.launchSeed], [5, 2n ** 64n - 1n]);
  peer.event(5, 'stdout', { text: 'printed' });
  peer.event(5, 'stdout', { text: 'sent', form: 'text' });
  peer.event(5, 'stdout', { text: '{"n":1}', form: 'json' });
  peer.event(5, 'stderr', { text: 'e' });
  peer.event(5, 'message', { text: 'm' });
  peer.event(5, 'notice', { text: 'n' });
  peer.event(5, 'file', { data: Uint8Array.of(0, 255) });
  peer.event(5, 'return', { value: '{"a":[1.5,null]}' });
  const events = await collected(process);
  assert.deepEqual(events.map(({ type, text, data, value, form, seq }) => [seq, type, text ?? [...data], form ?? null, value ?? null]), [
    [1, 'stdout', 'printed', null, 'printed'],
    [2, 'stdout', 'sent', 'text', 'sent'],
    [3, 'stdout', '{"n":1}', 'json', { n: 1 }],
    [4, 'stderr', 'e', null, null],
    [5, 'message', 'm', null, null],
    [6, 'notice', 'n', null, null],
    [7, 'file', [0, 255], null, null],
    [8, 'return', '{"a":[1.5,null]}', null, { a: [1.5, null] }],
  ]);
  assert.deepEqual(await process.result(), { a: [1.5, null] });
  assert.deepEqual(await collected(process), []);
  await peer.acked(5, 8);
});

test('a result and what is sent keep all digits of whole numbers', async () => {
  const { peer, process } = await launched();
  const texts = [
    ['18446744073709551615', 2n ** 64n - 1n],
    ['9007199254740991', 2 ** 53 - 1],
    ['9007199254740992', 2n ** 53n],
    ['[-9007199254740993,1e300,1.2345678901234567890]', [-(2n ** 53n) - 1n, 1e300, 1.2345678901234567]],
    ['{"12345678901234567890":"12345678901234567890","a" : [{"b":12345678901234567890}],"n1":"n1"}', { '12345678901234567890': '12345678901234567890', a: [{ b: 12345678901234567890n }], n1: 'n1' }],
    ['["\\\\","\\\\\\"12345678901234567890","\\u006e",12345678901234567890,""]', ['\\', '\\"12345678901234567890', 'n', 12345678901234567890n, '']],
  ];
  for (const [text] of texts) peer.event(5, 'stdout', { text, form: 'json' });
  peer.event(5, 'return', { value: '{"n":18446744073709551615}' });
  const events = await collected(process);
  assert.deepEqual(events.slice(0, -1).map(({ value }) => value), texts.map(([, value]) => value));
  assert.deepEqual(events.at(-1).value, { n: 2n ** 64n - 1n });
  assert.deepEqual(await process.result(), { n: 2n ** 64n - 1n });
});

test('what cannot be held as a value is an error of the reader, and stays a text', async () => {
  const { peer, process } = await launched();
  peer.event(5, 'stdout', { text: '{', form: 'json' });
  peer.event(5, 'stdout', { text: `[${'9'.repeat(4300)}]`, form: 'json' });
  peer.event(5, 'stdout', { text: `[${'9'.repeat(4301)}]`, form: 'json' });
  peer.event(5, 'return', { value: 'null' });
  const [sent, long, longer] = await collected(process);
  assert.deepEqual(long.value, [10n ** 4300n - 1n]);
  assert.throws(() => longer.value, { code: 'invalid-argument', message: /4301 digits; 4300 are read at most.*read the text of the event/ });
  assert.throws(() => sent.value, { code: 'invalid-argument', message: /the value that the program sent cannot be held by JavaScript/ });
  assert.equal(sent.text, '{');
});

test('a program that fails is an error with its code and its parts', async () => {
  const { peer, process } = await launched();
  peer.event(5, 'error', { code: null, message: "'x'", error_kind: 'KeyError', traceback: 'main.py, line 1' });
  const error = await refused(process.result());
  assert.deepEqual([error.name, error.code, error.message], ['PieError', 'program-error', "KeyError: 'x'"]);
  assert.deepEqual(error.details, { kind: 'KeyError', message: "'x'", traceback: 'main.py, line 1', pid: 5 });
});

test('a result passes over what nobody reads, and leaves a loop its events', async () => {
  const { peer, process } = await launched();
  peer.event(5, 'stdout', { text: 'passed over' });
  const looping = process.events();
  const result = process.result();
  await peer.acked(5, 1);
  const first = looping.next();
  peer.event(5, 'stdout', { text: 'read' });
  assert.equal((await first).value.text, 'read');
  peer.event(5, 'stdout', { text: 'left to the loop' });
  peer.event(5, 'return', { value: '3' });
  assert.equal((await looping.next()).value.text, 'left to the loop');
  await looping.return();
  assert.equal(await result, 3);
});

test('a result comes where an iterator is held and nobody waits in it, which keeps its events', async () => {
  const { peer, process } = await launched();
  const held = process.events()[Symbol.asyncIterator]();
  peer.event(5, 'stdout', { text: 'one' });
  assert.equal((await held.next()).value.text, 'one');
  const result = process.result();
  peer.event(5, 'stdout', { text: 'two' });
  peer.event(5, 'return', { value: '3' });
  assert.equal(await result, 3);
  assert.equal(await process.result(), 3);
  assert.equal((await held.next()).value.text, 'two');
  assert.equal((await held.next()).value.value, 3);
  assert.equal((await held.next()).done, true);
});

test('a result has the server send on beyond the window for an iterator that is held, up to a bound', async () => {
  const { peer, process } = await launched();
  const held = process.events();
  peer.event(5, 'stdout', { text: 'one' });
  await held.next();
  const result = process.result();
  const sent = { text: 'x'.repeat(WINDOW_BYTES) };
  let last;
  for (let n = 0; n < 16; n += 1) {
    last = peer.event(5, 'stdout', sent);
    await peer.acked(5, last);
  }
  peer.event(5, 'stdout', sent);
  peer.event(5, 'stdout', sent);
  assert.equal((await held.next()).value.seq, 2);
  assert.equal(peer.acks.get(5), last);
  peer.event(5, 'return', { value: '3' });
  assert.equal(await result, 3);
  const seqs = [];
  for await (const { seq } of held) seqs.push(seq);
  assert.deepEqual(seqs, Array.from({ length: 18 }, (_, n) => n + 3));
  await peer.acked(5, 20);
});

test('a result fails beside an iterator that is held as the connection breaks', async () => {
  const { peer, process } = await launched();
  const held = process.events();
  peer.event(5, 'stdout', { text: 'one' });
  await held.next();
  const result = process.result();
  peer.event(5, 'stdout', { text: 'two' });
  peer.close(1001, 'the server ends');
  assert.equal((await refused(result)).code, 'connection-failed');
  assert.equal((await held.next()).value.text, 'two');
});

test('of two loops over the events the first gets all of them, and the second an error', async () => {
  const { peer, process } = await launched();
  for (let n = 0; n < 6; n += 1) peer.event(5, 'stdout', { text: String(n) });
  peer.event(5, 'return', { value: 'null' });
  const [first, second] = [collected(process), refused(collected(process))];
  const error = await second;
  assert.equal(error.code, 'future-taken');
  assert.match(error.message, /^the events of process 5 are read already, by another loop, which gets all of them; read them in one place$/);
  assert.equal((await first).length, 7);
  assert.deepEqual(await collected(process), []);
});

test('while an iterator waits there is no other one, and an iterator that waits gives way to an older one', async () => {
  const { peer, process } = await launched();
  const [older, younger] = [process.events(), process.events()];
  const waiting = younger.next();
  assert.throws(() => process.events(), { code: 'future-taken' });
  const next = older.next();
  assert.equal((await refused(waiting)).code, 'future-taken');
  peer.event(5, 'stdout', { text: 'of the older' });
  assert.equal((await next).value.text, 'of the older');
});

test('a loop that reads beside one that is busy with an event is told when that goes on', async () => {
  const { peer, process } = await launched();
  const [first, second] = [process.events(), process.events()];
  for (const text of ['one', 'two', 'three']) peer.event(5, 'stdout', { text });
  const texts = [];
  for (const events of [first, second, first]) texts.push((await events.next()).value.text);
  assert.deepEqual(texts, ['one', 'two', 'three']);
  assert.equal((await refused(second.next())).code, 'future-taken');
});

test('an iterator inside of a loop, and one behind another, read what comes', async () => {
  const { peer, process } = await launched();
  for (const text of ['one', 'two', 'three', 'four']) peer.event(5, 'stdout', { text });
  const texts = [];
  for await (const { text } of process.events()) {
    texts.push(text, (await process.events().next()).value.text);
    if (texts.length === 4) break;
  }
  peer.event(5, 'return', { value: 'null' });
  assert.deepEqual(texts, ['one', 'two', 'three', 'four']);
  assert.equal((await collected(process)).length, 1);
});

test('events are acknowledged as they are taken: at once by the quarter of a window, else together', async () => {
  const { peer, process } = await launched();
  const events = process.events();
  for (let n = 0; n < 3; n += 1) peer.event(5, 'stdout', { text: 'x'.repeat(WINDOW_BYTES / 8) });
  await events.next();
  assert.equal(peer.acks.get(5), undefined);
  await events.next();
  await peer.acked(5, 2);
  await events.next();
  await peer.acked(5, 3);
});

test('a server that sends far beyond the window is cut off', async () => {
  const { client, peer, process } = await launched();
  for (let n = 0; n < 7; n += 1) peer.event(5, 'stdout', { text: 'x'.repeat(WINDOW_BYTES) });
  assert.equal(peer.closedWith.code, 4002);
  const error = await refused(client.ping());
  assert.equal(error.code, 'protocol-error');
  assert.match(error.message, /beyond its window of 4096 bytes/);
  const events = process.events();
  for (let n = 0; n < 5; n += 1) assert.equal((await events.next()).value.seq, n + 1);
  assert.equal((await refused(events.next())).code, 'protocol-error');
});

test('whoever attaches again passes over what is known, and detaching leaves the rest to others', async () => {
  const { client, peer } = await connected();
  const attaching = client.attach(9, { afterSeq: 2, windowBytes: 100 });
  const attach = await peer.expect('attach');
  assert.deepEqual([attach.pid, attach.window_bytes, attach.after_seq], [9, 100, 2]);
  peer.answer(attach, { pid: 9, next_seq: 1 });
  const process = await attaching;
  assert.equal(process.launchSeed, null);
  await peer.acked(9, 2);
  for (const text of ['one', 'two', 'three', 'four']) peer.event(9, 'stdout', { text });
  const events = process.events();
  assert.equal((await events.next()).value.text, 'three');
  const detaching = process.detach();
  const request = await peer.expect('detach');
  assert.equal(peer.acks.get(9), 3, 'what was read is acknowledged before');
  peer.answer(request);
  await detaching;
  assert.equal((await refused(events.next())).code, 'session-closed');
  peer.event(9, 'stdout', { text: 'for others' });
});

test('messages, signals, files and the end of input reach the server', async () => {
  const { peer, process } = await launched();
  const calls = [
    [process.send('a'), 'send', { text: 'a' }],
    [process.signal('stop'), 'signal', { text: 'stop' }],
    [process.transferFile(Uint8Array.of(1, 2)), 'file', { payload: Uint8Array.of(1, 2) }],
    [process.closeInput(), 'close_input', {}],
    [process.terminate(), 'terminate', {}],
  ];
  for (const [call, type, fields] of calls) {
    const { raw, id, ...message } = await peer.expect(type);
    assert.deepEqual(message, { type, pid: 5, ...fields });
    peer.answer({ id });
    await call;
  }
  const refusedSend = process.send('more');
  peer.refuse(await peer.expect('send'), 'limit-queue', 'the queue is full');
  const error = await refused(refusedSend);
  assert.deepEqual([error.code, error.message, error.details], ['limit-queue', 'the queue is full', { n: 1 }]);
});

test('lists are read field by field', async () => {
  const { client, peer } = await connected();
  const process = { pid: 1, program: 'a@1', name: 'a.ts', state: 'ended', attached: false, detached: true, started: 1.5, ended: 2, cpu_s: 0.1, exit: 'return', dropped: 0, tokens: 3, user: 'bob', credits: { tiny: 2.5 }, bids: { tiny: 0 } };
  const { cpu_s: cpuS, ...same } = process;
  const topic = { topic: 't', queued: 1, queued_bytes: 2, waiting_pushes: 3, waiting_pulls: 4, subscriptions: 5 };
  const connection = { connection: 7, user: 'a', role: 'user', key: null, address: '::1', client: 'c', since: 1 };
  const cases = [
    [() => client.list({ all: true, allUsers: true }), { type: 'processes', all: true, all_users: true }, { processes: [process] }, [{ ...same, cpuS }]],
    [() => client.programs(), { type: 'programs' }, { programs: [PROGRAM('a', '1', 'd')] }, [{ ...PROGRAM('a', '1', 'd'), user: null }]],
    [() => client.snapshots(), { type: 'snapshots' }, { snapshots: [{ model: 'm', name: 'n', tokens: 4 }] }, [{ model: 'm', name: 'n', tokens: 4, user: null }]],
    [() => client.adapters(), { type: 'adapters' }, { adapters: [{ model: 'm', name: 'n', bytes: 4 }] }, [{ model: 'm', name: 'n', bytes: 4, user: null }]],
    [() => client.deleteAdapter('m', 'n', { user: 'bob' }), { type: 'delete_adapter', model: 'm', name: 'n', user: 'bob' }, {}, undefined],
    [() => client.topics(), { type: 'topics' }, { topics: [topic] }, [{ topic: 't', queued: 1, queuedBytes: 2, waitingPushes: 3, waitingPulls: 4, subscriptions: 5, user: null }]],
    [() => client.connections(), { type: 'connections' }, { connections: [connection] }, [connection]],
    [() => client.discardTopic('t', { user: 'bob' }), { type: 'discard_topic', topic: 't', user: 'bob' }, { dropped: 2 }, 2],
    [() => client.deleteSnapshot('m', 'n'), { type: 'delete_snapshot', model: 'm', name: 'n' }, {}, undefined],
    [() => client.disconnect(7), { type: 'disconnect', connection: 7 }, {}, undefined],
    [() => client.uninstall('a', '1'), { type: 'uninstall', name: 'a', version: '1' }, {}, undefined],
    [() => client.terminate(3), { type: 'terminate', pid: 3 }, {}, undefined],
    [() => client.logs(3, { tailBytes: 9, follow: true }), { type: 'logs', pid: 3, after: 0, follow: true, tail_bytes: 9 }, { text: 'l', next: 1, dropped_bytes: 0, ended: true }, { text: 'l', next: 1, droppedBytes: 0, ended: true }],
    [() => client.outcome(3), { type: 'outcome', pid: 3 }, { outcome: null }, null],
    [() => client.stats(), { type: 'stats' }, { n_live: 1 }, { n_live: 1 }],
  ];
  for (const [call, sent, ok, expected] of cases) {
    const answer = call();
    const { id, raw, ...message } = await peer.receive();
    assert.deepEqual(message, sent);
    peer.answer({ id }, ok);
    assert.deepEqual(await answer, expected);
  }
  const outcome = client.outcome(3);
  peer.answer(await peer.expect('outcome'), { outcome: { kind: 'return', value: '[1]' } });
  assert.deepEqual((await outcome).value, [1]);
});

test('a name means its highest version, and a digest says whether it is that program', async () => {
  const { client, peer } = await connected({ user: 'ada' });
  const installed = [PROGRAM('a', '1.9', 'sha256:1'), PROGRAM('a', '1.10', 'sha256:2'), PROGRAM('ab', '3', 'sha256:3')];
  const asked = async (call) => {
    peer.answer(await peer.expect('programs'), { programs: installed });
    return await call;
  };
  assert.equal(await asked(client.resolveVersion('a')), 'a@1.10');
  assert.equal(await asked(client.resolveVersion('a@1.9')), 'a@1.9');
  const error = await refused(asked(client.resolveVersion('b')));
  assert.deepEqual([error.code, error.details], ['unknown-program', { program: 'b' }]);
  assert.equal(await asked(client.checkProgram('a@1.9')), true);
  assert.equal(await asked(client.checkProgram('a', { digest: 'sha256:2' })), true);
  assert.equal(await asked(client.checkProgram('a@1.9', { digest: 'sha256:2' })), false);
  assert.equal(await asked(client.checkProgram('a@')), false);
});

test('a program is uploaded in parts that make the whole, and installed by its digest', async () => {
  const { client, peer } = await connected();
  const data = Uint8Array.from({ length: 600_000 }, (_, n) => n % 251);
  const installing = client.install(data, { name: 'p', version: '2.0', manifest: '[package]' });
  const parts = [];
  do parts.push(await peer.expect('upload'));
  while (!parts.at(-1).last);
  assert.deepEqual(parts.map(({ offset }) => offset), [0, 262_144, 524_288]);
  assert.deepEqual(Buffer.concat(parts.map(({ payload }) => payload)), Buffer.from(data));
  const digest = `sha256:${createHash('sha256').update(data).digest('hex')}`;
  assert.ok(parts.every((part) => part.digest === digest && part.bytes === data.length && part.id === parts[0].id));
  peer.answer(parts[0], { digest, bytes: data.length });
  const { id, raw, ...install } = await peer.expect('install');
  assert.deepEqual(install, { type: 'install', name: 'p', version: '2.0', digest, manifest: '[package]' });
  peer.answer({ id });
  assert.equal(await installing, 'p@2.0');
});

test('an upload has the name that it is given', async () => {
  const { client, peer } = await connected();
  const uploading = client.upload(new Uint8Array(1), { name: 'ä.ts' });
  const part = await peer.expect('upload');
  assert.equal(part.name, 'ä.ts');
  peer.answer(part);
  await uploading;
});

test('an empty program is one part, which is the last', async () => {
  const { client, peer } = await connected();
  const uploading = client.upload(new Uint8Array());
  const part = await peer.expect('upload');
  assert.deepEqual([part.offset, part.bytes, part.last], [0, 0, true]);
  peer.answer(part);
  assert.match(await uploading, /^sha256:e3b0c442/);
});
