// What callers give by mistake: one error that names the argument, its value and what it may be, and nothing is sent.

import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, verify } from 'node:crypto';
import { test } from 'node:test';
import { PrivateKey, connect } from '../../js/client/dist/index.js';
import { connected, launched, refused, sockets } from './fake.mjs';

let deep = 1;
for (let n = 0; n < 501; n += 1) deep = [deep];

const MISTAKES = [
  ['a negative seed', (c) => c.launch('a', { seed: -1 }), 'seed is -1; give a whole number from 0 to 18446744073709551615'],
  ['a seed of 65 bits', (c) => c.launch('a', { seed: 2n ** 64n }), 'seed is 18446744073709551616n; give'],
  ['an inexact seed', (c) => c.launch('a', { seed: 2 ** 53 }), 'as a bigint beyond 2 ** 53 - 1'],
  ['half a seed', (c) => c.launch('a', { seed: 1.5 }), 'seed is 1.5; give'],
  ['a text as a seed', (c) => c.launch('a', { seed: '7' }), 'seed is "7"; give'],
  ['a number as a program', (c) => c.launch(3), 'program is 3; give a string: NAME@VERSION, NAME, or what `upload` answered'],
  ['no program', (c) => c.launch(), 'program is undefined; give a string'],
  ['a map in the input', (c) => c.launch('a', { input: { x: new Map() } }), 'a value in input is an object (Map); give JSON'],
  ['bytes as the input', (c) => c.launch('a', { input: new Uint8Array(1) }), 'input is an object (Uint8Array); give JSON'],
  ['a function in the input', (c) => c.launch('a', { input: [() => 1] }), 'a value in input is a function; give JSON'],
  ['infinity in the input', (c) => c.launch('a', { input: [Infinity] }), 'a value in input is Infinity; give a finite number'],
  ['half a character', (c) => c.launch('a', { input: 'x\ud800' }), 'without half a character'],
  ['half a character in a key', (c) => c.launch('a', { input: { '\ud800': 1 } }), 'a key in input is'],
  ['an input that is too deep', (c) => c.launch('a', { input: deep }), 'input nests deeper than 500 levels'],
  ['one text as arguments', (c) => c.launch('a', { args: '--x' }), 'args is "--x"; give an array of strings'],
  ['a number in arguments', (c) => c.launch('a', { args: ['--n', 2] }), 'args[1] is 2; give a string'],
  ['a list of limits', (c) => c.launch('a', { limits: ['cpu_s'] }), 'limits is an array; give an object of limits'],
  ['a text as a limit', (c) => c.launch('a', { limits: { cpu_s: '5' } }), 'limits.cpu_s is "5"; give a number, or null for no limit'],
  ['no number of credits', (c) => c.launch('a', { credits: NaN }), 'credits is NaN; give a number of credits from 0 to 1000000000'],
  ['negative credits', (c) => c.launch('a', { credits: -1 }), 'credits is -1; give a number of credits'],
  ['credits of 64 bits', (c) => c.launch('a', { credits: 2 ** 63 }), 'credits is 9223372036854776000; give a number of credits'],
  ['a number as a program of a launch', (c) => c.launch('a', { programs: { b: 1 } }), 'programs.b is 1; give a string'],
  ['a text as a truth', (c) => c.launch('a', { detached: 'yes' }), 'detached is "yes"; give true or false'],
  ['no window', (c) => c.launch('a', { windowBytes: 0 }), 'windowBytes is 0; give a whole number from 1'],
  ['no process', (c) => c.attach(0), 'pid is 0; give a whole number from 1'],
  ['a name as a process', (c) => c.terminate('a'), 'pid is "a"; give a whole number'],
  ['a text as a program to send', (c) => c.upload('a'), 'program is "a"; give a Uint8Array'],
  ['a program without a name', (c) => c.install(new Uint8Array(1), {}), 'name is undefined; give a string'],
  ['a number as a name', (c) => c.resolveVersion(1), 'program is 1; give a string: NAME@VERSION, or NAME'],
  ['a text as a truth of a daemon', (c) => c.launchDaemon(new Uint8Array(1), { name: 'a', public: 'yes' }), 'public is "yes"; give true or false'],
  ['a text as an MCP server', (c) => c.registerMcpServer('a', 'x'), 'server is "x"; give an object with a `command`, or one with a method `connect`'],
  ['an MCP server that does nothing', (c) => c.registerMcpServer('a', {}), 'server is an object (Object); give an object with a `command`'],
  ['one text as arguments of a server', (c) => c.registerMcpServer('a', { command: 'x', args: '-v' }), 'server.args is "-v"; give an array of strings'],
  ['a number as a variable', (c) => c.registerMcpServer('a', { command: 'x', env: { A: 1 } }), 'server.env.A is 1; give a string'],
  ['a misspelt option', (c) => c.launch('a', { seeds: 7 }), 'launch() has no option "seeds"; did you mean seed?'],
  ['an option of Python', (c) => c.launch('a', { token_budget: 7 }), 'did you mean tokenBudget?'],
  ['an option that is like none', (c) => c.terminate(1, { riddle: 1 }), 'terminate() has no option "riddle"; its options are signal'],
  ['an option of another method', (c) => c.programs({ user: 'ada' }), 'programs() has no option "user"; its options are signal, allUsers'],
  ['a text as options', (c) => c.launch('a', 'input'), 'options is "input"; give launch() an object with any of signal, input'],
  ['a signal as options', (c) => c.stats(AbortSignal.timeout(1)), 'options is an object (AbortSignal); give stats() an object with any of signal'],
  ['a misspelt option of an installation', (c) => c.install(new Uint8Array(1), { name: 'a', versoin: '1' }), 'did you mean version?'],
  ['a misspelt option of a daemon', (c) => c.launchDaemon(new Uint8Array(1), { name: 'a', pubilc: true }), 'did you mean public?'],
  ['a misspelt option of a message', (_, p) => p.send('x', { signl: null }), 'send() has no option "signl"; did you mean signal?'],
  ['a number as a message', (_, p) => p.send(1), 'text is 1; give a string'],
  ['a text as a file', (_, p) => p.transferFile('x'), 'data is "x"; give a Uint8Array'],
];

