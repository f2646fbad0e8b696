// Runs programs in tests on Node. `pie test-worker` holds an engine, with the dummy driver unless a model is named, so
// that a run takes milliseconds after the first one. It is started when it is needed, and ends with this process.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The error with which a program ended, or with which its launch was refused. */
export class PieError extends Error {
  constructor({ code, message, details }) {
    super(message);
    this.name = 'PieError';
    this.code = code;
    this.details = details;
  }
}

/** An engine that runs programs for tests. */
export class Engine {
  #options;
  #worker = null;
  #waiting = new Map();
  #last = 0;

  /**
   * `options.model` is the name or the folder of a model, `replies` what the dummy driver says where the text that it
   * sees holds a key, and `command` the command line of `pie`.
   */
  constructor(options = {}) {
    this.#options = options;
  }

  /**
   * Runs a program, the path of a file or a project, to its end; rejects with a PieError where it ends with an error.
   * The options are its input, its arguments, the messages that it receives, its seed (0 unless given), limits that it
   * has, the most tokens that enter its contexts, the credits that it begins with, and the paths of programs that it
   * can start, by their names.
   */
  async run(program, options = {}) {
    const { input, args, messages, seed, limits, tokenBudget, credits, programs, ...others } = options;
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) {
      const known = 'input, args, messages, seed, limits, tokenBudget, credits, programs';
      throw new TypeError(`run() has no option '${unknown}'; its options are ${known}`);
    }
    const id = ++this.#last;
    const request = {
      id,
      program: program instanceof URL ? fileURLToPath(program) : program,
      input,
      args,
      messages,
      seed: seed === undefined ? undefined : String(seed),
      limits,
      token_budget: tokenBudget,
      credits,
      programs,
    };
    const line = lineOf(request);
    return await new Promise((resolve, reject) => {
      const worker = this.#started();
      this.#waiting.set(id, { resolve, reject });
      hold(worker, true);
      worker.stdin.write(line);
    });
  }

  /** Ends the engine. Runs that wait are rejected. */
  close() {
    this.#worker?.stdin.end();
    this.#end(new Error('the engine of the tests was closed'));
  }

  #started() {
    if (this.#worker !== null) return this.#worker;
    const { command = ['pie'], model, replies } = this.#options;
    const options = [];
    if (model !== undefined) options.push('--model', model);
    if (replies !== undefined) options.push('--replies', JSON.stringify(replies));
    const worker = spawn(command[0], [...command.slice(1), 'test-worker', ...options], { stdio: 'pipe' });
    this.#worker = worker;
    let said = '';
    worker.stderr.setEncoding('utf8').on('data', (text) => {
      said = (said + text).slice(-4096);
    });
    worker.on('error', (error) => {
      const isMissing = error.code === 'ENOENT';
      const remedy = 'install pie-engine, or name it by the option command';
      const why = isMissing ? `there is no command '${command[0]}'; ${remedy}` : error.message;
      this.#end(new Error(`the engine of the tests cannot be started: ${why}`), worker);
    });
    // What is written to one that has ended is told by its end.
    worker.stdin.on('error', () => {});
    worker.on('close', (status) => {
      this.#end(new Error(`the engine of the tests ended (status ${status}): ${said.trim()}`), worker);
    });
    createInterface({ input: worker.stdout }).on('line', (line) => this.#answered(JSON.parse(line)));
    return worker;
  }

  #answered({ id, error, files, launch_seed: launchSeed, ...others }) {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    if (this.#waiting.size === 0 && this.#worker !== null) hold(this.#worker, false);
    if (error !== undefined) {
      waiting.reject(new PieError(error));
      return;
    }
    const contents = files.map((data) => new Uint8Array(Buffer.from(data, 'base64')));
    waiting.resolve({ ...others, files: contents, launchSeed: BigInt(launchSeed) });
  }

  #end(error, worker = this.#worker) {
    if (worker === null || worker !== this.#worker) return;
    hold(worker, false);
    this.#worker = null;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

// Stands around the digits of a bigint: no text has it by chance.
const MARK = '\0bigint\0';
const MARKED = /"\\u0000bigint\\u0000(-?\d+)\\u0000bigint\\u0000"/g;

// A request as a line of JSON, in which bigints are written with all of their digits.
function lineOf(request) {
  try {
    const marked = JSON.stringify(request, (_, value) => (typeof value === 'bigint' ? `${MARK}${value}${MARK}` : value));
    return `${marked.replaceAll(MARKED, '$1')}\n`;
  } catch (error) {
    const message = `what run() was given cannot be written as JSON: ${error.message}; give plain values`;
    throw new PieError({ code: 'invalid-argument', message, details: {} });
  }
}

// Keeps this process alive while a run waits, and no longer.
function hold(worker, wanted) {
  for (const part of [worker, worker.stdin, worker.stdout, worker.stderr]) part[wanted ? 'ref' : 'unref']?.();
}

const shared = new Engine();

/** Runs a program in the engine that all tests of this process share, on the dummy driver; as `Engine.run`. */
export function run(program, options = {}) {
  return shared.run(program, options);
}
