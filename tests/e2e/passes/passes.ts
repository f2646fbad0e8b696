/**
 * Forward passes, probes, constraints and speculators as the reference documents print them: one function a snippet,
 * with what the document leaves out completed.
 */

import { Context, Model, Sampler, brle } from 'inferlet';
import { Logits, Distribution, Logprob, Logprobs, Entropy } from 'inferlet';
import type { Constraint } from 'inferlet';
import type { Speculator } from 'inferlet';

const tokenIds = [70, 71, 72];

function context(): Context {
  return new Context(Model.load('default')).append([60, 61]);
}

class MyConstraint implements Constraint {
  step(accepted: Uint32Array): Uint32Array {
    return Uint32Array.of(100 + accepted.length, 1);
  }
}

class MySpec implements Speculator {
  draft(): [Uint32Array, Uint32Array] {
    return [new Uint32Array(), new Uint32Array()];
  }
  accept(tokens: Uint32Array): void {
    return;
  }
  rollback(n: number): void {
    return;
  }
  reset(): void {
    return;
  }
}

const SNIPPETS = {
  /** The first token of the pass decides what is drawn behind it. */
  async forward() {
    using ctx = context();
    const fwd = ctx.forward();
    fwd.input(tokenIds);
    const h = fwd.sample([0], Sampler.argmax());
    const out = await fwd.execute();
    const token = out.token(h);

    using same = context().append(tokenIds.slice(0, 1));
    return { token, expected: (await same.generate(Sampler.argmax(), { maxTokens: 1 }).collectTokens())[0] };
  },

  async probes() {
    using ctx = context();
    const fwd = ctx.forward();
    fwd.input(tokenIds);
    const logits = fwd.probe(2, Logits());
    const top = fwd.probe(2, Distribution(1, 3));
    const one = fwd.probe(2, Logprob(7));
    const some = fwd.probe(2, Logprobs([7, 8]));
    const entropy = fwd.probe(2, Entropy());
    const out = await fwd.execute();
    const row = new Float32Array(out.logits(logits)!.buffer);
    return {
      likeliest: row.indexOf(Math.max(...row)),
      top: Array.from(out.distribution(top)![0]),
      difference: out.logprobs(some)![0]! - out.logprobs(some)![1]! - (row[7]! - row[8]!),
      one: out.logprobs(one)![0] === out.logprobs(some)![0],
      entropy: out.entropy(entropy)! > 0,
    };
  },

  /** A mask leaves one token. */
  async masks() {
    using ctx = context();
    const mask = brle.fromBools([false, false, true, true, true, false]);
    const fwd = ctx.forward().input(tokenIds).mask(Uint32Array.of(1234, 1));
    const h = fwd.sample([0, 2], Sampler.topP(0.6, 0.95));
    return { mask, allowed: brle.allowed([2, 3, 1], 6), drawn: (await fwd.execute()).tokensAt(h) };
  },

  async interfaces() {
    const spec: Speculator = new MySpec();
    spec.accept(new Uint32Array());
    return { mask: new MyConstraint().step(new Uint32Array([1, 2])), drafts: spec.draft() };
  },

  /** Passes of several contexts that run at once. */
  async together() {
    const passes = [1, 2, 3].map((token) => {
      const fwd = context().forward();
      return { fwd: fwd.input([token]), h: fwd.sample([0], Sampler.argmax()) };
    });
    return await Promise.all(passes.map(async ({ fwd, h }) => (await fwd.execute()).token(h)));
  },

  /** A pass that loses its race is given up, and its context is as before. */
  async cancelled() {
    using ctx = context();
    const executed = (): Promise<unknown> => ctx.forward().input(tokenIds).execute();
    const first = await Promise.race([executed(), Promise.resolve('timer')]);
    const [length, buffer] = [ctx.seqLen, Array.from(ctx.buffer())];
    await ctx.flush();
    return { first, length, buffer, flushed: ctx.seqLen };
  },
};

export async function main(snippet: keyof typeof SNIPPETS): Promise<unknown> {
  return await SNIPPETS[snippet]();
}