for (const [title, call, message] of MISTAKES) {
  test(`a mistake: ${title}`, async () => {
    const { client, peer, process } = await launched();
    const error = await refused(call(client, process));
    assert.equal(error.code, 'invalid-argument');
    assert.ok(error.message.includes(message), error.message);
    assert.equal(peer.nUnread, 0);
  });
}

// An input of one object again and again is no cycle, and one of exactly the depth is taken.
test('what JSON can hold is sent as it is', async () => {
  const { client, peer } = await connected();
  const shared = { a: 1 };
  for (const [input, text] of [
    [[shared, shared], '[{"a":1},{"a":1}]'],
    [undefined, 'null'],
    [Object.create(null), '{}'],
    [-0, '0'],
    ['\u2028"', '"\u2028\\""'],
  ]) {
    const launching = client.launch('p', { input });
    const launch = await peer.expect('launch');
    assert.ok(launch.raw.includes(`"input":${text},`), launch.raw);
    peer.answer(launch, { pid: 5, launch_seed: 1 });
    await launching;
  }
});

const BODY = `pie_${'0'.repeat(12)}_${'a'.repeat(64)}`;
const KEY = BODY + createHash('sha256').update(BODY).digest('hex').slice(0, 8);

test('a key is sent whole, and a damaged one is refused without being shown', async () => {
  let hello;
  const webSocket = sockets(async (peer, socket) => {
    socket.onopen({});
    hello = await peer.expect('hello');
    peer.close();
  });
  await refused(connect('ws://fake:1', { webSocket, key: ` ${KEY}\n` }));
  assert.equal(hello.key, KEY);
  for (const key of [KEY.slice(0, -1), `${KEY.slice(0, -1)}x`, '', 5]) {
    const error = await refused(connect('ws://fake:1', { webSocket, key }));
    assert.equal(error.code, 'invalid-argument');
    assert.ok(!error.message.includes(BODY));
  }
});

test('a host and a port are an address', async () => {
  let called;
  const webSocket = class {
    constructor(address) {
      called = address;
      throw new Error('enough');
    }
  };
  for (const address of ['fake:1', '[::1]:8080', 'fake:1/at']) {
    await refused(connect(address, { webSocket }));
    assert.equal(called, `ws://${address}`);
  }
});

