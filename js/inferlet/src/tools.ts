/** Tools: what the model is given, the calls that it makes, and their answers. */

import * as host from 'pie:host';
import { show, toText } from './arguments.js';
import { EventDecoder } from './decoding.js';
import { InferletError, wrongType } from './errors.js';
import { Grammar, GrammarConstraint, Matcher } from './grammar.js';
import { toJson } from './json.js';
import { modelHandle, type Model } from './model.js';

/** A call that the model made. */
export interface Call {
  /** The name of the tool. */
  readonly name: string;
  /** Its arguments: a JSON object, as the model wrote it. */
  readonly args: string;
  /** Another name of `args`. */
  readonly arguments: string;
  /** The id that the model gave the call. */
  readonly id: string | undefined;
}

/** What the tokens of one `Decoder.feed` meant. */
export type Event =
  /** Nothing of a call. */
  | { readonly type: 'idle' }
  /** A call begins. */
  | { readonly type: 'start' }
  /** A whole call. */
  | ({ readonly type: 'call' } & Call)
  /** What began as a call and is none: its text, as it was written. */
  | { readonly type: 'malformed'; readonly text: string };

/**
 * A tool as the model is told of it; parameters are a JSON schema. Other properties, such as the function behind it,
 * are the program's own where they are functions.
 */
export interface Tool {
  /** What the model calls it by. */
  readonly name: string;
  /** What the model is told of it. */
  readonly description?: string;
  /** The JSON Schema of its arguments, which are an object. */
  readonly parameters?: object;
  /** Another name of `parameters`, as MCP has it. */
  readonly inputSchema?: object;
}

/** A tool, `{type: 'function', function: tool}`, or the JSON text of one of them. */
export type Schema = string | Tool | { readonly type: 'function'; readonly function: Tool };

/**
 * Whether the model is to call a tool: as it likes, none, at least one, or the one that is given by its name, once. A
 * tool has its name.
 */
export type Choice =
  | 'auto' | 'none' | 'required' | { readonly name: string }
  | { readonly type: 'function'; readonly function: { readonly name: string } };

/**
 * Finds the calls of tools in what the model says, inside thoughts too. Of a model whose template writes no calls every
 * event is idle.
 */
export class Decoder extends EventDecoder<Event> {
  /** A decoder for what `model` says. */
  constructor(model: Model) {
    super(host.toolDecoderCreate(modelHandle(model)), toEvent);
  }
}

/**
 * The tokens that give the model tools, behind other messages and before a question. On an empty context use
 * `ctx.equip`, which begins the conversation.
 * @throws InferletError `invalid-argument` for a schema of another form, a name that cannot stand in a call, and two
 * tools of one name; `template-error` where the template has no place for tools.
 */
export function equipPrefix(model: Model, schemas: Iterable<Schema>): Uint32Array {
  return host.equipTokens(modelHandle(model), toSchemas(schemas));
}

/**
 * The tokens of the answer of a tool, behind a turn whose end is not written yet. A string stands as it is, anything
 * else as JSON; `id` is that of the call, where the model gave one.
 */
export function answerPrefix(model: Model, name: string, value: unknown, id?: string): Uint32Array {
  return host.answerTokens(modelHandle(model), toText(name, 'name'), toAnswer(value), toId(id));
}

/** The first call of a finished text; `undefined` where it has none. */
export function parseCall(model: Model, text: string): Call | undefined {
  const call = host.parseCall(modelHandle(model), toText(text, 'text'));
  return call && toCall(call);
}

/**
 * The grammar of what the model may say where it was given these tools: no call in it is malformed. A call is one of
 * the tools, its arguments fit their schema, and it is written as the template of the model writes calls, several where
 * the template writes several. `undefined` where the template has no way that can be enforced.
 * @throws InferletError `invalid-argument` for a choice that is not among the tools, and as `equipPrefix`;
 * `invalid-grammar` for parameters that cannot be enforced.
 */
export function nativeGrammar(model: Model, schemas: Iterable<Schema>, choice: Choice = 'required'): Grammar | undefined {
  const handle = host.nativeGrammar(modelHandle(model), toSchemas(schemas), toChoice(choice, 'choice'));
  return handle && Grammar.of(handle);
}

/** A matcher of `nativeGrammar`, for a `GrammarConstraint`; `undefined` and errors are those of it. */
export function nativeMatcher(model: Model, schemas: Iterable<Schema>, choice: Choice = 'required'): Matcher | undefined {
  const grammar = nativeGrammar(model, schemas, choice);
  return grammar && new Matcher(grammar, model.tokenizer());
}

/**
 * What a choice among the tools of a context asks of a generation.
 * @internal
 */
export function toChoiceConstraints(context: host.ContextHandle, model: Model, choice: Choice): GrammarConstraint[] {
  const handle = host.choiceGrammar(context, toChoice(choice, 'toolChoice'));
  return handle === undefined ? [] : [GrammarConstraint.fromGrammar(Grammar.of(handle), model)];
}

function toChoice(choice: Choice, name: string): host.ToolChoice {
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { type: choice };
  const given: unknown = (choice as { function?: unknown } | null)?.function;
  const tool = (typeof given === 'object' ? given : choice) as { name?: unknown } | null;
  if (typeof tool?.name === 'string') return { type: 'named', value: toText(tool.name, name) };
  const word: unknown = choice;
  const meant = typeof word === 'string' ? `; for the tool of that name write { name: ${show(word)} }` : '';
  throw wrongType(`${name} must be 'auto', 'none', 'required', a tool or {name}; it is ${show(choice)}${meant}`);
}

/**
 * The JSON texts of schemas.
 * @internal
 */
export function toSchemas(schemas: Iterable<Schema>): string[] {
  if (typeof schemas === 'string' || typeof schemas?.[Symbol.iterator] !== 'function') {
    throw new InferletError('invalid-argument', 'schemas must be a list of tools; put a single one in brackets');
  }
  return Array.from(schemas, (schema, place) => {
    if (typeof schema === 'string') return toText(schema, `schemas[${place}]`);
    return toJson(told(schema), `schemas[${place}]`, 'invalid-argument');
  });
}

/** A schema without the functions that a program keeps with it. */
function told(schema: object): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => typeof value !== 'function' && value !== undefined));
}

/**
 * The text of an answer.
 * @internal
 */
export function toAnswer(value: unknown): string {
  if (typeof value === 'string') return toText(value, 'value');
  if (value === undefined) {
    throw wrongType('the answer of the tool is undefined; write `return` in front of what the tool found, and give null for nothing');
  }
  return toJson(value, 'value', 'invalid-argument');
}

/**
 * The id of a call.
 * @internal
 */
export function toId(id: string | undefined): string | undefined {
  return id === undefined ? undefined : toText(id, 'id');
}

function toCall({ name, args, id }: host.ToolCall): Call {
  return { name, args, arguments: args, id };
}

function toEvent(event: host.ToolEvent): Event {
  switch (event.type) {
    case 'idle':
    case 'start':
      return event;
    case 'call':
      return { type: 'call', ...toCall(event.value) };
    case 'malformed':
      return { type: 'malformed', text: event.value };
  }
}
