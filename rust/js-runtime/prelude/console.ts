/** What the console writes. */

import * as host from 'pie:host';

type Inspect = (value: unknown) => string;

let inspect: Inspect | undefined;

/** Writes values as one line: strings as they are, anything else as it would be read in a program. */
export function log(stream: 'stdout' | 'stderr', values: unknown[]): void {
  const shown = values.map((value) => {
    if (typeof value === 'string') return value.toWellFormed();
    inspect ??= (host.importNow('pie:runtime/inspect.js') as { inspect: Inspect }).inspect;
    return inspect(value);
  });
  host.write(stream, `${shown.join(' ')}\n`);
}
