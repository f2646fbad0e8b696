/** The models that the engine has loaded. */

import { modelLoad, type ModelHandle } from 'pie:host';
import { show, toText } from './arguments.js';
import { wrongType } from './errors.js';
import { refuseInJson } from './json.js';
import { Tokenizer } from './tokenizer.js';

/**
 * The engine's model behind one of the SDK.
 * @internal
 */
export let modelHandle: (model: Model) => ModelHandle;

/** A model that the engine has loaded. */
export class Model {
  readonly #handle: ModelHandle;

  private constructor(handle: ModelHandle) {
    this.#handle = handle;
  }

  static {
    modelHandle = (model) => {
      if (typeof model !== 'object' || model === null || !(#handle in model)) throw wrongType(`model must be a Model, not ${show(model)}`);
      return model.#handle;
    };
  }

  /**
   * Binds to a loaded model; `default` names the first one.
   * @throws InferletError `unknown-model` where no model has that name.
   */
  static load(name: string): Model {
    return new Model(modelLoad(toText(name, 'name')));
  }

  /** The model's name in the configuration. */
  get name(): string {
    return this.#handle.name();
  }

  /** The tokenizer of the model. */
  tokenizer(): Tokenizer {
    return new Tokenizer(this.#handle.tokenizer());
  }
}

refuseInJson(Model, 'send its name: `model.name`');
