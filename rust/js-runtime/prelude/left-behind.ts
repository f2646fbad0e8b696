/** The timers that the end of `main` leaves behind. Loaded where there are any. */

import { waitingTimers, type WaitingTimer } from './globals.js';
import { inSource } from './nearest.js';
import { ownFrames } from './program.js';
import { ownLines } from './stacks.js';

/** More of a source in front of a place is not looked at. */
const MAX_CHARS = 2000;

/** Words of callbacks that end the wait for something else: a race that was decided leaves them behind. */
const ENDS_A_WAIT = /resolve|reject|abort/i;

/** Callbacks that only set a variable, as the sign by which a loop ends: nobody looks at it any more. */
const SETS_A_VARIABLE = /^(?:\(\s*\)\s*=>|function\s*\(\s*\))\s*[({]?\s*[\w$.]+\s*=(?![=>])[^=;()]*;?\s*[)}]?$/;

/** What to say of timers whose functions are never called; undefined where nobody would miss one. */
export function leftTimers(): string | undefined {
  const left = [...waitingTimers.values()].filter(isMissed);
  const place = left[0] === undefined ? undefined : /([^\s()]+:\d+):\d+\)?$/.exec(ownFrames(left[0].started).split('\n')[0] ?? '')?.[1];
  if (place === undefined) return undefined;
  const others = left.length > 1 ? ` (and ${left.length - 1} more)` : '';
  return (
    `main ended before the timer of ${place}${others} was due, so that its function is never called; wait for it, as by ` +
    '`await new Promise((resolve) => setTimeout(resolve, 50))`, or give it up by clearTimeout'
  );
}

/** Whether a timer does something, and not merely settles a promise, ends a wait that is over or sets a variable. */
function isMissed({ callback, started }: WaitingTimer): boolean {
  const source = Function.prototype.toString.call(callback);
  if (source.includes('[native code]') || ENDS_A_WAIT.test(source) || SETS_A_VARIABLE.test(source)) return false;
  const place = inSource(ownLines(started).join('\n'));
  return place !== undefined && !standsInPromise(place.text, place.offset);
}

/** Whether a place lies between the parentheses of a `new Promise(...)`. */
function standsInPromise(text: string, offset: number): boolean {
  const first = Math.max(0, offset - MAX_CHARS);
  let nClosed = 0;
  for (let at = offset - 1; at >= first; at--) {
    const character = text[at]!;
    if (')]}'.includes(character)) nClosed++;
    else if ('([{'.includes(character)) {
      if (nClosed > 0) nClosed--;
      else if (character === '(' && /\bnew\s+Promise\s*(?:<[^()]*>)?\s*$/.test(text.slice(first, at))) return true;
    }
  }
  return false;
}
