/** What `open` found nothing of. A program that goes on with `undefined` is told of that where it fails. */

import * as host from 'pie:host';
import { show } from './arguments.js';
import { InferletError } from './errors.js';
import { nearest } from './nearest.js';

/** Older calls are not kept: a program may look for names without an end. */
const MAX_CALLS = 8;

/**
 * The last calls that gave `undefined`, the oldest first, as in `Context.open(model, "notes")`.
 * @internal
 */
export const foundNothing: string[] = [];

/** Of each of these calls the name, and what tells the names that there are. It is asked where somebody is told. */
const names = new Map<string, { readonly name: string; readonly thereAre: () => string[] }>();

/** More names are not compared: a user may have thousands. */
const MAX_COMPARED = 100;
const MAX_LISTED = 8;
const KEPT = 'those of an engine that has ended, as of an earlier `pie run`, are kept where snapshots.durability = "disk"';

let isTold = false;

/**
 * Notes that a call of `open` or `take` found nothing of a name; `thereAre` gives those that there are.
 * @internal
 */
export function noteNothingFound(call: string, name: string, thereAre: () => string[]): void {
  const whole = `${call}(model, ${show(name)})`;
  const place = foundNothing.indexOf(whole);
  if (place >= 0) foundNothing.splice(place, 1);
  foundNothing.push(whole);
  names.set(whole, { name, thereAre });
  if (foundNothing.length > MAX_CALLS) names.delete(foundNothing.shift()!);
}

/**
 * Which names there are in place of the one that a call found nothing of, the nearest first: a sentence behind a
 * message, or nothing where that is not known.
 * @internal
 */
export function namesThereAre(call: string): string {
  const noted = names.get(call);
  if (noted === undefined) return '';
  let found: string[];
  try {
    found = noted.thereAre();
  } catch (error) {
    if (error instanceof InferletError) return ''; // the program fails already, by an error of its own
    throw error;
  }
  const things = call.startsWith('Adapter.') ? 'adapters' : 'snapshots';
  if (found.length === 0) return `. This user has no ${things} of this model${things === 'snapshots' ? `; ${KEPT}` : ''}`;
  const near = nearest(noted.name, found.slice(0, MAX_COMPARED));
  const meant = near === undefined ? '.' : `; did you mean ${JSON.stringify(near)}?`;
  const more = found.length > MAX_LISTED ? ` and ${found.length - MAX_LISTED} more` : '';
  return `${meant} The ${things} of this user are ${found.slice(0, MAX_LISTED).map((one) => JSON.stringify(one)).join(', ')}${more}`;
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
  host.write('stderr', `warning: ${told}; test what \`Adapter.open\` gives before it is used${namesThereAre(call)}\n`);
}
