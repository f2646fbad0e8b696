/** The models that the engine has loaded. */
import { Tokenizer } from './tokenizer.js';
/** A model that the engine has loaded. */
export declare class Model {
    #private;
    private constructor();
    /**
     * Binds to a loaded model; `default` names the first one.
     * @throws InferletError `unknown-model`
     */
    static load(name: string): Model;
    /** The model's name in the configuration. */
    get name(): string;
    /** Its tokenizer. */
    tokenizer(): Tokenizer;
}
