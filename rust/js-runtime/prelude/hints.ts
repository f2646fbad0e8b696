/**
 * What to do about common mistakes, where the words of QuickJS do not say it: it names neither what is not a function
 * nor where an export is missing. Loaded when a program has failed.
 */

import * as host from 'pie:host';
import { foundNothing, namesThereAre } from 'pie:inferlet/absent.js';
import * as sdk from 'pie:inferlet/index.js';
import { callees, declares, escaped, giverIn, giverOf, isPlain } from './calls.js';
import { inSource, nearest, type Place } from './nearest.js';

/** What programs import from `inferlet`, by name. */
const exported: Readonly<Record<string, unknown>> = sdk;

/** Words of QuickJS, and who knows more. */
const KNOWN: readonly (readonly [RegExp, (found: RegExpExecArray, place: Place | undefined, frames: string) => string | undefined])[] = [
  [/^(?:[\w$.]+ is )?not a function$/, (_, place) => notAFunction(place)],
  [/^'?([\w$]+)'? is not defined$/, ([, name]) => notDefined(name!)],
  [/^Could not find export '(.+)' in module '(.+)'$/, ([, name, module]) => notExported(name!, module!)],
  [/^cannot read propert(?:y|ies) .*\bundefined$/, ([message], place) => notAwaited(message!, place) ?? notFound(message!)],
  [/^value is not iterable$/, (_, place) => notIterable(place)],
  [/^(?:class constructors must be invoked with 'new'|must be called with new)$/, (_, place, frames) => withoutNew(place, frames)],
];

/** Longer messages and lines are no common mistakes. */
const MAX_CHARS = 2000;

/** Calls that a message names. */
const MAX_SHOWN = 2;

/** What is looked for under other names or in another place, as programs write it. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  'Adapter.change': 'change is a method of an adapter: `Adapter.open(model, name).change(changes)`',
  'Adapter.delete': 'destroy is a method of an adapter: `Adapter.open(model, name).destroy()`',
  'Adapter.destroy': 'destroy is a method of an adapter: `Adapter.open(model, name).destroy()`',
  'Adapter.fork': 'fork is a method of an adapter: `Adapter.open(model, name).fork(newName)`',
  'Adapter.load': 'load is a method of an adapter: `Adapter.create(model, name).load(folder)`',
  'Adapter.save': 'save is a method of an adapter: `Adapter.open(model, name).save(folder)`',
  'Context.load': '`Context.open(model, name)` opens a snapshot',
  'runtime.call': '`runtime.spawn(program, input)` starts another program, and `await child.wait()` gives what it returned',
};

/** Functions of classes that are looked for in their instances. */
const OF_CLASSES: ReadonlySet<string> = new Set(['Adapter.open', 'Context.open', 'Context.take']);

/** What makes an instance of a class whose constructor is not for programs. */
const MAKERS: Readonly<Record<string, string>> = {
  Adapter: 'Adapter.create(model, name)',
  Child: 'runtime.spawn(program, input)',
  Forward: 'ctx.forward()',
  GenStep: 'for await (const step of g)',
  Generator: 'ctx.generate(sampler)',
  Grammar: 'Grammar.fromJsonSchema(schema)',
  McpSession: 'mcp.connect(name)',
  Model: 'Model.load(name)',
  Output: 'await step.execute()',
  ProbeHandle: 'step.probe(index, probe)',
  SampleHandle: 'pass.sample(indices, sampler)',
  Sampler: 'Sampler.topP()',
  Subscription: 'messaging.subscribe(topic)',
  TextStream: 'g.texts()',
  Tokenizer: 'model.tokenizer()',
};

/** Names like those of classes that are called without `new`: of the language, and the probes of the SDK. */
const CALLABLE: ReadonlySet<string> = new Set([
  'AggregateError', 'Array', 'BigInt', 'Boolean', 'Date', 'Error', 'EvalError', 'Function', 'Number', 'Object', 'RangeError',
  'ReferenceError', 'RegExp', 'String', 'Symbol', 'SyntaxError', 'TypeError', 'URIError', 'Distribution', 'Embedding', 'Entropy',
  'Logits', 'Logprob', 'Logprobs',
]);

/** The whole message that stands in place of `message`; undefined where that says enough. */
export function explained(message: string, frames: string): string | undefined {
  if (message.length > MAX_CHARS) return undefined;
  for (const [words, explain] of KNOWN) {
    const found = words.exec(message);
    if (found !== null) return explain(found, inSource(frames), frames);
  }
  return undefined;
}

