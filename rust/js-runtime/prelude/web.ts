/**
 * What the globals load of the Web at their first use. A module that is loaded by hand is another one than that which
 * others import: what stands here is passed on only, so that there is one class of each name.
 */

export { AbortController, AbortSignal } from './abort.js';
export { atob, btoa } from './base64.js';
export { structuredClone } from './clone.js';
export { DOMException } from './dom-exception.js';
export { CustomEvent, Event, EventTarget } from './events.js';
