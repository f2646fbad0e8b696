/** What came of a pass or a step, and the handles by which it is read. */

import * as host from 'pie:host';
import { show } from './arguments.js';
import { refuseInTexts, wrongType } from './errors.js';
import { refuseInJson } from './json.js';

/** Why a generation ended. */
export type FinishReason =
  /** A stop token was accepted. */
  | 'stop'
  /** The cap or the length of the model's context was reached. */
  | 'length'
  /** A constraint ended the generation. */
  | 'constraint'
  /** The generator was retired: by a newer one, a truncation, or the end of its context. */
  | 'closed';

/** Where a handle's slot stands: the index of it among those of its owner, which is a pass, a step or a generator. */
interface Place {
  readonly owner: object;
  readonly index: number;
}

let placeOf: (handle: Handle) => Place;

/** Names a slot of an output. */
class Handle {
  readonly #place: Place;

  /** @internal */
  constructor(owner: object, index: number) {
    this.#place = { owner, index };
  }

  static {
    placeOf = (handle) => {
      if (typeof handle !== 'object' || handle === null || !(#place in handle)) {
        throw wrongType(`the handle must be what sample() or probe() returned, not ${show(handle)}`);
      }
      return handle.#place;
    };
  }
}

/** Names what a sampler drew: `out.token` and `out.tokensAt` take it. */
export class SampleHandle extends Handle {}

/** Names what a probe read: `out.logits` and the others take it. */
export class ProbeHandle extends Handle {}

/** What came of a sampler or a probe. */
export type Slot =
  /** Of a sampler: one token for each draw, index after index. */
  | { readonly type: 'tokens'; readonly value: Uint32Array }
  /** The bytes of a row `[V]` of float32. */
  | { readonly type: 'logits'; readonly value: Uint8Array }
  /** Tokens and their probabilities, two arrays of the same length. */
  | { readonly type: 'distribution'; readonly value: { readonly tokens: Uint32Array; readonly values: Float32Array } }
  /** Natural logarithms, in the order of the tokens of the probe. */
  | { readonly type: 'logprobs'; readonly value: Float32Array }
  /** In nats. */
  | { readonly type: 'entropy'; readonly value: number }
  /** The bytes of the hidden state `[hidden size]`, of float32. */
  | { readonly type: 'embedding'; readonly value: Uint8Array };

/** How many tokens were proposed in a pass, and how many of them the sampler drew as well. */
export interface Speculation {
  /** Tokens that were proposed. */
  readonly drafted: number;
  /** How many of these the sampler drew as well. */
  readonly accepted: number;
}

/** What the engine answered, as it is. */
export interface RawOutput {
  /** One for each sampler and probe, in their order. */
  readonly slots: readonly Slot[];
  /** What was proposed in the pass. */
  readonly speculative: Speculation;
}

/** The value of each kind of slot. */
type SlotValues = { [S in Slot as S['type']]: S['value'] };

/** What the engine answers with, of a pass or of a step. */
interface Answer {
  readonly slots: readonly Slot[];
  readonly speculation: Speculation;
  readonly tokens?: Uint32Array;
  readonly finish?: FinishReason | undefined;
}

/** Where the slots of an output stand. */
export interface Places {
  /**
   * The sampler of the generator, if it drew.
   * @internal
   */
  readonly autoSampler: SampleHandle | undefined;
  /**
   * The index of the first slot that an owner of handles has; undefined for those of other outputs.
   * @internal
   */
  firstSlot(owner: object): number | undefined;
}

/**
 * What came of a pass or a step. Read it by the handles of that pass or step: another handle, and one of another kind,
 * give `undefined`.
 */
export class Output {
  /** What a step of a generator accepted, a stop token included as the last; nothing in a pass of one's own. */
  declare readonly tokens: Uint32Array;
  /** Set when this step ended the generation. */
  declare readonly finishReason: FinishReason | undefined;
  readonly #answer: Answer;
  readonly #places: Places;
  #raw: RawOutput | undefined;