/** What the function of an entry is called that was meant as `main`; undefined where there is none like it. */
export function meantAsMain(entry: string): string | undefined {
  const text = host.programFile(entry);
  if (text === undefined) return undefined;
  const functions = [...text.matchAll(/\bfunction\s*\*?\s*([\w$]+)|\b(?:const|let|var)\s+([\w$]+)\s*=\s*(?:async\b|\(|[\w$]+\s*=>)/g)];
  const names = functions.map(([, declared, assigned]) => (declared ?? assigned)!);
  if (names.includes('main')) return 'it has a function `main`: write `export` in front of it';
  const name = nearest('main', names);
  return name === undefined ? undefined : `did you mean \`main\` by the function \`${name}\`?`;
}

const NO_FOLDER =
  "a program lies in no folder of the machine: its own data comes by `import data from './data.json'`, folders by `pie run --mount`, " +
  'and it keeps files below /scratch';

/** What there is not, and what there is for it. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  process:
    'a program has no process of the machine and no environment: its input comes to `main(input)`, its arguments by ' +
    'runtime.args(), and what it throws or returns is how it ends',
  require:
    "programs are modules: write `import { name } from './file.js'`. Packages of npm are named under `dependencies` of " +
    'package.json and bundled where the folder is run or built: `pie run .`',
  module: 'programs are modules: write `export`',
  exports: 'programs are modules: write `export`',
  Buffer: 'use Uint8Array, TextEncoder, TextDecoder, atob and btoa',
  __dirname: NO_FOLDER,
  __filename: NO_FOLDER,
  global: 'write globalThis',
  window: 'a program runs beside the model and not in a browser',
  document: 'a program runs beside the model and not in a browser',
  navigator: 'a program runs beside the model and not in a browser',
  localStorage: 'keep files below /scratch by node:fs/promises',
  alert: 'write console.log or session.send',
  prompt: 'the client answers by await session.receive(), whose messages are the lines of stdin under pie run',
  Deno: 'a program has the globals of the Web and no runtime of the machine',
  Bun: 'a program has the globals of the Web and no runtime of the machine',
  setImmediate: 'use setTimeout(callback, 0) or queueMicrotask(callback)',
  Worker: 'a program has one thread: promises wait side by side under Promise.all, and runtime.spawn starts another program',
  WebSocket: 'a program asks servers by fetch, where --allow-net allows them',
  XMLHttpRequest: 'a program asks servers by fetch, where --allow-net allows them',
  EventSource: 'a program asks servers by fetch, whose body is a stream',
  Intl: 'dates and numbers have their plain forms only',
};

function notDefined(name: string): string {
  const elsewhere = Object.hasOwn(ELSEWHERE, name) ? ELSEWHERE[name] : undefined;
  if (elsewhere !== undefined) return `${name} is not defined in a program: ${elsewhere}`;
  const names = Object.keys(exported);
  if (names.includes(name)) return `${name} is not defined; write \`import { ${name} } from 'inferlet'\``;
  const near = nearest(name, [...names, ...Object.getOwnPropertyNames(globalThis)]);
  if (near === undefined) return `${name} is not defined; define or import it first`;
  const source = names.includes(near) ? `, which is imported from 'inferlet'` : '';
  return `${name} is not defined; did you mean ${near}${source}?`;
}

/** What is read of a promise is undefined: says so where the source reads a promise at the place, or in its line. */
function notAwaited(message: string, place: Place | undefined): string | undefined {
  if (place === undefined || place.line.length > MAX_CHARS) return undefined;
  const lineBegin = place.text.lastIndexOf('\n', place.offset - 1) + 1;
  for (const { 1: root, 2: read, index } of place.line.matchAll(/([\w$]+|\))((?:\s*\??\.\s*[\w$]+)+|\s*(?:\?\.)?\[)/g)) {
    const begin = lineBegin + index;
    const giver = root === ')' ? giverOf('..', begin + 1, place.text) : giverOf(root!, begin, place.text);
    if (giver === undefined) continue;
    return root === ')' ? `${message}; ${awaitIn(giver, read!.trim())}` : `${message}; ${awaitFor(root!, giver)}`;
  }
  return undefined;
}

/**
 * What is read of is undefined, in a program in which `open` gave that: says so where what was to be opened has what is
 * read.
 */
function notFound(message: string): string | undefined {
  const name = /propert(?:y|ies) '?([\w$]+)'? of/.exec(message)?.[1];
  if (name === undefined) return undefined;
  const found = foundNothing.filter((call) => {
    const kind = exported[call.split('.')[0]!] as { readonly prototype: object } | undefined;
    return kind !== undefined && name in kind.prototype;
  });
  if (found.length === 0) return undefined;
  const calls = found.slice(-MAX_SHOWN).map((call) => `\`${call}\``).join(' and ');
  return `${message}; ${calls} found nothing of that name and gave undefined: test it, and make what is missing${namesThereAre(found.at(-1)!)}`;
}

/** What a loop or a spread reads is a promise, or is read by `for await`. */
function notIterable(place: Place | undefined): string | undefined {
  if (place === undefined || place.line.length > MAX_CHARS) return undefined;
  const lineBegin = place.text.lastIndexOf('\n', place.offset - 1) + 1;
  for (const { 0: head, index } of place.line.matchAll(/(?:\bof\s+|\.\.\.|=\s*)(?=[\w$])/g)) {
    const begin = lineBegin + index + head!.length;
    const name = /^[\w$]+/.exec(place.text.slice(begin))![0]!;
    const given = giverIn(place.text, begin);
    if (given !== undefined) return `value is not iterable: ${given}(...) gives a promise; write \`await\` before it`;
    const giver = giverOf(name, begin, place.text);
    if (giver !== undefined) return `value is not iterable: ${awaitFor(name, giver)}`;
    const stream = streamAt(place.text, begin, name);
    if (stream !== undefined) return `value is not iterable: ${stream} gives one after the other, as they come; write \`for await (... of ...)\``;
  }
  return undefined;
}

/**
 * What the expression at an offset is, which begins with a name, where only `for await` reads it: a body, or what an
 * async generator gives.
 */
function streamAt(text: string, begin: number, name: string): string | undefined {
  const expression = /^[\w$.]+/.exec(text.slice(begin))![0]!;
  if (expression.endsWith('.body')) return expression;
  return new RegExp(`\\basync\\s+function\\s*\\*\\s*${escaped(name)}\\b`).test(text) ? `${name}(...)` : undefined;
}

function awaitFor(name: string, giver: string): string {
  return `${name} is a promise, which ${giver}(...) gave; write \`await\` before that call: \`${name} = await ${giver}(...)\``;
}

function awaitIn(giver: string, read: string): string {
  return `${giver}(...) gives a promise; write \`await\` before it: \`(await ${giver}(...))${read}\``;
}

/** Names the function that is none, by the source at the place of the error. */
function notAFunction(place: Place | undefined): string | undefined {
  if (place === undefined || place.line.length > MAX_CHARS) return undefined;
  let [fallback, guess] = [undefined as string | undefined, undefined as string | undefined];
  for (const { owner, name, begin, isNear } of callees(place)) {
    if (!isNear && (fallback ?? guess) !== undefined) break;
    const whole = owner === undefined ? name : `${owner}.${name}`;
    const found = owner === undefined ? undefined : known(owner);
    if (found !== undefined) {
      if (typeof (found as Record<string, unknown>)[name] === 'function') continue;
      return `${whole} is not a function${meantIn(found, owner!, name)}`;
    }
    if (owner === undefined) {
      if (!isFunction(name) && !declares(name, place.text)) fallback ??= `${whole} is not a function`;
      continue;
    }
    const giver = name in Promise.prototype ? undefined : giverOf(owner, begin, place.text);
    if (giver !== undefined) {
      return `${whole} is not a function; ${owner === '..' ? awaitIn(giver, `.${name}(...)`) : awaitFor(owner, giver)}`;
    }
    if (CHILD_METHODS.test(name) && isAwaitedChild(owner, place.text)) {
      return `${whole} is not a function; \`await runtime.spawn(...)\` gives what the child returned: leave that \`await\` out`;
    }
    const ofClass = `${instanceOf(owner, place.text)}.${name}`;
    if (OF_CLASSES.has(ofClass)) fallback ??= `${whole} is not a function; ${name} is a function of the class: \`${ofClass}(model, name)\``;
    else if (!methods().includes(name)) fallback ??= `${whole} is not a function${meant(name, methods())}`;
    else if (isNear && !isPlain(owner, begin, place.text)) guess ??= `${whole} is not a function; where ${plainOwner(owner)} is a promise, write \`await\` before the call that gives it`;
  }
  return fallback ?? guess;
}

/** Names the class that was called as a function, by the source at the place of the error. */
function withoutNew(place: Place | undefined, frames: string): string | undefined {
  if (place === undefined || place.line.length > MAX_CHARS) return undefined;
  for (const { owner, name, begin } of callees(place)) {
    const whole = owner === undefined ? name : `${owner}.${name}`;
    const isOwn = owner === undefined && isOwnClass(name, place.text);
    if (!isOwn && !isKnownClass(whole, name)) continue;
    if (/\bnew\s+$/.test(place.text.slice(Math.max(0, begin - MAX_CHARS), begin))) continue;
    const maker = !isOwn && Object.hasOwn(MAKERS, whole) ? MAKERS[whole]! : `new ${whole}(...)`;
    return calledWithoutNew(whole, maker);
  }
  // A class of the program refuses the call itself, so that the innermost frame is its own.
  const refusing = /^\s*at ([\w$]+) \(/.exec(frames)?.[1];
  return refusing !== undefined && isOwnClass(refusing, place.text) ? calledWithoutNew(refusing, `new ${refusing}(...)`) : undefined;
}

function calledWithoutNew(name: string, maker: string): string {
  return `${name} is a class, which is not called as a function: write \`${maker}\``;
}

/** Whether a name with dots is a class of the SDK or of the language that is not called without `new`. */
function isKnownClass(whole: string, name: string): boolean {
  return /^[A-Z]/.test(name) && !CALLABLE.has(name) && typeof known(whole) === 'function';
}

/** Whether a source declares a class of this name, or imports what is called so from another file of the program. */
function isOwnClass(name: string, text: string): boolean {
  const word = escaped(name);
  const declared = `\\bclass\\s+${word}\\s*(?:[<{]|extends\\b|implements\\b)|(?<![\\w$.])${word}\\s*=\\s*class\\b`;
  const imported = `\\bimport\\b[^;'"]*(?<![\\w$])${word}(?![\\w$])[^;'"]*\\bfrom\\s*['"]\\.`;
  return new RegExp(declared).test(text) || (/^[A-Z]/.test(name) && new RegExp(imported).test(text));
}

/** Methods of a child, which what it returns does not have. */
const CHILD_METHODS = /^(?:cancel|wait)$/;

/** Whether a name holds what a child returned, as it is awaited where it is started. */
function isAwaitedChild(owner: string, text: string): boolean {
  return /^[\w$]+$/.test(owner) && new RegExp(`(?<![\\w$])${escaped(owner)}\\s*=\\s*await\\s+(?:runtime\\s*\\.\\s*)?spawn\\s*\\(`).test(text);
}

/** Of which class a name holds an instance, as far as its source says that: it is typed, or made by that class. */
function instanceOf(owner: string, text: string): string | undefined {
  const name = owner.slice(owner.lastIndexOf('.') + 1);
  if (!/^[\w$]+$/.test(name)) return undefined;
  const word = `(?<![\\w$])${escaped(name)}`;
  const made = new RegExp(`${word}\\s*(?::\\s*|=\\s*(?:new\\s+)?)(Adapter|Context)\\b`).exec(text);
  // An adapter is not copied without a name.
  return made?.[1] ?? (new RegExp(`${word}\\s*=\\s*[\\w$.]+\\.fork\\s*\\(\\s*\\)`).test(text) ? 'Context' : undefined);
}

/** What stands before the dot, in words. */
function plainOwner(owner: string): string {
  return owner.startsWith('..') ? 'what stands before the dot' : owner;
}

/** Whether a name is a function of every program. */
function isFunction(name: string): boolean {
  return typeof (globalThis as unknown as Record<string, unknown>)[name] === 'function' || typeof exported[name] === 'function';
}

/** What was meant by a name that something known does not have. */
function meantIn(found: object, owner: string, name: string): string {
  const other = Object.hasOwn(OTHER_NAMES, `${owner}.${name}`) ? OTHER_NAMES[`${owner}.${name}`] : undefined;
  if (other !== undefined) return `; ${other}`;
  if (typeof found === 'function' && 'prototype' in found && ['create', 'new'].includes(name)) return `; write \`new ${owner}(...)\``;
  return meant(name, Object.getOwnPropertyNames(found));
}

function meant(name: string, candidates: readonly string[]): string {
  const near = nearest(name, candidates);
  return near === undefined ? '' : `; did you mean ${near}?`;
}

/** What a name with dots stands for, where it is of the SDK or a global. */
function known(path: string): object | undefined {
  const [root, ...parts] = path.split('.');
  let value = exported[root!] ?? (globalThis as unknown as Record<string, unknown>)[root!];
  for (const part of parts) value = isObject(value) ? (value as Record<string, unknown>)[part] : undefined;
  return isObject(value) ? value : undefined;
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** The names of the methods that values of the SDK and of the language have. */
function methods(): string[] {
  const own = Object.values(exported).filter((value) => typeof value === 'function');
  const classes = [...own, Array, String, Map, Set, Promise, Uint32Array] as { readonly prototype?: object }[];
  const names = classes.flatMap((one) => [one, one.prototype ?? {}].flatMap((owner) => Object.getOwnPropertyNames(owner)));
  return [...new Set(names)].filter((name) => !['constructor', 'length', 'name', 'prototype'].includes(name));
}

/** Where a name is imported that a module does not export, and which name was meant. */
function notExported(name: string, module: string): string {
  const shown = module === 'pie:inferlet/index.js' ? 'inferlet' : module;
  const place = importOf(name, shown);
  const names = shown === 'inferlet' ? Object.keys(exported) : exportsOf(host.programFile(module) ?? '');
  const near = name === 'default' ? undefined : nearest(name, names);
  const absent = name === 'default' ? withoutDefault(shown, names) : `where it is a type, write \`import type { ${name} }\``;
  const remedy = near === undefined ? absent : `did you mean '${near}'?`;
  return `Could not find export '${name}' in module '${shown}'${place === undefined ? '' : ` (${place})`}; ${remedy}`;
}

/** What to write in place of the import of a default that a module does not export. */
function withoutDefault(module: string, names: readonly string[]): string {
  if (module === 'inferlet') {
    return "it has no default: write `import * as inferlet from 'inferlet'`, or name what is used, as `import { Context, Model } from 'inferlet'`";
  }
  if (names.length === 0) return 'it has no default: write `export default` in front of what is meant';
  return `it has no default: name what is used, as \`import { ${names[0]} }\`, or write \`export default\` in front of what is meant`;
}

/** Where names stand between braces in an import, or one without, which is the default. */
const NAMED_IMPORT = /\{([^{}]*)\}\s*from\s*['"]([^'"]+)['"]/g;
const DEFAULT_IMPORT = /\bimport\s+([A-Za-z_$][\w$]*)\s*(?:,[^'";]*)?\bfrom\s*['"]([^'"]+)['"]/g;

/** The place at which a file of the program imports a name from a module. */
function importOf(name: string, module: string): string | undefined {
  const isDefault = name === 'default';
  const wanted = isDefault ? /^/ : new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`);
  const stem = (path: string): string => path.split('/').at(-1)!.replace(/\.\w+$/, '');
  for (const path of host.programPaths()) {
    if (!/\.[mc]?[jt]s$/.test(path)) continue;
    const text = host.programFile(path) ?? '';
    for (const { 0: whole, 1: names, 2: from, index } of text.matchAll(isDefault ? DEFAULT_IMPORT : NAMED_IMPORT)) {
      const isIt = module === 'inferlet' ? /(?:^|\/)inferlet$/.test(from!) : from!.startsWith('.') && stem(from!) === stem(module);
      const at = isIt ? wanted.exec(names!)?.index : undefined;
      if (at === undefined) continue;
      const before = text.slice(0, index + whole!.indexOf(names!, 1) + at).split('\n');
      return `${path}:${before.length}:${before.at(-1)!.length + 1}`;
    }
  }
  return undefined;
}

/** The names that a source exports, as far as its text says. */
function exportsOf(text: string): string[] {
  const declared = text.matchAll(/\bexport\s+(?:async\s+)?(?:function\s*\*?|class|const|let|var)\s*([\w$]+)/g);
  const listed = text.matchAll(/\bexport\s*\{([^{}]*)\}/g);
  const names = Array.from(listed, ([, list]) => list!.split(',').map((item) => item.trim().split(/\s+as\s+/).at(-1)!));
  return [...Array.from(declared, ([, name]) => name!), ...names.flat()].filter((name) => name !== '');
}