const CONNECTING = [
  ['an address of another kind', 'http://fake:1', {}, 'connection-failed', 'write it as ws://HOST:PORT'],
  ['no address', 'fake', {}, 'connection-failed', 'write it as ws://HOST:PORT'],
  ['a number as an address', 5, {}, 'invalid-argument', 'address is 5'],
  ['a number as a user', 'ws://fake:1', { user: 5 }, 'invalid-argument', 'user is 5'],
  ['no time', 'ws://fake:1', { timeoutS: 0 }, 'invalid-argument', 'timeoutS is 0'],
  ['no end of time', 'ws://fake:1', { timeoutS: Infinity }, 'invalid-argument', 'timeoutS is Infinity; give a number of seconds above 0, and up to'],
  ['more time than a timer has', 'ws://fake:1', { timeoutS: 2 ** 31 }, 'invalid-argument', 'timeoutS is 2147483648'],
  ['a text as a class', 'ws://fake:1', { webSocket: 'ws' }, 'invalid-argument', 'webSocket is "ws"; give a class'],
  ['a text as a private key', 'ws://fake:1', { user: 'a', privateKey: 'x' }, 'invalid-argument', 'PrivateKey.parse'],
];

for (const [title, address, options, code, message] of CONNECTING) {
  test(`a mistake in connecting: ${title}`, async () => {
    const error = await refused(connect(address, { webSocket: sockets(() => assert.fail('it was opened')), ...options }));
    assert.equal(error.code, code);
    assert.ok(error.message.includes(message), error.message);
  });
}

test('a socket that the platform does not make is told', async () => {
  const webSocket = class {
    constructor() {
      throw new SyntaxError('it has a fragment');
    }
  };
  const error = await refused(connect('ws://fake:1/#a', { webSocket }));
  assert.equal(error.code, 'connection-failed');
  assert.match(error.message, /the platform refuses it \(SyntaxError: it has a fragment\)/);
});

test('a window may be a bigint', async () => {
  const { peer, process } = await launched({ launch: { windowBytes: 4096n } });
  peer.event(5, 'return', { value: '1' });
  assert.equal(await process.result(), 1);
});

const KINDS = [
  ['ed25519', generateKeyPairSync('ed25519'), null],
  ['P-256', generateKeyPairSync('ec', { namedCurve: 'P-256' }), 'sha256'],
  ['P-384', generateKeyPairSync('ec', { namedCurve: 'P-384' }), 'sha384'],
  ['RSA', generateKeyPairSync('rsa', { modulusLength: 2048 }), 'sha256'],
];

/** Signs in by a private key at a server that challenges; returns the hello and the signature. */
async function signIn(privateKey) {
  const said = {};
  const webSocket = sockets(async (peer, socket) => {
    socket.onopen({});
    said.hello = await peer.expect('hello');
    peer.tell({ type: 'challenge', nonce: 'bm9uY2U=' });
    said.proof = await peer.expect('proof');
    peer.tell({ type: 'error', error: { code: 'authentication-failed', message: 'no' } });
  });
  const error = await refused(connect('ws://fake:8080/', { webSocket, user: 'ada', privateKey }));
  assert.equal(error.code, 'authentication-failed');
  return said;
}

