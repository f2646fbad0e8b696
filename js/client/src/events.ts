/** What a process tells its client. */

import { PieError, broken } from './errors.js';
import { parseExactly } from './exact-json.js';
import { type Fields, optionalText, textOf } from './wire.js';

interface Numbered {
  /** The number of the event, counted from 1 in each process. */
  readonly seq: number;
}

/** What the program sent or printed, verbatim. */
export interface StdoutEvent extends Numbered {
  readonly type: 'stdout';
  readonly text: string;
  /**
   * What `session.send` was given, as one event: a text, or a value, whose JSON `text` is. Null for what was printed,
   * where the end of one event and the beginning of the next says nothing.
   */
  readonly form: 'text' | 'json' | null;
  /**
   * The value that was sent: of a JSON text what it holds, else the text. Whole numbers beyond 2^53 - 1 are bigints.
   * Throws `invalid-argument` for no JSON.
   */
  readonly value: unknown;
}

/** What the program wrote to stderr, verbatim. */
export interface StderrEvent extends Numbered {
  readonly type: 'stderr';
  readonly text: string;
}

/** What the program tells its client beside its output, by `session.message`. */
export interface MessageEvent extends Numbered {
  readonly type: 'message';
  readonly text: string;
}

/** What the engine itself says about the process, as that output was dropped while nobody read it. */
export interface NoticeEvent extends Numbered {
  readonly type: 'notice';
  readonly text: string;
}

/** A file that the program sent. */
export interface FileEvent extends Numbered {
  readonly type: 'file';
  readonly data: Uint8Array;
}

/** The last event of a program that ended well. */
export interface ReturnEvent extends Numbered {
  readonly type: 'return';
  /** The JSON text, as the program returned it. */
  readonly text: string;
  /**
   * The value that the program returned; whole numbers beyond 2^53 - 1 are bigints. Throws `invalid-argument` where
   * JavaScript cannot hold it.
   */
  readonly value: unknown;
}

/** The last event of a program that failed or was ended. */
export interface ErrorEvent extends Numbered {
  readonly type: 'error';
  readonly code: string;
  readonly message: string;
  /** The type of the error in the language of the program; the code where the engine ended the program. */
  readonly kind: string | null;
  readonly traceback: string;
}

/** One of the two events after which none comes. */
export type LastEvent = ReturnEvent | ErrorEvent;

/** Any event; `type` tells which. */
export type ProcessEvent = StdoutEvent | StderrEvent | MessageEvent | NoticeEvent | FileEvent | LastEvent;

/** The event in a message of a server. */
export function eventOf(fields: Fields, seq: number, payload: Uint8Array): ProcessEvent {
  const kind = textOf(fields, 'kind');
  switch (kind) {
    case 'stdout':
      return sent(seq, textOf(fields, 'text'), optionalText(fields, 'form'));
    case 'stderr':
    case 'message':
    case 'notice':
      return { type: kind, seq, text: textOf(fields, 'text') };
    case 'file':
      return { type: 'file', seq, data: payload };
    case 'return':
      return returned(seq, textOf(fields, 'value'));
    case 'error':
      return {
        type: 'error',
        seq,
        code: optionalText(fields, 'code') ?? 'program-error',
        message: textOf(fields, 'message'),
        kind: optionalText(fields, 'error_kind'),
        traceback: optionalText(fields, 'traceback') ?? '',
      };
    default:
      throw broken(`an event of the unknown kind ${JSON.stringify(kind)}`);
  }
}

/** Whether it is the last event of its process. */
export function isLast(event: ProcessEvent): event is LastEvent {
  return event.type === 'return' || event.type === 'error';
}

/** What an event counts towards the window of its process: roughly the size of what it carries. */
export function eventBytes(event: ProcessEvent): number {
  switch (event.type) {
    case 'file':
      return event.data.length;
    case 'error':
      return event.message.length + event.traceback.length;
    default:
      return event.text.length;
  }
}

function sent(seq: number, text: string, form: string | null): StdoutEvent {
  if (form !== null && form !== 'text' && form !== 'json') throw broken(`an event of the unknown form ${JSON.stringify(form)}`);
  return {
    type: 'stdout',
    seq,
    text,
    form,
    get value() {
      return form === 'json' ? parsed(text, 'sent') : text;
    },
  };
}

function returned(seq: number, text: string): ReturnEvent {
  return {
    type: 'return',
    seq,
    text,
    get value() {
      return parsed(text, 'returned');
    },
  };
}

function parsed(text: string, how: string): unknown {
  try {
    return parseExactly(text);
  } catch (error) {
    const message = `the value that the program ${how} cannot be held by JavaScript (${String(error)}); read the text of the event`;
    throw new PieError('invalid-argument', message);
  }
}