  /** @internal */
  constructor(answer: Answer, places: Places) {
    this.tokens = answer.tokens ?? new Uint32Array();
    this.finishReason = answer.finish;
    this.#answer = answer;
    this.#places = places;
  }

  /** What the sampler of the generator drew; undefined after `clearSampler()` and in a pass of one's own. */
  get autoSampler(): SampleHandle | undefined {
    return this.#places.autoSampler;
  }

  /** The slots as the engine answers them, and what was drafted. */
  get raw(): RawOutput {
    // Most programs read the tokens alone.
    if (this.#raw === undefined) {
      const { slots, speculation } = this.#answer;
      // The sampler of the generator has no slot where there are no probes.
      const alone = slots.length === 0 && this.autoSampler !== undefined;
      this.#raw = { slots: alone ? [{ type: 'tokens', value: this.tokens }] : slots, speculative: speculation };
    }
    return this.#raw;
  }

  /** The token of a sampler; the first one where it has drawn several. */
  token(handle: SampleHandle): number | undefined {
    return this.#value(handle, 'tokens')?.[0];
  }

  /** Every token of a sampler: index after index, and draw after draw. */
  tokensAt(handle: SampleHandle): Uint32Array | undefined {
    return this.#value(handle, 'tokens');
  }

  /** Tokens and their probabilities, of a `Distribution`: two arrays of the same length. */
  distribution(handle: ProbeHandle): [Uint32Array, Float32Array] | undefined {
    const found = this.#value(handle, 'distribution');
    return found && [found.tokens, found.values];
  }

  /** The row of `Logits`: the bytes of `[V]` float32 numbers in the order of ids, for a `Float32Array` over them. */
  logits(handle: ProbeHandle): Uint8Array | undefined {
    return this.#value(handle, 'logits');
  }

  /** The natural logarithms of `Logprob` or `Logprobs`, in the order of the probe's tokens. */
  logprobs(handle: ProbeHandle): Float32Array | undefined {
    return this.#value(handle, 'logprobs');
  }

  /** The entropy of `Entropy`, in nats. */
  entropy(handle: ProbeHandle): number | undefined {
    return this.#value(handle, 'entropy');
  }

  /** The hidden state of `Embedding`: the bytes of float32 numbers, for a `Float32Array` over their buffer. */
  embedding(handle: ProbeHandle): Uint8Array | undefined {
    return this.#value(handle, 'embedding');
  }

  #value<T extends keyof SlotValues>(handle: Handle, type: T): SlotValues[T] | undefined {
    const { owner, index } = placeOf(handle);
    const first = this.#places.firstSlot(owner);
    const slot = first === undefined ? undefined : this.raw.slots[first + index];
    if (slot?.type === type) return slot.value as SlotValues[T];
    if (slot !== undefined) tellOfKind(slot.type, type);
    return undefined;
  }
}

const READ_IT = 'write `out.tokens`, or what `out.token(handle)` and the others give';
refuseInJson(Output, READ_IT);
refuseInTexts(Output, `an output is not a text; ${READ_IT}`);
refuseInJson(Handle, 'send what the output gives for it: `out.token(handle)`');

const toldKinds = new Set<string>();

/** Warns, once, of a handle that is of another kind than the method that it is given to reads. */
function tellOfKind(isOf: keyof SlotValues, asked: keyof SlotValues): void {
  if (toldKinds.has(`${isOf} ${asked}`)) return;
  toldKinds.add(`${isOf} ${asked}`);
  const method = (type: keyof SlotValues): string => `\`out.${type === 'tokens' ? 'token' : type}(...)\``;
  const maker = isOf === 'tokens' ? 'a sampler' : `a probe of the kind ${isOf}`;
  host.write('stderr', `warning: ${method(asked)} gives undefined for the handle of ${maker}; ${method(isOf)} reads that one\n`);
}
