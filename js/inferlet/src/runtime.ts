/** What a program may know of the engine and of its own launch. */

import * as host from 'pie:host';

/** Names of the loaded models, in the order of the configuration; the first is the default. */
export function models(): string[] {
  return host.models();
}

/** Version of the engine, as `major.minor.patch`. */
export function version(): string {
  return host.version();
}

/** Names this engine, not the process that runs in it. */
export function instanceId(): string {
  return host.instanceId();
}

/** The user who launched the program; `anonymous` where nobody gave a name. */
export function username(): string {
  return host.username();
}

/** The launch arguments as they were typed after `--`, unparsed. */
export function args(): string[] {
  return host.args();
}

/** The seed from which every unseeded draw of this launch derives. Launching with the same seed repeats the run. */
export function launchSeed(): bigint {
  return host.launchSeed();
}
