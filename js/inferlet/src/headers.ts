/** Headers of a request or of an answer. */

import { refuseInJson } from './json.js';

/** What headers are made of. */
export type HeadersInit = Headers | Iterable<readonly [string, string]> | Readonly<Record<string, string>>;

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[^\0\r\n\u0100-\uffff]*$/;

/** Headers by names in any case; they are listed in the order of their names. */
export class Headers implements Iterable<[string, string]> {
  readonly #values = new Map<string, string[]>();

  constructor(init?: HeadersInit | null) {
    if (init === undefined || init === null) return;
    if (typeof init !== 'object') throw new TypeError('headers are an object, or a list of names with values');
    const pairs = Symbol.iterator in init ? init : Object.entries(init);
    for (const pair of pairs as Iterable<readonly [string, string]>) {
      const [name, value, ...more] = [...pair];
      if (name === undefined || value === undefined || more.length > 0) throw new TypeError('each of a list of headers is [name, value]');
      this.append(name, value);
    }
  }

  append(name: string, value: string): void {
    const [key, text] = [nameOf(name), valueOf(name, value)];
    const values = this.#values.get(key);
    if (values === undefined) this.#values.set(key, [text]);
    else values.push(text);
  }

  set(name: string, value: string): void {
    this.#values.set(nameOf(name), [valueOf(name, value)]);
  }

  /** Its values, joined by commas; null where there is none. */
  get(name: string): string | null {
    return this.#values.get(nameOf(name))?.join(', ') ?? null;
  }

  /** Each cookie that is set, by itself. */
  getSetCookie(): string[] {
    return [...(this.#values.get('set-cookie') ?? [])];
  }

  has(name: string): boolean {
    return this.#values.has(nameOf(name));
  }

  delete(name: string): void {
    this.#values.delete(nameOf(name));
  }

  forEach(callback: (value: string, name: string, headers: Headers) => void, self?: unknown): void {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }

  *entries(): Generator<[string, string], void, undefined> {
    for (const name of [...this.#values.keys()].sort()) {
      const values = this.#values.get(name) ?? [];
      if (name === 'set-cookie') yield* values.map((value): [string, string] => [name, value]);
      else yield [name, values.join(', ')];
    }
  }

  *keys(): Generator<string, void, undefined> {
    for (const [name] of this) yield name;
  }

  *values(): Generator<string, void, undefined> {
    for (const [, value] of this) yield value;
  }

  [Symbol.iterator](): Generator<[string, string], void, undefined> {
    return this.entries();
  }
}

refuseInJson(Headers, 'write `Object.fromEntries(headers)`');

function nameOf(name: string): string {
  const text = String(name);
  if (!NAME.test(text)) throw new TypeError(`${JSON.stringify(text)} is not the name of a header`);
  return text.toLowerCase();
}

function valueOf(name: string, value: string): string {
  const text = String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, '');
  if (!VALUE.test(text)) throw new TypeError(`the value of the header ${name} holds a line break, NUL, or a character beyond U+00FF`);
  return text;
}
