// A fake of the engine's module: it records what the SDK asks of it, and answers when the test says so.

/** Calls in their order, each as [name, ...arguments]. */
export const calls = [];
/** Waits that no test has answered, in their order: { settle, interested, lost }. */
export const waits = [];

/** What those get who block, in their order, each as [error, value]. */
export const blocking = [];

let makeError;

/** An error as the engine throws it. */
export function engineError(code, message, details = {}) {
  return makeError(code, message, JSON.stringify(details));
}

/**
 * The number of the next step of every generator, undefined at the end, how many tokens `accept` keeps, and why
 * generators have ended.
 */
export const steps = { next: 0, kept: Infinity, finish: undefined };

/** Forgets what was recorded. */
export function reset() {
  steps.next = 0;
  steps.kept = Infinity;
  steps.finish = undefined;
  lengths.length = 0;
  calls.length = 0;
  waits.length = 0;
  blocking.length = 0;
}

function record(name, ...values) {
  calls.push([name, ...values]);
}

function wait(settle) {
  const entry = { settle, interested: 0, lost: false };
  waits.push(entry);
  return {
    subscribe: () => void entry.interested++,
    unsubscribe: () => {
      entry.interested = Math.max(entry.interested - 1, 0);
      entry.lost = true;
    },
    // Whoever blocks gets what the test has laid down.
    block: () => {
      waits.splice(waits.indexOf(entry), 1);
      settle(...(blocking.shift() ?? [undefined, '{}']));
    },
  };
}

/** Answers every method by recording it. */
function handle(name, methods = {}) {
  return new Proxy(methods, {
    get: (target, method) => method in target ? target[method] : ((...values) => record(`${name}.${String(method)}`, ...values)),
  });
}

function generator() {
  // The slots of the open step: the sampler, the probes of every step, its own.
  let [nSamplers, nEvery, nOwn] = [1, 0, 0];
  return handle('generator', {
    step: (settle) => (record('generator.step'), wait(settle)),
    collectTokens: (settle) => (record('generator.collectTokens'), wait(settle)),
    collectText: (settle) => (record('generator.collectText'), wait(settle)),
    collectDocument: (matcher, settle) => (record('generator.collectDocument', matcher), wait(settle)),
    // What the next step would be; a test may set it.
    nextStep: () => {
      record('generator.nextStep');
      [nSamplers, nOwn] = [1, 0];
      return steps.next;
    },
    clearSampler: () => {
      record('generator.clearSampler');
      nSamplers = 0;
    },
    probeEachStep: (...values) => (record('generator.probeEachStep', ...values), ++nEvery),
    probe: (...values) => (record('generator.probe', ...values), nSamplers + nEvery + nOwn++),
    accept: (tokens) => (record('generator.accept', tokens), tokens.slice(0, steps.kept)),
    finishReason: () => (record('generator.finishReason'), steps.finish),
    tokensGenerated: () => (record('generator.tokensGenerated'), 9),
  });
}

function pass() {
  let nSlots = 0;
  return handle('pass', {
    sample: (...values) => (record('pass.sample', ...values), nSlots++),
    probe: (...values) => (record('pass.probe', ...values), nSlots++),
    startPosition: () => 12,
    execute: (settle) => (record('pass.execute'), wait(settle)),
  });
}

/** What the next contexts do that are asked for their length. */
export const lengths = [];

function context() {
  return handle('context', {
    seqLen: () => (record('context.seqLen'), lengths.shift()?.()),
    pageSize: () => 16,
    fork: () => (record('context.fork'), context()),
    flush: (settle) => (record('context.flush'), wait(settle)),
  });
}

/** What waits in the subscription that `subscribe` makes. */
export const held = [];

function subscription() {
  return handle('subscription', {
    get: () => (record('subscription.get'), held.shift()),
    next: (settle) => (record('subscription.next'), wait(settle)),
    lagged: () => 3n,
  });
}

function mcpSession() {
  const asks = ['hello', 'listTools', 'callTool', 'listResources', 'readResource', 'listPrompts', 'getPrompt'];
  const methods = asks.map((name) => [name, (...values) => (record(`session.${name}`, ...values.slice(0, -1)), wait(values.at(-1)))]);
  return handle('session', Object.fromEntries(methods));
}

