/** What a program may know of the engine and of its own launch, and how it starts others. */

import * as host from 'pie:host';
import { checkOptions, toBoolean, toNumber, toSeed, toText, type Seed } from './arguments.js';
import { refuseInTexts } from './errors.js';
import { refuseInJson, toJson } from './json.js';
import { Pending } from './pending.js';

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

/** How a child is launched, beside its program and its input. */
export interface SpawnOptions {
  /**
   * The arguments that it reads unparsed. Without an input they become its input too, as behind `--` on the command
   * line.
   */
  readonly args?: readonly string[];
  /** What it prints and sends becomes output of this program. Its standard error always does. */
  readonly output?: boolean;
  /** It goes on when this program has ended. Only a server keeps such processes. */
  readonly detached?: boolean;
  /** Its launch seed; without one it follows from that of this program and from how many children it had before. */
  readonly seed?: Seed;
  /** At most so many tokens enter its contexts and those of its own children. They count for this program too. */
  readonly tokenBudget?: Seed;
  /**
   * Credits that it begins with in each model, which come from those of this program; without them half of what there
   * is. What is left at its end returns.
   */
  readonly credits?: number;
}

const OPTIONS = ['args', 'output', 'detached', 'seed', 'tokenBudget', 'credits'];

/**
 * Starts a program as a child, with a JSON value as its input. The program is one that the launch names (`pie run
 * --program NAME=FILE`), `.` for this program, the path of a file or folder of this program, or an installed one as
 * `name` or `name@version`. A child has the user of this program, at most its limits and budgets, and ends with it.
 * @throws InferletError `unknown-program`; `limit-child-depth`, `limit-children` or `limit-spawns` where there are too
 * many.
 */
export function spawn(program: string, input?: unknown, options: SpawnOptions = {}): Child {
  checkOptions(options, OPTIONS, 'spawn');
  const { args = [], output = false, detached = false, seed, tokenBudget, credits } = options;
  const wanted = {
    output: toBoolean(output, 'output'),
    detached: toBoolean(detached, 'detached'),
    seed: seed === undefined ? undefined : toSeed(seed, 'seed'),
    tokenBudget: tokenBudget === undefined ? undefined : toSeed(tokenBudget, 'tokenBudget'),
    credits: credits === undefined ? undefined : toNumber(credits, 'credits'),
  };
  const raw = Array.from(args, (argument, index) => toText(argument, `args[${index}]`));
  return new Child(host.spawn(toText(program, 'program'), toJson(input, 'the input', 'invalid-argument'), raw, wanted));
}

/**
 * A process that this program has started. Awaiting it gives what it returned, or throws its error. It goes on when
 * nobody holds it any more, and ends with this program.
 */
export class Child implements PromiseLike<unknown> {
  readonly #raw: host.ChildHandle;

  /** @internal */
  constructor(raw: host.ChildHandle) {
    this.#raw = raw;
  }

  /** The number of its process. */
  get pid(): number {
    return Number(this.#raw.pid());
  }

  /**
   * Waits for its end: gives what it returned, each time anew. A wait that is given up leaves it running.
   * @throws InferletError the error that the child ended with.
   */
  wait(): Promise<unknown> {
    return new Pending(
      (settle: host.Settle<string>) => this.#raw.wait(settle),
      (text): unknown => JSON.parse(text),
    );
  }

  /** Ends it with the error `cancelled`, unless it has ended before. */
  cancel(): void {
    this.#raw.cancel();
  }

  then<R = unknown, E = never>(
    onFulfilled?: ((value: unknown) => R | PromiseLike<R>) | null,
    onRejected?: ((reason: unknown) => E | PromiseLike<E>) | null,
  ): Promise<R | E> {
    return this.wait().then(onFulfilled, onRejected);
  }
}

refuseInJson(Child, 'await it for what it returned: `await child`');
refuseInTexts(Child, 'a child is not a text; await it for what it returned: await child');
