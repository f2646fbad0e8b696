/** Adapters: small changes of a model's weights, by name. */

import * as host from 'pie:host';
import { show, toText } from './arguments.js';
import { InferletError, wrongType } from './errors.js';
import { modelHandle, type Model } from './model.js';

const MISSING: string = 'adapter-missing';

/**
 * The engine's adapter behind one of the SDK.
 * @internal
 */
export let adapterHandle: (adapter: Adapter) => host.AdapterHandle;

/** A change of a model's weights, which has a name. Letting go of it never deletes the adapter of that name. */
export class Adapter implements Disposable {
  #handle: host.AdapterHandle | undefined;

  private constructor(handle: host.AdapterHandle) {
    this.#handle = handle;
  }

  static {
    adapterHandle = (adapter) => {
      if (typeof adapter !== 'object' || adapter === null || !(#handle in adapter)) {
        throw wrongType(`adapter must be an Adapter, not ${show(adapter)}`);
      }
      if (adapter.#handle !== undefined) return adapter.#handle;
      throw new InferletError('invalid-argument', 'the adapter was disposed of; open it again by its name');
    };
  }

  /**
   * A new adapter.
   * @throws InferletError `unsupported` where the driver of the model has no adapters.
   */
  static create(model: Model, name: string): Adapter {
    return new Adapter(host.adapterCreate(modelHandle(model), toText(name, 'name')));
  }

  /** The adapter of that name; `undefined` where there is none. */
  static open(model: Model, name: string): Adapter | undefined {
    try {
      return new Adapter(host.adapterOpen(modelHandle(model), toText(name, 'name')));
    } catch (error) {
      if (error instanceof InferletError && error.code === MISSING) return undefined;
      throw error;
    }
  }

  /** Lets go of it. The adapter of that name stays. */
  [Symbol.dispose](): void {
    this.#handle = undefined;
  }
}
