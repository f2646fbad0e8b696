/** Adapters: small changes of a model's weights (LoRA), by name. */

import * as host from 'pie:host';
import { noteNothingFound } from './absent.js';
import { checkOptions, isIterable, show, toCount, toNumber, toText, toZoSeed, type Seed } from './arguments.js';
import { InferletError, wrongType } from './errors.js';
import { refuseInJson } from './json.js';
import { modelHandle, type Model } from './model.js';

const MISSING: string = 'adapter-missing';

/**
 * The engine's adapter behind one of the SDK.
 * @internal
 */
export let adapterHandle: (adapter: Adapter) => host.AdapterHandle;

/** The shape of a new adapter. */
export interface AdapterOptions {
  /** Rows of its smaller matrices, 1 to 512; 8 by default. */
  rank?: number;
  /** What the adapter changes is multiplied by this, and divided by the rank; 16 by default. */
  alpha?: number;
}

/** How the weights of an adapter are changed: the noise of a seed is added, times a factor. */
export interface AdapterChange {
  /** The seed, as of `zoSeed`. */
  seed: Seed;
  /** What its noise is multiplied by. */
  factor: number;
}

/**
 * A change of a model's weights, which has a name: every program of the user finds it, until it is destroyed or the
 * engine ends. Letting go of it never deletes the adapter of that name. A generator or a pass computes with what the
 * adapter was when it was given it.
 */
export class Adapter implements Disposable {
  #handle: host.AdapterHandle | undefined;

  private constructor(handle: host.AdapterHandle) {
    this.#handle = handle;
  }

  static {
    adapterHandle = (adapter) => {
      if (typeof adapter !== 'object' || adapter === null || !(#handle in adapter)) {
        const remedy = typeof adapter === 'string' ? `; Adapter.open(model, ${show(adapter)}) gives that of a name` : '';
        throw wrongType(`adapter must be an Adapter, not ${show(adapter)}${remedy}`);
      }
      if (adapter.#handle !== undefined) return adapter.#handle;
      throw new InferletError('invalid-argument', 'the adapter was disposed of; open it again by its name');
    };
  }

  /**
   * A new adapter, which changes nothing until it is loaded or trained.
   * @throws InferletError `adapter-exists` for a name that is taken; `limit-adapters` where there are too many, or they
   * are too large; `unsupported` where the driver of the model has no adapters.
   */
  static create(model: Model, name: string, options: AdapterOptions = {}): Adapter {
    checkOptions(options, ['rank', 'alpha'], 'Adapter.create()');
    const rank = toCount(options.rank ?? 8, 'rank');
    const alpha = toNumber(options.alpha ?? 16, 'alpha');
    return new Adapter(host.adapterCreate(modelHandle(model), toText(name, 'name'), rank, alpha));
  }

  /** The names of all adapters of the user, sorted. */
  static names(model: Model): string[] {
    return host.adapterNames(modelHandle(model));
  }

  /** The adapter of that name; `undefined` where there is none. */
  static open(model: Model, name: string): Adapter | undefined {
    try {
      return new Adapter(host.adapterOpen(modelHandle(model), toText(name, 'name')));
    } catch (error) {
      if (!(error instanceof InferletError) || error.code !== MISSING) throw error;
      noteNothingFound('Adapter.open', name, () => Adapter.names(model));
      return undefined;
    }
  }

  /**
   * A copy under another name, which takes no memory until one of both changes.
   * @throws InferletError as `create` does.
   */
  fork(newName: string): Adapter {
    return new Adapter(adapterHandle(this).fork(toText(newName, 'newName')));
  }

  /**
   * Writes it to a folder in `/scratch`, in the format of PEFT: `adapter_config.json` and `adapter_model.safetensors`.
   * A path that does not begin with `/` is one in `/scratch`.
   * @throws InferletError `invalid-argument` for a path that lies elsewhere, `files-off`, `limit-files`, `disk-full`.
   */
  save(path: string): void {
    adapterHandle(this).save(toText(path, 'path'));
  }

  /**
   * Puts the LoRA adapter of a folder in its place, which PEFT or `save` wrote there.
   * @throws InferletError `invalid-adapter` where it does not fit the model, is damaged, or asks for what is not
   * supported, and nothing changes then; `limit-adapters`; those of `save`.
   */
  load(path: string): void {
    adapterHandle(this).load(toText(path, 'path'));
  }

  /**
   * Adds noise to its weights: of each seed, times a factor. It is the noise by which a pass with that `zoSeed`
   * perturbs the adapter, where its factor is the adapter's sigma (0.02 at first); `sigma` sets another one.
   * @throws InferletError `adapter-busy` where another program changes it meanwhile; `invalid-adapter` where the
   * weights would not be finite.
   */
  change(changes: AdapterChange[], sigma?: number): void {
    if (!isIterable(changes) || typeof changes === 'string') {
      throw wrongType(`changes must be a list of { seed, factor }, not ${show(changes)}`);
    }
    const listed = Array.from(changes, ({ seed, factor }, index) => ({
      seed: toZoSeed(seed, `changes[${index}].seed`),
      factor: toNumber(factor, `changes[${index}].factor`),
    }));
    adapterHandle(this).change(listed, sigma === undefined ? undefined : toNumber(sigma, 'sigma'));
  }

  /**
   * Deletes it. Generators and contexts that have used it go on; every other call on it throws `adapter-missing`.
   * @throws InferletError `adapter-busy` while passes are computed with it; `adapter-missing` where it is gone.
   */
  destroy(): void {
    adapterHandle(this).destroy();
  }

  /** Lets go of it. The adapter of that name stays. */
  [Symbol.dispose](): void {
    this.#handle = undefined;
  }
}

refuseInJson(Adapter, 'send the name that it has');
