/** Probes: what is read of a row of logits beside its token. No mask and no sampler changes what a probe reads. */

import type { Probe as ProbeRecord } from 'pie:host';
import { show, toTokens, type Tokens } from './arguments.js';
import { InferletError, wrongType } from './errors.js';
import { refuseInJson } from './json.js';

/**
 * What the engine takes of a probe.
 * @internal
 */
export let probeRecord: (probe: Probe) => ProbeRecord;

/**
 * A way to read a row, as `Logits()`, `Distribution(temperature, k)`, `Logprob(token)`, `Logprobs(tokens)`, `Entropy()`
 * and `Embedding()` make it. Parameters out of range are the error `invalid-probe` of the call that the probe is given
 * to.
 */
export class Probe {
  readonly #record: () => ProbeRecord;

  /** @internal */
  constructor(record: () => ProbeRecord) {
    this.#record = record;
  }

  static {
    probeRecord = (probe) => {
      if (typeof probe !== 'object' || probe === null || !(#record in probe)) {
        throw wrongType(`probe must be a probe, such as Entropy(), not ${show(probe)}`);
      }
      return probe.#record();
    };
  }
}

/** The row itself, before softmax: `out.logits`. */
export function Logits(): Probe {
  return new Probe(() => ({ type: 'logits' }));
}

/**
 * Probabilities after a temperature above 0, over the whole vocabulary: `out.distribution`. Those of the `k` most
 * probable tokens, the most probable one first; with `k` = 0 those of all, in the order of their ids.
 */
export function Distribution(temperature: number, k: number): Probe {
  return new Probe(() => {
    for (const [name, value] of [['temperature', temperature], ['k', k]] as const) {
      if (typeof value !== 'number') throw wrongType(`${name} of the probe must be a number, not ${show(value)}`);
    }
    if (!Number.isInteger(k) || k < 0 || k > 0xffff_ffff) {
      throw new InferletError('invalid-probe', `k of the probe is ${k}; pass a whole number from 0`, { k: show(k) });
    }
    return { type: 'distribution', value: { temperature, k } };
  });
}

/** The natural logarithm of the probability of a token at temperature 1: `out.logprobs`, of length 1. */
export function Logprob(token: number): Probe {
  return new Probe(() => ({ type: 'logprobs', value: toTokens([token], 'the probe') }));
}

/** The natural logarithms of the probabilities of tokens at temperature 1, in their order: `out.logprobs`. */
export function Logprobs(tokens: Tokens): Probe {
  return new Probe(() => ({ type: 'logprobs', value: toTokens(tokens, 'tokens') }));
}

/** The entropy of the distribution at temperature 1, in nats: `out.entropy`. */
export function Entropy(): Probe {
  return new Probe(() => ({ type: 'entropy' }));
}

/** The final hidden state behind the token, where the driver has it: `out.embedding`. */
export function Embedding(): Probe {
  return new Probe(() => ({ type: 'embedding' }));
}

refuseInJson(Probe, 'send what the output gives for it');
