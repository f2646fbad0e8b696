/** `URL` and `URLSearchParams`, by the rules of the WHATWG. The runtime parses; what is here holds the parts. */

import * as host from 'pie:host';
import { refuseInJson } from './json.js';

/** What search parameters are made of. */
export type SearchParamsInit = string | Iterable<readonly [string, string]> | Readonly<Record<string, string>>;

type Pair = [string, string];

let follow: (params: URLSearchParams, changed: (query: string) => void) => void;
let refill: (params: URLSearchParams, query: string) => void;

function textOf(value: unknown): string {
  return String(value).toWellFormed();
}

/** Names and values, as they stand behind the `?` of an address or in a form. A name may come more than once. */
export class URLSearchParams implements Iterable<Pair> {
  #pairs: Pair[] = [];
  #changed: ((query: string) => void) | undefined;

  static {
    follow = (params, changed) => {
      params.#changed = changed;
    };
    refill = (params, query) => {
      params.#pairs = host.parseForm(query);
    };
  }

  constructor(init: SearchParamsInit | URLSearchParams = '') {
    if (typeof init !== 'object' || init === null) {
      const text = textOf(init);
      this.#pairs = host.parseForm(text.startsWith('?') ? text.slice(1) : text);
      return;
    }
    const pairs = (Symbol.iterator in init ? init : Object.entries(init)) as Iterable<readonly [string, string]>;
    for (const pair of pairs) {
      const [name, value, ...more] = [...pair];
      if (name === undefined || value === undefined || more.length > 0) {
        throw new TypeError('each of a list of parameters is [name, value]');
      }
      this.#pairs.push([textOf(name), textOf(value)]);
    }
  }

  get size(): number {
    return this.#pairs.length;
  }

  append(name: string, value: string): void {
    this.#pairs.push([textOf(name), textOf(value)]);
    this.#tell();
  }

  /** Without a value, all of that name. */
  delete(name: string, value?: string): void {
    this.#pairs = this.#pairs.filter((pair) => !matches(pair, name, value));
    this.#tell();
  }

  /** The first value of a name; null where there is none. */
  get(name: string): string | null {
    return this.#pairs.find((pair) => matches(pair, name))?.[1] ?? null;
  }

  getAll(name: string): string[] {
    return this.#pairs.filter((pair) => matches(pair, name)).map(([, value]) => value);
  }

  has(name: string, value?: string): boolean {
    return this.#pairs.some((pair) => matches(pair, name, value));
  }

  /** Puts one value in the place of all of that name. */
  set(name: string, value: string): void {
    const first = this.#pairs.findIndex((pair) => matches(pair, name));
    if (first < 0) {
      this.#pairs.push([textOf(name), textOf(value)]);
    } else {
      this.#pairs = this.#pairs.filter((pair, index) => index === first || !matches(pair, name));
      this.#pairs[first] = [textOf(name), textOf(value)];
    }
    this.#tell();
  }

  /** Sorts by names, in the order of their UTF-16 units; values of one name stay in theirs. */
  sort(): void {
    this.#pairs.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
    this.#tell();
  }

  forEach(callback: (value: string, name: string, params: URLSearchParams) => void, self?: unknown): void {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }

  *entries(): Generator<Pair, void, undefined> {
    // By its index, so that what a loop adds comes into the loop.
    for (let index = 0; index < this.#pairs.length; index++) yield [...this.#pairs[index]!];
  }

  *keys(): Generator<string, void, undefined> {
    for (const [name] of this.entries()) yield name;
  }

  *values(): Generator<string, void, undefined> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): Generator<Pair, void, undefined> {
    return this.entries();
  }

  toString(): string {
    return host.writeForm(this.#pairs);
  }

  #tell(): void {
    this.#changed?.(this.toString());
  }
}

refuseInJson(URLSearchParams, 'write `Object.fromEntries(params)` or `String(params)`');

function matches(pair: Readonly<Pair>, name: string, value?: string): boolean {
  return pair[0] === textOf(name) && (value === undefined || pair[1] === textOf(value));
}

/** An address. */
export class URL {
  #parts: host.UrlParts;
  #params: URLSearchParams | undefined;

  constructor(url: string | { toString(): string }, base?: string | { toString(): string }) {
    this.#parts = parsed(url, base) ?? invalid(url, base);
  }

  /** Whether it is an address. */
  static canParse(url: string | { toString(): string }, base?: string | { toString(): string }): boolean {
    return parsed(url, base) !== undefined;
  }

  /** The address; null where it is not one. */
  static parse(url: string | { toString(): string }, base?: string | { toString(): string }): URL | null {
    return URL.canParse(url, base) ? new URL(url, base) : null;
  }

  get href(): string {
    return this.#parts.href;
  }

  set href(value: string) {
    this.#take(parsed(value, undefined) ?? invalid(value, undefined));
  }

  /** Scheme, host and port; `null` as a text where the scheme has none. */
  get origin(): string {
    return this.#parts.origin;
  }

  get protocol(): string {
    return this.#parts.protocol;
  }

  set protocol(value: string) {
    this.#change('protocol', value);
  }

  get username(): string {
    return this.#parts.username;
  }

  set username(value: string) {
    this.#change('username', value);
  }

  get password(): string {
    return this.#parts.password;
  }

  set password(value: string) {
    this.#change('password', value);
  }

  get host(): string {
    return this.#parts.host;
  }

  set host(value: string) {
    this.#change('host', value);
  }

  get hostname(): string {
    return this.#parts.hostname;
  }

  set hostname(value: string) {
    this.#change('hostname', value);
  }

  get port(): string {
    return this.#parts.port;
  }

  set port(value: string) {
    this.#change('port', value);
  }

  get pathname(): string {
    return this.#parts.pathname;
  }

  set pathname(value: string) {
    this.#change('pathname', value);
  }

  get search(): string {
    return this.#parts.search;
  }

  set search(value: string) {
    this.#change('search', value);
  }

  get hash(): string {
    return this.#parts.hash;
  }

  set hash(value: string) {
    this.#change('hash', value);
  }

  /** What stands behind the `?`; what is changed in it changes the address. */
  get searchParams(): URLSearchParams {
    if (this.#params === undefined) {
      this.#params = new URLSearchParams(this.search);
      follow(this.#params, (query) => {
        this.#parts = host.changeUrl(this.href, 'search', query) ?? this.#parts;
      });
    }
    return this.#params;
  }

  toString(): string {
    return this.href;
  }

  toJSON(): string {
    return this.href;
  }

  #change(part: Exclude<keyof host.UrlParts, 'href' | 'origin'>, value: string): void {
    // What does not fit leaves the address as it was.
    const parts = host.changeUrl(this.href, part, textOf(value));
    if (parts !== undefined) this.#take(parts);
  }

  #take(parts: host.UrlParts): void {
    const isSame = parts.search === this.#parts.search;
    this.#parts = parts;
    if (this.#params !== undefined && !isSame) refill(this.#params, parts.search.slice(1));
  }
}

function parsed(url: unknown, base: unknown): host.UrlParts | undefined {
  return host.parseUrl(textOf(url), base === undefined ? undefined : textOf(base));
}

function invalid(url: unknown, base: unknown): never {
  const shown = JSON.stringify(textOf(url).slice(0, 200));
  const against = base === undefined ? '' : ` against ${JSON.stringify(textOf(base).slice(0, 200))}`;
  const remedy = base === undefined ? '; write it with its scheme, as in https://example.com/, or give a base' : '';
  throw Object.assign(new TypeError(`${shown} is not a URL${against}${remedy}`), { code: 'ERR_INVALID_URL', input: textOf(url) });
}
