/** How a generator chooses tokens. */

import * as host from 'pie:host';
import type { Sampler as SamplerRecord } from 'pie:host';
import { checkOptions, show, toSeed, type Seed } from './arguments.js';
import { InferletError, wrongType } from './errors.js';
import { refuseInJson } from './json.js';

/** What every sampler that draws may be given. */
export interface SamplerOptions {
  /** Used as given, 0 included, before the seed of the generator. */
  readonly seed?: Seed;
}

/**
 * What the engine takes of a sampler.
 * @internal
 */
export let samplerRecord: (sampler: Sampler) => SamplerRecord;

/** What to do with a function in the place of a sampler: one of `Sampler` is called, another one chooses by itself. */
function ownSampler(given: unknown): string {
  if (typeof given !== 'function') return '';
  const isOfSampler = (Sampler as unknown as Record<string, unknown>)[given.name] === given;
  return isOfSampler ? '; write `()` behind the name' : "; a function of one's own takes its place by clearSampler and accept, see the guide on steps (steps.md)";
}

/**
 * A way to choose a token. Order: temperature, softmax, top-k, top-p or min-p over what is left, draw. Temperature 0 is
 * argmax, with ties to the lowest id. Parameters out of range are the error `invalid-sampler` of the call that the
 * sampler is given to.
 */
export class Sampler {
  readonly #record: SamplerRecord;

  private constructor(parts: Partial<SamplerRecord> & Pick<SamplerRecord, 'temperature'>) {
    this.#record = { topK: undefined, topP: undefined, minP: undefined, draws: 1, seed: undefined, ...parts };
  }

  static {
    samplerRecord = (sampler) => {
      if (typeof sampler !== 'object' || sampler === null || !(#record in sampler)) {
        throw wrongType(`sampler must be a Sampler, such as Sampler.argmax(), not ${show(sampler)}${ownSampler(sampler)}`);
      }
      const record = sampler.#record;
      checkNumber(record.temperature, 'temperature');
      checkNumber(record.topP, 'p');
      checkNumber(record.minP, 'p');
      checkWhole(record.topK, 'k');
      checkWhole(record.draws, 'draws');
      return record;
    };
  }

  /** The most probable token; ties go to the lowest id. */
  static argmax(): Sampler {
    return new Sampler({ temperature: 0 });
  }

  /** Nucleus sampling: the most probable tokens whose probabilities reach `p`, in (0, 1]. */
  static topP(temperature = 0.6, p = 0.95, options: SamplerOptions = {}): Sampler {
    return new Sampler({ temperature, topP: p, seed: readSeed(options, 'topP') });
  }

  /** The `k` most probable tokens, at least 1. */
  static topK(temperature = 0.6, k = 50, options: SamplerOptions = {}): Sampler {
    if (arguments.length === 1 && Number.isInteger(temperature) && temperature > 1) tellOfLoneK(temperature);
    return new Sampler({ temperature, topK: k, seed: readSeed(options, 'topK') });
  }

  /** Tokens at least `p` times as probable as the most probable one; `p` in [0, 1]. */
  static minP(temperature = 0.6, p = 0.1, options: SamplerOptions = {}): Sampler {
    return new Sampler({ temperature, minP: p, seed: readSeed(options, 'minP') });
  }

  /** The `k` most probable tokens, then the nucleus `p` of what is left. */
  static topKTopP(temperature = 0.6, k = 50, p = 0.95, options: SamplerOptions = {}): Sampler {
    return new Sampler({ temperature, topK: k, topP: p, seed: readSeed(options, 'topKTopP') });
  }

  /** The whole distribution; `draws` independent tokens, of which a generator needs 1. */
  static multinomial(temperature = 1, draws = 1, options: SamplerOptions = {}): Sampler {
    return new Sampler({ temperature, draws, seed: readSeed(options, 'multinomial') });
  }
}

// The names of the other two languages, for whoever brings them along.
for (const [name, own] of [['top_p', 'topP'], ['top_k', 'topK'], ['min_p', 'minP'], ['top_k_top_p', 'topKTopP'], ['greedy', 'argmax']]) {
  Object.defineProperty(Sampler, name!, {
    value: (): never => {
      throw wrongType(`Sampler has no ${name}(); in JavaScript and TypeScript it is Sampler.${own}()`);
    },
  });
}

let isLoneKTold = false;

/** Warns, once, of a whole number that alone is given to `topK`, where it is the temperature. */
function tellOfLoneK(k: number): void {
  if (isLoneKTold) return;
  isLoneKTold = true;
  const frames = (new Error().stack ?? '').split('\n');
  // Functions of the SDK stand in it without a file.
  const place = frames.map((line) => /([^\s(]+:\d+):\d+\)?$/.exec(line)?.[1]).find((file) => file !== undefined && !file.startsWith('<null>'));
  host.write('stderr', `warning: ${place === undefined ? '' : `${place}: `}Sampler.topK(${k}) is a temperature of ${k}; write Sampler.topK(1, ${k})\n`);
}

function readSeed(options: SamplerOptions, name: string): bigint | undefined {
  checkOptions(options, ['seed'], `Sampler.${name}()`);
  return options.seed === undefined ? undefined : toSeed(options.seed, 'seed');
}

function checkNumber(value: number | undefined, name: string): void {
  if (value !== undefined && typeof value !== 'number') throw wrongType(`${name} of the sampler must be a number, not ${show(value)}`);
}

function checkWhole(value: number | undefined, name: string): void {
  checkNumber(value, name);
  if (value !== undefined && (!Number.isInteger(value) || value < 0 || value > 0xffff_ffff)) {
    throw new InferletError('invalid-sampler', `${name} of the sampler is ${value}; pass a whole number of at least 1`, { [name]: show(value) });
  }
}

refuseInJson(Sampler, 'send the numbers that it was made of');
