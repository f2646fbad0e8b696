/** What `open` found nothing of. A program that goes on with `undefined` is told of that where it fails. */

import * as host from 'pie:host';
import { show } from './arguments.js';

/** Older calls are not kept: a program may look for names without an end. */
const MAX_CALLS = 8;

/**
 * The last calls that gave `undefined`, the oldest first, as in `Context.open(model, "notes")`.
 * @internal
 */
export const foundNothing: string[] = [];

let isTold = false;

/**
 * Notes that a call of `open` or `take` found nothing of a name.
 * @internal
 */
export function noteNothingFound(call: string, name: string): void {
  const whole = `${call}(model, ${show(name)})`;
  const place = foundNothing.indexOf(whole);
  if (place >= 0) foundNothing.splice(place, 1);
  foundNothing.push(whole);
  if (foundNothing.length > MAX_CALLS) foundNothing.shift();
}

/**
 * Tells, once, that what is generated is computed without the adapter that was looked for: the option is there and
 * `undefined`, and an `Adapter.open` of this program gave that.
 * @internal
 */
export function tellOfNoAdapter(): void {
  const call = foundNothing.findLast((whole) => whole.startsWith('Adapter.'));
  if (call === undefined || isTold) return;
  isTold = true;
  const told = `\`${call}\` found nothing of that name, and \`adapter: undefined\` computes without an adapter`;
  host.write('stderr', `warning: ${told}; test what \`Adapter.open\` gives before it is used\n`);
}
