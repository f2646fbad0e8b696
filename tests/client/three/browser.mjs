// The client for JavaScript in a browser: `browser.mjs ADDRESS PROGRAM` runs `page.mjs` with the built client among the
// globals of browsers alone, and writes what the page tells. Node has to be run with `--experimental-vm-modules`.

import { readFileSync } from 'node:fs';
import { SourceTextModule, createContext } from 'node:vm';

const CLIENT = new URL('../../../js/client/dist/index.js', import.meta.url);
const PAGE = new URL('page.mjs', import.meta.url);
// Of what browsers have besides the language, what a client could want.
const OF_BROWSERS = [
  'AbortController',
  'AbortSignal',
  'Blob',
  'DOMException',
  'Event',
  'EventTarget',
  'MessageEvent',
  'ReadableStream',
  'TextDecoder',
  'TextEncoder',
  'URL',
  'URLSearchParams',
  'WebSocket',
  'atob',
  'btoa',
  'clearInterval',
  'clearTimeout',
  'console',
  'crypto',
  'fetch',
  'performance',
  'queueMicrotask',
  'setInterval',
  'setTimeout',
  'structuredClone',
];
// A page and its WebSockets share these; a context of its own would have others.
const SHARED = ['ArrayBuffer', 'Error', 'Uint8Array'];

const [address, path] = process.argv.slice(2);
const given = {
  address,
  program: new Uint8Array(readFileSync(path)),
  tell: (what, value) => process.stdout.write(`${JSON.stringify([what, value])}\n`),
};
const context = createContext({
  ...Object.fromEntries([...OF_BROWSERS, ...SHARED].map((name) => [name, globalThis[name]])),
  ...given,
});
const modules = new Map();

function load(url) {
  const loaded = modules.get(url.href) ?? new SourceTextModule(readFileSync(url, 'utf8'), { context, identifier: url.href });
  modules.set(url.href, loaded);
  return loaded;
}

const page = load(PAGE);
await page.link((name, from) => load(name === 'pie-client' ? CLIENT : new URL(name, from.identifier)));
await page.evaluate();
