/** How a generator chooses tokens. */
import { type Seed } from './arguments.js';
/** What every sampler that draws may be given. */
export interface SamplerOptions {
    /** Used as given, 0 included, before the seed of the generator. */
    readonly seed?: Seed;
}
/**
 * A way to choose a token. Order: temperature, softmax, top-k, top-p or min-p over what is left, draw. Temperature 0 is argmax, with
 * ties to the lowest id. Parameters out of range are the error `invalid-sampler` of the call that the sampler is given to.
 */
export declare class Sampler {
    #private;
    private constructor();
    /** The most probable token. */
    static argmax(): Sampler;
    /** Nucleus sampling: the most probable tokens whose probabilities reach `p`, in (0, 1]. */
    static topP(temperature?: number, p?: number, options?: SamplerOptions): Sampler;
    /** The `k` most probable tokens, at least 1. */
    static topK(temperature?: number, k?: number, options?: SamplerOptions): Sampler;
    /** Tokens at least `p` times as probable as the most probable one; `p` in [0, 1]. */
    static minP(temperature?: number, p?: number, options?: SamplerOptions): Sampler;
    /** The `k` most probable tokens, then the nucleus `p` of what is left. */
    static topKTopP(temperature?: number, k?: number, p?: number, options?: SamplerOptions): Sampler;
    /** The whole distribution; `draws` independent tokens, of which a generator needs 1. */
    static multinomial(temperature?: number, draws?: number, options?: SamplerOptions): Sampler;
}
