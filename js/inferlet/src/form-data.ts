/** `FormData`: the fields of a form, texts and files. */

import { Blob, File } from './blob.js';
import { refuseInJson } from './json.js';

/** The value of a field. */
export type FormDataValue = string | File;

/** Fields of a form, in the order in which they were added. A name may come more than once. */
export class FormData implements Iterable<[string, FormDataValue]> {
  #fields: [string, FormDataValue][] = [];

  append(name: string, value: string | Blob, filename?: string): void {
    this.#fields.push(field(name, value, filename));
  }

  /** Puts one value in the place of all of that name. */
  set(name: string, value: string | Blob, filename?: string): void {
    const made = field(name, value, filename);
    const first = this.#fields.findIndex(([other]) => other === made[0]);
    if (first < 0) {
      this.#fields.push(made);
      return;
    }
    this.#fields = this.#fields.filter(([other], index) => index === first || other !== made[0]);
    this.#fields[first] = made;
  }

  /** The first value of a name; null where there is none. */
  get(name: string): FormDataValue | null {
    return this.#fields.find(([other]) => other === textOf(name))?.[1] ?? null;
  }

  getAll(name: string): FormDataValue[] {
    return this.#fields.filter(([other]) => other === textOf(name)).map(([, value]) => value);
  }

  has(name: string): boolean {
    return this.#fields.some(([other]) => other === textOf(name));
  }

  delete(name: string): void {
    this.#fields = this.#fields.filter(([other]) => other !== textOf(name));
  }

  forEach(callback: (value: FormDataValue, name: string, form: FormData) => void, self?: unknown): void {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }

  *entries(): Generator<[string, FormDataValue], void, undefined> {
    for (let index = 0; index < this.#fields.length; index++) yield [...this.#fields[index]!];
  }

  *keys(): Generator<string, void, undefined> {
    for (const [name] of this.entries()) yield name;
  }

  *values(): Generator<FormDataValue, void, undefined> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): Generator<[string, FormDataValue], void, undefined> {
    return this.entries();
  }
}

function textOf(value: unknown): string {
  return String(value).toWellFormed();
}

function field(name: string, value: string | Blob, filename: string | undefined): [string, FormDataValue] {
  if (!(value instanceof Blob)) {
    if (filename !== undefined) throw new TypeError('a text has no file name; give a Blob or a File');
    return [textOf(name), textOf(value)];
  }
  if (value instanceof File && filename === undefined) return [textOf(name), value];
  const { type } = value;
  const lastModified = value instanceof File ? { lastModified: value.lastModified } : {};
  return [textOf(name), new File([value], filename ?? 'blob', { type, ...lastModified })];
}

refuseInJson(FormData, 'write `Object.fromEntries(form)`');