for (const [kind, { privateKey, publicKey }, hash] of KINDS) {
  test(`a challenge is signed by a key of the kind ${kind}`, async () => {
    const key = await PrivateKey.parse(privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const { hello, proof } = await signIn(key);
    assert.deepEqual([hello.user, hello.public_key], ['ada', key.publicLine]);
    const message = Buffer.from('pie hello 1\nfake:8080\nada\nbm9uY2U=\n');
    assert.ok(verify(hash, message, publicKey, Buffer.from(proof.signature, 'base64')));
    assert.equal(key.publicLine, sshLine(publicKey));
  });
}

test('a key in the format of OpenSSH is that key', async () => {
  const { privateKey, publicKey } = KINDS[0][1];
  const key = await PrivateKey.parse(opensshOf(privateKey));
  assert.equal(key.publicLine, sshLine(publicKey));
  const { proof } = await signIn(key);
  assert.ok(verify(null, Buffer.from('pie hello 1\nfake:8080\nada\nbm9uY2U=\n'), publicKey, Buffer.from(proof.signature, 'base64')));
});

for (const text of ['', 'x', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----', pem('OPENSSH PRIVATE KEY', Buffer.from('openssh-key-v1\0'))]) {
  test(`no private key: ${JSON.stringify(text.slice(0, 30))}`, async () => {
    const error = await refused(PrivateKey.parse(text));
    assert.deepEqual([error.code, error.details], ['invalid-argument', { argument: 'privateKey' }]);
  });
}

test('the public half of a key is told as one', async () => {
  const { publicKey } = KINDS[0][1];
  for (const text of [`${sshLine(publicKey)} me@home\n`, publicKey.export({ type: 'spki', format: 'pem' })]) {
    const error = await refused(PrivateKey.parse(text));
    assert.equal(error.code, 'invalid-argument');
    assert.match(error.message, /^this is the public half of a key, .*; give the private half, which lies in the file without \.pub$/);
  }
});

/** The line of OpenSSH of a public key, from its JWK. */
function sshLine(publicKey) {
  const jwk = publicKey.export({ format: 'jwk' });
  const part = (name) => Buffer.from(jwk[name], 'base64url');
  const positive = (bytes) => (bytes[0] < 0x80 ? bytes : Buffer.concat([Buffer.of(0), bytes]));
  const line = (kind, ...parts) => `${kind} ${Buffer.concat([Buffer.from(kind), ...parts].flatMap(withLength)).toString('base64')}`;
  if (jwk.kty === 'OKP') return line('ssh-ed25519', part('x'));
  if (jwk.kty === 'RSA') return line('ssh-rsa', positive(part('e')), positive(part('n')));
  const curve = jwk.crv === 'P-256' ? 'nistp256' : 'nistp384';
  return line(`ecdsa-sha2-${curve}`, Buffer.from(curve), Buffer.concat([Buffer.of(4), part('x'), part('y')]));
}

/** A key as `ssh-keygen` writes it without a passphrase. */
function opensshOf(privateKey) {
  const jwk = privateKey.export({ format: 'jwk' });
  const [seed, point] = [Buffer.from(jwk.d, 'base64url'), Buffer.from(jwk.x, 'base64url')];
  const kind = Buffer.from('ssh-ed25519');
  const check = Buffer.of(1, 2, 3, 4);
  const inner = [check, check, ...[kind, point, Buffer.concat([seed, point]), Buffer.from('a comment')].flatMap(withLength), Buffer.of(1, 2, 3)];
  const none = Buffer.from('none');
  const outer = [
    Buffer.from('openssh-key-v1\0'),
    ...[none, none, Buffer.alloc(0)].flatMap(withLength),
    Buffer.of(0, 0, 0, 1),
    ...[Buffer.concat([kind, point].flatMap(withLength)), Buffer.concat(inner)].flatMap(withLength),
  ];
  return pem('OPENSSH PRIVATE KEY', Buffer.concat(outer));
}

function withLength(bytes) {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return [length, bytes];
}

function pem(label, bytes) {
  return `-----BEGIN ${label}-----\n${bytes.toString('base64')}\n-----END ${label}-----\n`;
}

/** What each method is called with in front of its options. */
const BEFORE_OPTIONS = {
  adapters: [], attach: [1], checkProgram: ['a'], connections: [], deleteAdapter: ['m', 'a'], deleteSnapshot: ['m', 'a'],
  disconnect: [1], discardTopic: ['a'],
  install: [new Uint8Array(1)], launch: ['a'], launchDaemon: [new Uint8Array(1)], list: [], logs: [1], outcome: [1], ping: [],
  programs: [], registerMcpServer: ['a', { connect: () => null }], resolveVersion: ['a'], snapshots: [], stats: [], terminate: [1],
  topics: [], uninstall: ['a', '1'], unregisterMcpServer: ['a'], upload: [new Uint8Array(1)],
};
const OF_A_PROCESS = { closeInput: [], detach: [], result: [], send: ['x'], signal: ['x'], terminate: [], transferFile: [new Uint8Array(1)] };

test('no method takes an option that it does not know', async () => {
  const { client, peer, process } = await launched();
  for (const [owner, methods] of [[client, BEFORE_OPTIONS], [process, OF_A_PROCESS]]) {
    const own = Object.getOwnPropertyNames(Object.getPrototypeOf(owner));
    const verbs = own.filter((name) => !['constructor', 'close', 'events'].includes(name) && typeof Object.getOwnPropertyDescriptor(Object.getPrototypeOf(owner), name).value === 'function');
    assert.deepEqual(verbs.toSorted(), Object.keys(methods).toSorted());
    for (const [name, given] of Object.entries(methods)) {
      const error = await refused(owner[name](...given, { riddle: 1 }));
      assert.equal(error.code, 'invalid-argument');
      assert.ok(error.message.startsWith(`${name}() has no option "riddle"`), error.message);
    }
  }
  assert.equal(peer.nUnread, 0);
});

test('connect takes no option that it does not know', async () => {
  const error = await refused(connect('ws://127.0.0.1:1', { timeout: 5 }));
  assert.equal(error.code, 'invalid-argument');
  assert.ok(error.message.includes('connect() has no option "timeout"; did you mean timeoutS?'), error.message);
});