export const availableServers = () => ['files', 'web'];
export const connect = (name) => {
  record('connect', name);
  if (name === 'nobody') throw engineError('unknown-mcp-server', 'there is no MCP server "nobody"');
  return mcpSession();
};
export const push = (...values) => {
  record('push', ...values);
  if (values[0] === 'full') throw engineError('queue-full', 'the queue "full" is full');
};
export const pull = (topic, settle) => (record('pull', topic), wait(settle));
export const broadcast = (...values) => record('broadcast', ...values);
export const subscribe = (topic) => (record('subscribe', topic), subscription());
export const check = () => record('check');
export const exchangeStart = (request) => {
  record('exchangeStart', request);
  if (request.url.includes('denied')) throw engineError('net-denied', 'no request goes to denied.example:80');
  return handle('exchange', {
    head: (settle) => (record('exchange.head'), wait(settle)),
    read: (settle) => (record('exchange.read'), wait(settle)),
    writePart: (part, settle) => (record('exchange.writePart', part), wait(settle)),
  });
};
export const encodeUtf8 = (text) => new TextEncoder().encode(text);
export const decodeUtf8 = (bytes) => [new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes), 0];
export const isServing = () => record('isServing') ?? false;
export const print = (text) => record('print', text);
export const write = (stream, text) => record('write', stream, text);

export const nextRequest = (settle) => (record('nextRequest'), wait(settle));

/** A request as `nextRequest` gives it, and what settles its waits, by the names of their methods. */
export function incomingRequest(head) {
  const pending = {};
  const waits = (name) => (...values) => {
    pending[name] = values.pop();
    record(`incoming.${name}`, ...values);
    return { subscribe: () => {}, unsubscribe: () => {} };
  };
  // It crosses a promise, which asks whatever it is given for a `then`.
  const methods = { then: null, head: () => head, read: waits('read'), writePart: waits('writePart'), gone: waits('gone') };
  return [handle('incoming', methods), pending];
}

export const refusal = () => record('refusal');

// Addresses as Node has them, which follows the same rules.
const PARTS = ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'];
const partsOf = (url) => Object.fromEntries(PARTS.map((part) => [part, url[part]]));
export const parseUrl = (text, base) => (URL.canParse(text, base) ? partsOf(new URL(text, base)) : undefined);
export const changeUrl = (href, part, value) => {
  const url = new URL(href);
  url[part] = value;
  return partsOf(url);
};
export const parseForm = (text) => [...new URLSearchParams(`&${text}`)];
export const writeForm = (pairs) => new URLSearchParams(pairs).toString();
export const randomBytes = (nBytes) => new Uint8Array(nBytes).fill(7);

export function registerErrors(make) {
  makeError = make;
}

export function modelLoad(name) {
  record('modelLoad', name);
  if (name === 'absent') throw engineError('unknown-model', "no model 'absent'; the models are: tiny", { name });
  return handle('model', { tokenizer: () => handle('tokenizer', { vocabSize: () => 100 }) });
}

function opened(how, name) {
  record(how, name);
  if (name === 'absent') throw engineError('snapshot-missing', "no snapshot 'absent'", { name });
  return context();
}

export const balance = () => (record('balance'), 1000);
export const rent = () => (record('rent'), 2.5);
export const dividend = () => (record('dividend'), 0.25);
export const latency = () => (record('latency'), 0.01);
export const price = () => (record('price'), 1);
export const contextCreate = () => (record('contextCreate'), context());
export const contextOpen = (_model, name) => opened('contextOpen', name);
export const contextTake = (_model, name) => opened('contextTake', name);
export const contextDelete = (_model, name) => record('contextDelete', name);
export const contextSnapshots = () => ['kept'];
function adapter(how, name) {
  record(how, name);
  if (name === 'absent') throw engineError('adapter-missing', "no adapter 'absent'", { name });
  return adapterHandle();
}

function adapterHandle() {
  return handle('adapter', { fork: (name) => (record('adapter.fork', name), adapterHandle()) });
}

