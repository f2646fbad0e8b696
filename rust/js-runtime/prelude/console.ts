/** `console`. What it writes is a part of the output of the program. */

import * as host from 'pie:host';

type Stream = 'stdout' | 'stderr';

/** Deeper groups are not moved further to the right. */
const MAX_INDENT = 40;

let inspectValue: ((value: unknown) => string) | undefined;
let indent = '';
const counts = new Map<string, number>();
const timers = new Map<string, number>();

function inspect(value: unknown): string {
  inspectValue ??= (host.importNow('pie:runtime/inspect.js') as { inspect: (value: unknown) => string }).inspect;
  return inspectValue(value);
}

/** A value as a line has it: a string as it is, anything else as it would be read in a program. */
function shown(value: unknown): string {
  return typeof value === 'string' ? value.toWellFormed() : inspect(value);
}

/** What stands for a directive of a format; undefined for what is not one. */
function formatted(directive: string, value: unknown): string | undefined {
  const number = (read: (value: unknown) => number): string => (typeof value === 'symbol' ? 'NaN' : String(read(value)));
  switch (directive) {
    case 's':
      return typeof value === 'object' && value !== null ? inspect(value) : String(value).toWellFormed();
    case 'd':
      return typeof value === 'bigint' ? `${value}n` : number(Number);
    case 'i':
      return typeof value === 'bigint' ? `${value}n` : number((given) => Number.parseInt(String(given), 10));
    case 'f':
      return number((given) => Number.parseFloat(String(given)));
    case 'j':
      return JSON.stringify(value) ?? 'undefined';
    case 'o':
    case 'O':
      return inspect(value);
    case 'c':
      return ''; // styles are of browsers
    default:
      return undefined;
  }
}

/** Values as one line; where the first one is a format, its directives take those that follow. */
function line(values: readonly unknown[]): string {
  const [format, ...rest] = values;
  if (typeof format !== 'string' || rest.length === 0 || !format.includes('%')) return values.map(shown).join(' ');
  const head = format.replace(/%([sdifjoOc%])/g, (whole, directive: string) => {
    if (directive === '%') return '%';
    return rest.length === 0 ? whole : (formatted(directive, rest.shift()) ?? whole);
  });
  return [head.toWellFormed(), ...rest.map(shown)].join(' ');
}

function write(stream: Stream, text: string): void {
  host.write(stream, indent === '' ? `${text}\n` : `${indent}${text.replaceAll('\n', `\n${indent}`)}\n`);
}

/** Writes values as one line. */
function log(stream: Stream, values: readonly unknown[]): void {
  write(stream, line(values));
}

function elapsed(label: string, values: readonly unknown[]): boolean {
  const began = timers.get(label);
  if (began === undefined) log('stderr', [`there is no timer '${label}'; console.time begins one`]);
  else log('stdout', [`${label}: ${(host.elapsedMs() - began).toFixed(3)} ms`, ...values]);
  return began !== undefined;
}

function group(values: readonly unknown[]): void {
  if (values.length > 0) log('stdout', values);
  if (indent.length < MAX_INDENT) indent += '  ';
}

/** A list of rows as lines with columns; anything else as `log` writes it. */
function table(data: unknown, wanted?: readonly string[]): void {
  if (typeof data !== 'object' || data === null) {
    log('stdout', [data]);
    return;
  }
  const entries: [unknown, unknown][] = data instanceof Map ? [...data] : Object.entries(data instanceof Set ? [...data] : data);
  const isRow = (row: unknown): row is Record<string, unknown> => typeof row === 'object' && row !== null;
  const columns = wanted ?? [...new Set(entries.flatMap(([, row]) => (isRow(row) ? Object.keys(row) : [])))];
  const hasValues = entries.some(([, row]) => !isRow(row));
  const head = ['(index)', ...columns, ...(hasValues ? ['Values'] : [])];
  const cell = (row: unknown, column: string): string => (isRow(row) && Object.hasOwn(row, column) ? shown(row[column]) : '');
  const rows = entries.map(([key, row]) => [
    shown(key),
    ...columns.map((column) => cell(row, column)),
    ...(hasValues ? [isRow(row) ? '' : shown(row)] : []),
  ]);
  const widths = head.map((name, index) => rows.reduce((width, row) => Math.max(width, row[index]!.length), name.length));
  const written = [head, ...rows].map((row) => row.map((text, index) => text.padEnd(widths[index]!)).join(' | ').trimEnd());
  written.splice(1, 0, widths.map((width) => '-'.repeat(width)).join('-|-'));
  write('stdout', written.join('\n'));
}

export const console = {
  log: (...values: unknown[]): void => log('stdout', values),
  info: (...values: unknown[]): void => log('stdout', values),
  debug: (...values: unknown[]): void => log('stdout', values),
  warn: (...values: unknown[]): void => log('stderr', values),
  error: (...values: unknown[]): void => log('stderr', values),
  trace: (...values: unknown[]): void => log('stderr', values),
  dir: (value: unknown): void => write('stdout', inspect(value)),
  assert(condition: unknown, ...values: unknown[]): void {
    if (!condition) log('stderr', ['Assertion failed:', ...values]);
  },
  count(label: unknown = 'default'): void {
    const n = (counts.get(String(label)) ?? 0) + 1;
    counts.set(String(label), n);
    log('stdout', [`${String(label)}: ${n}`]);
  },
  countReset: (label: unknown = 'default'): void => void counts.delete(String(label)),
  time: (label: unknown = 'default'): void => void timers.set(String(label), host.elapsedMs()),
  timeLog: (label: unknown = 'default', ...values: unknown[]): void => void elapsed(String(label), values),
  timeEnd(label: unknown = 'default'): void {
    if (elapsed(String(label), [])) timers.delete(String(label));
  },
  group: (...values: unknown[]): void => group(values),
  groupCollapsed: (...values: unknown[]): void => group(values),
  groupEnd(): void {
    indent = indent.slice(2);
  },
  table,
  /** There is no screen that it could clear. */
  clear(): void {},
};
