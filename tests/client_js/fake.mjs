// A server that says what a test wants, behind a WebSocket that is none: it knows frames, and no engine.

import assert from 'node:assert/strict';
import { connect } from '../../js/client/dist/index.js';

export const WINDOW_BYTES = 4096;
export const LIMITS = { frame_bytes: 1 << 20, message_bytes: 1 << 20, upload_bytes: 8 << 20, window_bytes: WINDOW_BYTES, open_requests: 64 };

/** The server's end of one connection. */
export class Peer {
  /** What the socket holds and has not sent, as its client sees it. */
  bufferedBytes = 0;
  /** The last event of each process that was acknowledged. */
  acks = new Map();
  closedWith = null;
  /** The type of message behind which the socket is full. */
  fillsAt = null;
  #socket;
  #received = [];
  #waiting = [];
  #seqs = new Map();

  constructor(socket) {
    this.#socket = socket;
  }

  /** The next message but for acks, which are noted; a binary one has its bytes under `payload`. */
  async receive() {
    for (;;) {
      const frame = this.#received.shift();
      if (frame === undefined) await new Promise((resolve) => this.#waiting.push(resolve));
      else if (frame.type !== 'ack') return frame;
    }
  }

  /** The next message, which must be of that type. */
  async expect(type) {
    const message = await this.receive();
    assert.equal(message.type, type);
    return message;
  }

  /** Waits until the client has acknowledged up to `seq`. */
  async acked(pid, seq) {
    while ((this.acks.get(pid) ?? 0) < seq) await new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** The messages that came and were not received. */
  get nUnread() {
    return this.#received.filter(({ type }) => type !== 'ack').length;
  }

  tell(message) {
    this.deliver(typeof message === 'string' ? message : JSON.stringify(message));
  }

  answer(request, ok = {}) {
    this.tell({ id: request.id, ok });
  }

  refuse(request, code, message = 'no') {
    this.tell({ id: request.id, error: { code, message, details: { n: 1 } } });
  }

  /** Sends an event; returns its number. */
  event(pid, kind, fields = {}) {
    const seq = (this.#seqs.get(pid) ?? 0) + 1;
    this.#seqs.set(pid, seq);
    const header = { type: 'event', pid, seq, kind };
    if (kind === 'file') this.deliver(pack(header, fields.data));
    else this.tell({ ...header, ...fields });
    return seq;
  }

  deliver(data) {
    this.#socket.onmessage?.({ data });
  }

  /** Ends the connection. */
  close(code = 1006, reason = '') {
    this.#socket.onclose?.({ code, reason });
  }

  /** What the client sent. */
  push(frame) {
    if (frame.type === this.fillsAt) this.bufferedBytes = 2 << 20;
    this.#received.push(frame);
    if (frame.type === 'ack') {
      assert.ok(frame.seq > (this.acks.get(frame.pid) ?? 0), 'an ack never goes back');
      this.acks.set(frame.pid, frame.seq);
    }
    for (const woken of this.#waiting.splice(0)) woken();
  }
}

/** A class of WebSockets whose other end is a peer; `greet` is what the peer does first. */
export function sockets(greet) {
  return class {
    binaryType = 'blob';
    onopen = null;
    onmessage = null;
    onerror = null;
    onclose = null;
    #peer = new Peer(this);

    constructor(address) {
      this.address = address;
      queueMicrotask(() => greet(this.#peer, this));
    }

    get bufferedAmount() {
      return this.#peer.bufferedBytes;
    }

    send(data) {
      this.#peer.push(typeof data === 'string' ? { ...JSON.parse(data), raw: data } : unpack(data));
    }

    close(code, reason) {
      if (this.#peer.closedWith !== null) return;
      this.#peer.closedWith = { code, reason };
      queueMicrotask(() => this.onclose?.({ code: code ?? 1005, reason: reason ?? '' }));
    }
  };
}

/** A connected client and its peer. */
export async function connected({ limits = {}, ...options } = {}) {
  let peer;
  const webSocket = sockets(async (of, socket) => {
    peer = of;
    socket.onopen?.({});
    const { user = 'nobody' } = await of.expect('hello');
    of.tell({ type: 'hello', protocol: 1, server: 'fake/1', instance: 'i', user, role: 'user', limits: { ...LIMITS, ...limits } });
  });
  const client = await connect('ws://fake:1', { webSocket, ...options });
  return { client, peer };
}

/** A launched process, its client and its peer. */
export async function launched({ launch, ...options } = {}) {
  const { client, peer } = await connected(options);
  const launching = client.launch('p', launch);
  peer.answer(await peer.expect('launch'), { pid: 5, launch_seed: 7 });
  return { client, peer, process: await launching };
}

/** All that is read of a process. */
export async function collected(process) {
  const events = [];
  for await (const event of process.events()) events.push(event);
  return events;
}

/** The error of a call that must fail. */
export async function refused(call) {
  return await call.then(
    () => assert.fail('nothing was refused'),
    (error) => error,
  );
}

/** A binary frame. */
export function pack(header, payload) {
  const text = Buffer.from(JSON.stringify(header));
  const frame = new Uint8Array(4 + text.length + payload.length);
  new DataView(frame.buffer).setUint32(0, text.length, true);
  frame.set(text, 4);
  frame.set(payload, 4 + text.length);
  return frame.buffer;
}

function unpack(frame) {
  const length = new DataView(frame.buffer, frame.byteOffset).getUint32(0, true);
  const header = JSON.parse(Buffer.from(frame.subarray(4, 4 + length)).toString());
  return { ...header, payload: frame.slice(4 + length) };
}
