// The script of verbs in JavaScript: `script.mjs ADDRESS PROGRAM MCP_SERVER...` writes what each answers as a line of
// JSON.
// `script.py` and the example `script` of `rust/client` are the same in the other clients, line by line.

import { readFileSync } from 'node:fs';
import { PieError, connect } from '../../../js/client/dist/index.js';

const N_FIRST = 5;
const MANIFEST = '[package]\nname = "daemon"\nversion = "2"\n[http]\ninstance = "request"\n';
const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => byte);

/** A line of the transcript; seeds fit a number here. */
function told(verb, answer) {
  console.log(JSON.stringify({ verb, ...answer }, (_, value) => (typeof value === 'bigint' ? Number(value) : value)));
}

/** A line of a call that fails. What the clients themselves say differs in its quotes. */
async function refused(verb, call, withMessage = true) {
  try {
    await call;
    told(verb, { code: null, message: null });
  } catch (error) {
    if (!(error instanceof PieError)) throw error;
    told(verb, { code: error.code, message: withMessage ? error.message : null });
  }
}

/** An event as it stands in the transcript. */
function shown({ type, seq, ...event }) {
  switch (type) {
    case 'stdout':
      return { type, seq, text: event.text, form: event.form };
    case 'file':
      return { type, seq, data: Array.from(event.data) };
    case 'error':
      return { type, seq, code: event.code, message: event.message, kind: event.kind, traceback: event.traceback };
    default:
      return { type, seq, text: event.text };
  }
}

/** The next events. */
async function read(verb, events, n) {
  const seen = [];
  for (let i = 0; i < n; i += 1) seen.push(shown((await events.next()).value));
  told(verb, { events: seen });
}

/** The events up to the last. */
async function readOn(verb, events) {
  const seen = [];
  for await (const event of events) seen.push(shown(event));
  told(verb, { events: seen });
}

/** A process that has said what it says first. */
async function launched(client, program) {
  const input = { n: 2n ** 64n - 1n, list: [1.5, null, true, 'ü'] };
  const process = await client.launch(program, { input, seed: 7 });
  const events = process.events();
  told('launch', { launch_seed: process.launchSeed });
  await read('events', events, N_FIRST);
  return { process, events };
}

/** Programs: uploads, installs, looks up. */
async function install(client, program) {
  told('check_program', { answer: await client.checkProgram('three') });
  for (const version of ['1.9', '1.10']) await client.install(program, { name: 'three', version });
  const digest = await client.upload(program);
  told('upload', { digest });
  const programs = await client.programs();
  told('programs', { answer: programs.map((found) => [found.name, found.version, found.digest, found.bytes]) });
  told('resolve_version', { answer: await client.resolveVersion('three') });
  await refused('resolve_version', client.resolveVersion('other'), false);
  for (const [name, of] of [['three@1.9'], ['three', digest], ['three@1.9', 'sha256:0'], ['three@2']]) {
    told('check_program', { answer: await client.checkProgram(name, of === undefined ? {} : { digest: of }) });
  }
}

/** Messages, signals and files; leaves and comes back; the end. */
async function talk(client) {
  const { process, events } = await launched(client, 'three');
  await process.send('hello');
  await process.signal('hi');
  await read('send', events, 2);
  await process.send('file');
  await process.transferFile(EVERY_BYTE);
  await read('transfer_file', events, 1);
  await process.detach();
  await refused('detach', events.next(), false);
  await refused('attach', client.attach(process.pid, { afterSeq: 1e9 }), false);
  const again = await client.attach(process.pid);
  const others = again.events();
  told('attach', { launch_seed: again.launchSeed });
  await again.send('stop');
  await readOn('stop', others);
  told('result', { stopped: (await again.result()).stopped });
  await refused('send', again.send('late'), false);
  return process.pid;
}

