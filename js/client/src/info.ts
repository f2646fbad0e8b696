/** What a server tells of what it has: processes, programs, snapshots, adapters, topics, connections and logs. */

import { type Fields, fieldsOf, flagOf, numberOf, optionalNumber, optionalText, textOf } from './wire.js';

/** A process in a list. */
export interface ProcessInfo {
  readonly pid: number;
  /** What was launched: `name@version`, or the digest. */
  readonly program: string;
  /** What its client calls the file that was uploaded; null where nobody has said. */
  readonly name: string | null;
  readonly state: 'running' | 'ended';
  /** Whether a client reads its events. */
  readonly attached: boolean;
  /** Whether it lives on without a client, without limit. */
  readonly detached: boolean;
  /** Seconds since 1970. */
  readonly started: number;
  /** Seconds since 1970; null while it runs. */
  readonly ended: number | null;
  readonly cpuS: number;
  /** How it ended: `return`, or the code of its error; null while it runs. */
  readonly exit: string | null;
  /** Events of output that were dropped while nobody read them. */
  readonly dropped: number;
  /** Tokens that have entered its contexts. */
  readonly tokens: number;
  /** Whose it is, in a list of everybody's. */
  readonly user: string | null;
  /** What it has of the market for pages, by the name of the model; empty once it has ended. */
  readonly credits: Readonly<Record<string, number>>;
  /** The highest bid of its contexts, in credits a page, by the name of the model. */
  readonly bids: Readonly<Record<string, number>>;
}

/** An installed program. */
export interface ProgramInfo {
  readonly name: string;
  readonly version: string;
  readonly digest: string;
  /** Its size. */
  readonly bytes: number;
  /** Seconds since 1970. */
  readonly installed: number;
  /** Whose it is, in a list of everybody's. */
  readonly user: string | null;
}

/** A context that a program saved under a name. */
export interface SnapshotInfo {
  readonly model: string;
  readonly name: string;
  /** Its length. */
  readonly tokens: number;
  /** Whose it is, in a list of everybody's. */
  readonly user: string | null;
}

/** An adapter to which a program gave a name. */
export interface AdapterInfo {
  readonly model: string;
  readonly name: string;
  /** Of the files of its weights. */
  readonly bytes: number;
  /** Whose it is, in a list of everybody's. */
  readonly user: string | null;
}

/** A client that is connected, as operators see it. */
export interface ConnectionInfo {
  /** Its number, for the life of the server. */
  readonly connection: number;
  readonly user: string;
  readonly role: string;
  /** The id of the key by which it came in. */
  readonly key: string | null;
  readonly address: string;
  /** What it calls itself. */
  readonly client: string;
  /** Seconds since 1970. */
  readonly since: number;
}

/** A topic by which programs send to each other, while it is in use. */
export interface TopicInfo {
  readonly topic: string;
  /** Messages that wait in its queue. */
  readonly queued: number;
  readonly queuedBytes: number;
  /** Pushes that wait for room. */
  readonly waitingPushes: number;
  readonly waitingPulls: number;
  readonly subscriptions: number;
  /** Whose it is, in a list of everybody's. */
  readonly user: string | null;
}

/** A part of what a process wrote to stdout and stderr, as one text. */
export interface Logs {
  readonly text: string;
  /** The position after the text, from which to read on. */
  readonly next: number;
  /** Bytes before the text that are no longer kept. */
  readonly droppedBytes: number;
  /** Whether the process has ended. */
  readonly ended: boolean;
}

/**
 * What the asking user has at a server, and for operators what everybody has: the fields of the answer to `stats`, by
 * the names that `docs/reference/protocol.md` gives them.
 */
export type ServerStats = Fields;

/** Reads one of a list. */
export function processOf(fields: Fields): ProcessInfo {
  return {
    pid: numberOf(fields, 'pid'),
    program: textOf(fields, 'program'),
    name: optionalText(fields, 'name'),
    state: textOf(fields, 'state') === 'running' ? 'running' : 'ended',
    attached: flagOf(fields, 'attached'),
    detached: flagOf(fields, 'detached'),
    started: numberOf(fields, 'started'),
    ended: optionalNumber(fields, 'ended'),
    cpuS: numberOf(fields, 'cpu_s'),
    exit: optionalText(fields, 'exit'),
    dropped: numberOf(fields, 'dropped'),
    tokens: numberOf(fields, 'tokens'),
    user: optionalText(fields, 'user'),
    credits: amountsOf(fields, 'credits'),
    bids: amountsOf(fields, 'bids'),
  };
}

/** Numbers by the names of models; none where an older server tells none. */
function amountsOf(fields: Fields, name: string): Record<string, number> {
  const amounts: Fields = fields[name] == null ? {} : fieldsOf(fields[name], name);
  return Object.fromEntries(Object.keys(amounts).map((model) => [model, numberOf(amounts, model)]));
}

/** Reads one of a list. */
export function programOf(fields: Fields): ProgramInfo {
  return {
    name: textOf(fields, 'name'),
    version: textOf(fields, 'version'),
    digest: textOf(fields, 'digest'),
    bytes: numberOf(fields, 'bytes'),
    installed: numberOf(fields, 'installed'),
    user: optionalText(fields, 'user'),
  };
}

/** Reads one of a list. */
export function snapshotOf(fields: Fields): SnapshotInfo {
  return {
    model: textOf(fields, 'model'),
    name: textOf(fields, 'name'),
    tokens: numberOf(fields, 'tokens'),
    user: optionalText(fields, 'user'),
  };
}

/** Reads one of a list. */
export function adapterOf(fields: Fields): AdapterInfo {
  return {
    model: textOf(fields, 'model'),
    name: textOf(fields, 'name'),
    bytes: numberOf(fields, 'bytes'),
    user: optionalText(fields, 'user'),
  };
}

/** Reads one of a list. */
export function connectionOf(fields: Fields): ConnectionInfo {
  return {
    connection: numberOf(fields, 'connection'),
    user: textOf(fields, 'user'),
    role: textOf(fields, 'role'),
    key: optionalText(fields, 'key'),
    address: textOf(fields, 'address'),
    client: textOf(fields, 'client'),
    since: numberOf(fields, 'since'),
  };
}

/** Reads one of a list. */
export function topicOf(fields: Fields): TopicInfo {
  return {
    topic: textOf(fields, 'topic'),
    queued: numberOf(fields, 'queued'),
    queuedBytes: numberOf(fields, 'queued_bytes'),
    waitingPushes: numberOf(fields, 'waiting_pushes'),
    waitingPulls: numberOf(fields, 'waiting_pulls'),
    subscriptions: numberOf(fields, 'subscriptions'),
    user: optionalText(fields, 'user'),
  };
}

/** Reads a part of a log. */
export function logsOf(fields: Fields): Logs {
  return {
    text: textOf(fields, 'text'),
    next: numberOf(fields, 'next'),
    droppedBytes: numberOf(fields, 'dropped_bytes'),
    ended: flagOf(fields, 'ended'),
  };
}
