/**
 * Messages between the programs of one user that run in one engine. Each topic has a queue, from which every message
 * is taken once, and broadcasts, of which every subscription gets a copy. Queues and broadcasts of one name have
 * nothing to do with each other. A name has 1 to 256 bytes and no control characters.
 */

import * as host from 'pie:host';
import { checkArity, toText } from './arguments.js';
import { refuseInPlainLoops, refuseInTexts, wrongType } from './errors.js';
import { refuseInJson, toJson } from './json.js';
import { Pending } from './pending.js';

/**
 * Adds a message to the queue of a topic: a string as it is, anything else as JSON. It waits there until somebody pulls
 * it, also when this program has ended. Where the queue is full the program is suspended until there is room, up to the
 * time that the engine allows.
 * @throws InferletError `queue-full` where there is no room in time.
 * @throws TypeError where `message` is undefined, and where more is given than it takes.
 */
export function push(topic: string, message: unknown): void;
export function push(topic: string, message: unknown, ...surplus: unknown[]): void {
  if (surplus.length > 0) checkArity(2 + surplus.length, 2, 'messaging.push');
  host.push(toText(topic, 'topic'), textOf(message));
}

/**
 * Waits for the next message of the queue of a topic. Messages are taken in the order in which they were pushed. A pull
 * that is given up takes none. It is a text, also where an object was pushed: `JSON.parse` reads that again.
 */
export function pull(topic: string): Promise<string> {
  const name = toText(topic, 'topic');
  return new Pending((settle: host.Settle<string>) => host.pull(name, settle), (text) => text);
}

/**
 * Gives a message to every subscription of a topic that there is: a string as it is, anything else as JSON. Nobody
 * waits for it: a subscription that holds too much drops its oldest message.
 * @throws TypeError where `message` is undefined, and where more is given than it takes.
 */
export function broadcast(topic: string, message: unknown): void;
export function broadcast(topic: string, message: unknown, ...surplus: unknown[]): void {
  if (surplus.length > 0) checkArity(2 + surplus.length, 2, 'messaging.broadcast');
  host.broadcast(toText(topic, 'topic'), textOf(message));
}

/**
 * Subscribes to what is broadcast from now on.
 * @throws InferletError `invalid-argument` for a topic that is not a name; `limit-resources` where there are too many
 * subscriptions.
 */
export function subscribe(topic: string): Subscription {
  return new Subscription(host.subscribe(toText(topic, 'topic')));
}

/** Holds what was broadcast until it is taken. `subscribe` makes one. */
export class Subscription implements AsyncIterable<string>, Disposable {
  readonly #raw: host.SubscriptionHandle;

  /** @internal */
  constructor(raw: host.SubscriptionHandle) {
    this.#raw = raw;
  }

  /** How many messages were dropped because too many waited. */
  get lagged(): number {
    return Number(this.#raw.lagged());
  }

  /**
   * Waits for the next message; undefined when the subscription has ended. A wait that is given up takes none. It is a
   * text, also where an object was broadcast: `JSON.parse` reads that again.
   */
  next(): Promise<string | undefined> {
    return new Pending((settle: host.Settle<string | undefined>) => this.#raw.next(settle), (text) => text);
  }

  /** The next message where one is there, and undefined otherwise. */
  tryNext(): string | undefined {
    return this.#raw.get();
  }

  /** Ends the subscription, with what it holds. Again it does nothing. */
  unsubscribe(): void {
    this.#raw.unsubscribe();
  }

  /** Every message, until the subscription ends. Leaving the loop does not end it. */
  [Symbol.asyncIterator](): AsyncIterator<string, undefined> {
    return {
      next: async () => {
        const value = await this.next();
        return value === undefined ? { done: true, value } : { done: false, value };
      },
    };
  }

  [Symbol.dispose](): void {
    this.unsubscribe();
  }
}

refuseInPlainLoops(Subscription, 'for await (const message of subscription)');
refuseInTexts(Subscription, 'a subscription is not a text; wait for its next message: await subscription.next()');
refuseInJson(Subscription, 'send the messages that it gives: await subscription.next()');

function textOf(message: unknown): string {
  if (typeof message === 'string') return toText(message, 'message');
  if (message === undefined) throw wrongType('the message is undefined; give null for nothing, and await what it is read from');
  return toJson(message, 'the message', 'invalid-argument');
}