/** The other ways in which a process ends. */
async function end(client, digest) {
  const failing = await launched(client, 'three@1.9');
  await failing.process.send('fail');
  await readOn('fail', failing.events);
  try {
    await failing.process.result();
  } catch (error) {
    const { kind, message, traceback } = error.details;
    told('result', { code: error.code, message: error.message, details: { kind, message, traceback } });
  }
  const closed = await launched(client, digest);
  await closed.process.closeInput();
  await readOn('close_input', closed.events);
  const stopped = await launched(client, 'three@1.10');
  await stopped.process.terminate();
  await readOn('terminate', stopped.events);
  const other = await launched(client, 'three');
  await client.terminate(other.process.pid);
  await readOn('terminate', other.events);
  return [failing, closed, stopped, other].map(({ process }) => process.pid);
}

/** An MCP server of this client, for programs, which takes the place of one before; two are refused. */
async function runServers(client, [command, ...args]) {
  await client.registerMcpServer('files', { command: '/nowhere/at/all' });
  await client.registerMcpServer('files', { command, args });
  const { process, events } = await launched(client, 'three');
  await process.send('tool');
  await read('register_mcp_server', events, 1);
  await client.unregisterMcpServer('files');
  await process.send('tool');
  await read('unregister_mcp_server', events, 1);
  await process.send('stop');
  await readOn('stop', events);
  await refused('unregister_mcp_server', client.unregisterMcpServer('files'));
  await refused('register_mcp_server', client.registerMcpServer('a b', { command }));
  return process.pid;
}

/** A program that serves HTTP. */
async function launchDaemon(client, address, program) {
  const path = await client.launchDaemon(program, { name: 'daemon', public: true });
  const answer = await fetch(address.replace('ws:', 'http:') + path);
  told('launch_daemon', { path, answer: (await answer.text()).endsWith('served for ada') });
  await refused('launch_daemon', client.launchDaemon(program, { name: 'daemon', version: '2', manifest: MANIFEST }));
  await client.uninstall('daemon', '0.1.0');
}

/** Waits until the server has put the end of a process down. */
async function ended(client, pid) {
  let logs = { text: ' ', next: 0, ended: false };
  while (logs.text !== '' || !logs.ended) logs = await client.logs(pid, { after: logs.next, follow: true });
}

/** What is told of processes and of the server. */
async function look(client, pids) {
  for (const pid of pids) await ended(client, pid);
  const processes = (await client.list({ all: true })).filter(({ pid }) => pids.includes(pid));
  told('list', { answer: processes.map(({ program, state, exit, detached }) => [program, state, exit, detached]) });
  for (const pid of pids) {
    const outcome = await client.outcome(pid);
    told('outcome', { answer: outcome === null ? null : shown(outcome) });
  }
  const logs = await client.logs(pids[0]);
  told('logs', { text: logs.text, next: logs.next, dropped_bytes: logs.droppedBytes, ended: logs.ended });
  told('logs', { text: (await client.logs(pids[0], { after: 5, tailBytes: 4 })).text });
  told('snapshots', { answer: (await client.snapshots()).map(({ name }) => name) });
  told('adapters', { answer: (await client.adapters()).map(({ name }) => name) });
  told('topics', { answer: (await client.topics()).map(({ topic }) => topic) });
  told('discard_topic', { answer: await client.discardTopic('none') });
  told('stats', { answer: Object.keys(await client.stats()).sort() });
}

const [address, path, ...server] = process.argv.slice(2);
const program = new Uint8Array(readFileSync(path));
const client = await connect(address, { user: 'ada' });
told('connect', { user: client.user, role: client.role, is_draining: client.isDraining });
await client.ping();
await install(client, program);
const digest = await client.upload(program);
await look(client, [await talk(client), ...(await end(client, digest)), await runServers(client, server)]);
await launchDaemon(client, address, program);
await refused('launch', client.launch('absent'));
await refused('launch', client.launch('three', { limits: { riddle: 1 } }));
await refused('attach', client.attach(1));
await refused('delete_snapshot', client.deleteSnapshot('default', 'absent'));
await refused('delete_adapter', client.deleteAdapter('default', 'absent'));
await refused('connections', client.connections());
await refused('disconnect', client.disconnect(1));
for (const version of ['1.9', '1.10']) await client.uninstall('three', version);
await refused('uninstall', client.uninstall('three', '1.9'));
await client.close();
await refused('ping', client.ping());
