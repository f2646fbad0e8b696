/** What a program did, from its launch to its end. */
export interface Run {
  /** What it returned. */
  value: unknown;
  /** What it printed and sent, as one text. */
  stdout: string;
  stderr: string;
  /** Each value of `session.send`. */
  sent: unknown[];
  /** Each text of `session.message`. */
  messages: string[];
  /** Each file of `session.sendFile`. */
  files: Uint8Array[];
  launchSeed: bigint;
}

/** What a program gets. */
export interface RunOptions {
  input?: unknown;
  args?: string[];
  /** What it receives, before the end of the session. */
  messages?: string[];
  /** 0 if not given. */
  seed?: number | bigint | string;
  limits?: Record<string, number | null>;
  tokenBudget?: number;
  /** What it begins with in each model, to bid for pages where those are short. */
  credits?: number;
  /** Paths of programs that it can start, by their names. */
  programs?: Record<string, string>;
}

export interface EngineOptions {
  /** The name of a configured model, `pie-tiny` or a folder; the dummy driver if not given. */
  model?: string;
  /** What the dummy driver says where the text that it sees holds a key. */
  replies?: Record<string, string>;
  /** The command line of `pie`. */
  command?: string[];
}

/** The error with which a program ended, or with which its launch was refused. */
export declare class PieError extends Error {
  code: string;
  details: Record<string, unknown>;
}

/** An engine that runs programs for tests: `pie test-worker`, which is started when it is needed. */
export declare class Engine {
  constructor(options?: EngineOptions);
  /** Runs a program to its end; rejects with a PieError where it ends with an error. */
  run(program: string | URL, options?: RunOptions): Promise<Run>;
  /** Ends the engine. */
  close(): void;
}

/** Runs a program in the engine that all tests of this process share, on the dummy driver. */
export declare function run(program: string | URL, options?: RunOptions): Promise<Run>;
