/**
 * What programs pass in, checked once and brought into the form that the engine takes. Mistakes of type are TypeErrors, values
 * out of range are InferletErrors; both have codes.
 */
/** Token ids, in any form in which a program may hold them. */
export type Tokens = Iterable<number>;
/** A seed: a whole number from 0 to 2^64 - 1; beyond 2^53 - 1 as a bigint. */
export type Seed = number | bigint;
