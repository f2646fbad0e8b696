/**
 * The market for pages: what this program has, and what pages cost.
 *
 * Where pages are short, contexts bid for theirs, and whoever holds some pays rent, which returns to all programs as
 * dividends. A bid follows from what the program has, unless it says its own (`Context.setBid`). No token depends on
 * any of it, but on what a program does with these numbers.
 */

import * as host from 'pie:host';
import { contextHandle, type Context } from './context.js';
import { modelHandle, type Model } from './model.js';

/**
 * Credits that this program has for a model. What its bids win is paid from them; with none left it loses every
 * auction, and goes on all the same.
 */
export function balance(model: Model): number {
  return host.balance(modelHandle(model));
}

/**
 * Credits that a page costs whoever holds it: the highest bid that lost when the last batch was planned. It is of the
 * device that the context is on, and 0 where pages are not short.
 */
export function rent(ctx: Context): number {
  return host.rent(contextHandle(ctx));
}

/**
 * Credits that this program got as its last share of the rent, in proportion to what it began with. It is 0 until pages
 * were short while the program ran: nobody pays rent otherwise. From then on it is the share of the last auction.
 */
export function dividend(model: Model): number {
  return host.dividend(modelHandle(model));
}

/** Seconds that a batch takes on the device of the context, as of late; 0 before the first. */
export function latency(ctx: Context): number {
  return host.latency(contextHandle(ctx));
}

/** Credits that a page of a context costs once, when it is full. */
export function price(): number {
  return host.price();
}
