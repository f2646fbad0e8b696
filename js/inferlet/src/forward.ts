/** Forward passes that a program puts together by itself. */

import * as host from 'pie:host';
import { adapterHandle, type Adapter } from './adapter.js';
import {
  toCount, toIndices, toMasks, toPositions, toRuns, toTokens, toZoSeed, type Brle, type Seed, type Tokens,
} from './arguments.js';
import { refuseInJson } from './json.js';
import { Output, ProbeHandle, SampleHandle } from './output.js';
import { Pending } from './pending.js';
import { probeRecord, type Probe } from './probes.js';
import { samplerRecord, type Sampler } from './sampler.js';

/**
 * A pass over the pending token of a context, its buffer and tokens of its own, in this order. Indices and attention
 * masks count the tokens of its own; where it has none, the pending and buffered ones. It is executed once.
 */
export class Forward {
  readonly #handle: host.ForwardPassHandle;
  /** How many tokens a page of the context holds. */
  readonly pageSize: number;

  /** @internal */
  constructor(context: host.ContextHandle) {
    this.#handle = host.forwardPassCreate(context);
    this.pageSize = context.pageSize();
  }

  /**
   * Adds tokens, each at the position that is its index in the context.
   * @throws InferletError `invalid-token` for an id outside the vocabulary.
   */
  input(tokens: Tokens): this {
    this.#handle.input(toTokens(tokens, 'tokens'));
    return this;
  }

  /** Adds tokens at positions that may repeat, jump and reorder; as many positions as tokens. */
  inputAt(tokens: Tokens, positions: Iterable<number>): this {
    this.#handle.inputAt(toTokens(tokens, 'tokens'), toPositions(positions, 'positions'));
    return this;
  }

  /**
   * What each token attends to, over the slots of the context after the pass, together with causality: a mask for each
   * token, in place of those that were given before.
   */
  attentionMask(masks: Iterable<Brle>): this {
    this.#handle.attentionMask(toMasks(masks, 'masks'));
    return this;
  }

  /** The tokens that samplers may draw, in place of a mask that was given before; probes do not see it. */
  mask(mask: Brle): this {
    this.#handle.logitMask(toRuns(mask, 'mask'));
    return this;
  }

  /**
   * Draws from the rows behind these tokens.
   * @throws InferletError `invalid-sampler` for parameters out of range.
   */
  sample(indices: Iterable<number>, sampler: Sampler): SampleHandle {
    return new SampleHandle(this, this.#handle.sample(toIndices(indices, 'indices'), samplerRecord(sampler)));
  }

  /**
   * Reads the row behind this token.
   * @throws InferletError `invalid-probe` for parameters out of range.
   */
  probe(index: number, probe: Probe): ProbeHandle {
    return new ProbeHandle(this, this.#handle.probe(toCount(index, 'index'), probeRecord(probe)));
  }

  /** Computes all tokens with an adapter. */
  adapter(adapter: Adapter): this {
    this.#handle.setAdapter(adapterHandle(adapter));
    return this;
  }

  /** Perturbs the adapter by this seed. Without an adapter the pass fails with `invalid-argument`. */
  zoSeed(seed: Seed): this {
    this.#handle.setZoSeed(toZoSeed(seed, 'seed'));
    return this;
  }

  /** The position that the first token of its own takes by itself: all that the context holds, its buffer included. */
  startPosition(): number {
    return this.#handle.startPosition();
  }

  /**
   * Runs it. Until then and until the answer is there the context is busy; a pass that fails or is given up leaves the
   * context as it was. Passes of several contexts that run at once share batches.
   * @throws InferletError `invalid-argument` where it was executed before, where there is nothing to compute, and for
   * what does not fit together; `context-busy`, `context-full`, `out-of-pages`, `unsupported`, `driver-failed`.
   */
  execute(): Promise<Output> {
    const begin = (settle: host.Settle<host.PassOutput>): host.Wait => this.#handle.execute(settle);
    return new Pending(begin, (answer) => new Output(answer, { autoSampler: undefined, firstSlot: (owner) => (owner === this ? 0 : undefined) }));
  }
}

refuseInJson(Forward, 'execute it, and send what its output gives');
