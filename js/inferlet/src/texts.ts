/** The text of a generation, piece by piece. */

import type { Decoder, Event } from './chat.js';
import { refuseInPlainLoops, refuseInTexts } from './errors.js';
import { refuseInJson } from './json.js';
import type { Output } from './output.js';

/** The steps of a generator. */
interface Steps {
  next(): Promise<IteratorResult<{ execute(): Promise<Output> }, undefined>>;
}

/**
 * The text of a generation, in pieces as they come: `g.texts()` makes it. No piece is empty, and all of them together
 * are what `collectText` returns. So no piece has a part of a stop text, nor of a character. Leaving the loop leaves
 * the context usable, and another loop over the same stream continues where the first left off.
 */
export class TextStream implements AsyncIterableIterator<string, undefined> {
  readonly #texts: AsyncGenerator<string, undefined>;
  readonly #given: string[] = [];

  /** @internal */
  constructor(steps: Steps, makeDecoder: () => Decoder) {
    this.#texts = this.#read(steps, makeDecoder);
  }

  /**
   * All text that has come so far. A piece that nobody waited for any more, as after a lost `Promise.race`, is in it.
   */
  get textSoFar(): string {
    return this.#given.join('');
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next piece. */
  next(): Promise<IteratorResult<string, undefined>> {
    return this.#texts.next();
  }

  /** The decoder begins with the first step that it shows: the program may add stop texts before. */
  async *#read(steps: Steps, makeDecoder: () => Decoder): AsyncGenerator<string, undefined> {
    const decoder = makeDecoder();
    for (let ended = false; !ended; ) {
      const { value: step } = await steps.next();
      const out = step === undefined ? undefined : await step.execute();
      ended = out === undefined || out.finishReason !== undefined;
      let event: Event = out === undefined ? decoder.finish() : decoder.feedOutput(out);
      for (; event.type !== 'idle'; event = decoder.feed([])) {
        if (event.type !== 'delta') continue;
        this.#given.push(event.text);
        yield event.text;
      }
    }
    return undefined;
  }
}

const LOOP = 'for await (const text of g.texts())';
refuseInPlainLoops(TextStream, LOOP);
refuseInTexts(TextStream, `a stream of texts is not a text; write \`${LOOP}\`, or await the whole text: await g.collectText()`);
refuseInJson(TextStream, `collect what it yields: \`${LOOP}\`, or await the whole text: await g.collectText()`);