export const adapterCreate = (_model, name, rank, alpha) => {
  const made = adapter('adapterCreate', name);
  record('shape', rank, alpha);
  return made;
};
export const adapterNames = () => (record('adapterNames'), ['kept']);
export const adapterOpen = (_model, name) => adapter('adapterOpen', name);
export const forwardPassCreate = () => (record('forwardPassCreate'), pass());
export const shortest = (...values) => (record('shortest', ...values), new Uint32Array([1]));
/** Tells which masks it was given. */
export const intersection = (masks, len) => (record('intersection', masks, len), Uint32Array.from(masks.flatMap((mask) => [...mask])));
export const allowing = (...values) => (record('allowing', ...values), new Uint32Array([2]));
export const allowed = (...values) => (record('allowed', ...values), new Uint32Array([3]));
export const pack = (...values) => (record('pack', ...values), new Uint8Array([0b101]));
export const unpack = (...values) => (record('unpack', ...values), new Uint32Array([4]));
export const window = (...values) => (record('window', ...values), [new Uint32Array([5])]);
export const causal = (...values) => (record('causal', ...values), [new Uint32Array([6])]);
export const fill = (_context, role, text) => record('fill', role, text);
export const cue = () => record('cue');
export const seal = () => record('seal');
function matcher() {
  return handle('matcher', {
    mask: () => (record('matcher.mask'), new Uint32Array([1, 2])),
    forced: () => (record('matcher.forced'), new Uint32Array([5])),
    isTerminated: () => (record('matcher.isTerminated'), true),
    fork: () => (record('matcher.fork'), matcher()),
  });
}

export const grammarCreate = (source) => {
  record('grammarCreate', source);
  return { matcher: () => (record('grammar.matcher'), matcher()) };
};
export const generatorCreate = (_context, sampler, options) => (record('generatorCreate', sampler, options), generator());
export const messageTokens = (_model, role, text) => (record('messageTokens', role, text), new Uint32Array([1]));
export const cueTokens = () => new Uint32Array([2]);
export const sealTokens = () => new Uint32Array([3]);
export const stopTokens = () => new Uint32Array([4]);
export const send = (message) => record('send', message);
export const sendJson = (value) => record('sendJson', value);
export const message = (text) => record('message', text);
export const receive = (settle) => (record('receive'), wait(settle));
export const sendFile = (data) => record('sendFile', data);
export const receiveFile = (settle) => (record('receiveFile'), wait(settle));
export const models = () => ['tiny'];
export const version = () => '0.1.0';
export const instanceId = () => 'engine';
export const username = () => 'ada';
export const args = () => ['--name', 'Ada'];
export const launchSeed = () => 7n;
export const spawn = (...values) => {
  record('spawn', ...values);
  return handle('child', { pid: () => 8n, wait: (settle) => (record('child.wait'), wait(settle)) });
};

/** Events that the next decoders give, in their order; idle after them. */
export const events = [];
const event = () => events.shift() ?? { type: 'idle' };
const decoder = () =>
  handle('decoder', {
    feed: (tokens) => (record('decoder.feed', [...tokens]), event()),
    feedOutput: (...values) => (record('decoder.feedOutput', ...values), event()),
    finish: () => (record('decoder.finish'), event()),
  });
export const decoderCreate = () => decoder();
export const decoderCreateHiding = (_model, ...values) => (record('decoderCreateHiding', ...values), decoder());
export const decoderCreateFor = (_generator, ...values) => (record('decoderCreateFor', ...values), decoder());
export const reasoningDecoderCreate = () => decoder();
export const toolDecoderCreate = () => decoder();
export const equip = (_context, schemas) => record('equip', schemas);
export const answer = (_context, ...values) => record('answer', ...values);
export const equipTokens = (_model, schemas) => (record('equipTokens', schemas), new Uint32Array([5]));
export const answerTokens = (_model, ...values) => (record('answerTokens', ...values), new Uint32Array([6]));
export const parseCall = (_model, text) => (record('parseCall', text), { name: 'a', args: '{}', id: undefined });
export const nativeGrammar = (_model, schemas, choice) => void record('nativeGrammar', schemas, choice);
export const choiceGrammar = (_context, choice) => void record('choiceGrammar', choice);
