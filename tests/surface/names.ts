/** Answers which of the names that it is given are there: paths from the root of the SDK, as in `Context.fork`. */

import * as sdk from 'inferlet';

/** A handle of each class, for what only handles have. */
async function handles(): Promise<Map<unknown, object>> {
  const ctx = new sdk.Context(sdk.Model.load('default')).appendText('x');
  const generator = ctx.generate(sdk.Sampler.argmax(), { maxTokens: 1 });
  const { value: step } = await generator.next();
  const output = await step!.execute();
  return new Map<unknown, object>([ctx, generator, step!, output].map((handle) => [handle.constructor, handle]));
}

/** The options of `generate`, as a mistake in one names them. */
function options(): string[] {
  try {
    new sdk.Context(sdk.Model.load('default')).appendText('x').generate(sdk.Sampler.argmax(), { none: 0 } as object);
  } catch (error) {
    return /its options are (.*)$/.exec((error as Error).message)![1]!.split(', ');
  }
  throw new Error('an option that there is not was taken');
}

export async function main(names: string[]): Promise<string[]> {
  const made = await handles();
  const root: object = { ...sdk, GenerateOptions: Object.fromEntries(options().map((name) => [name, true])) };
  return names.filter((path) => {
    let value: unknown = root;
    for (const name of path.split('.')) {
      const owners = [value, (value as { prototype?: object }).prototype, made.get(value)];
      const owner = owners.find((owner) => Object(owner) === owner && name in (owner as object));
      if (owner === undefined) return false;
      // Of a property that is computed, or one of a handle, nothing is asked further.
      value = Object.getOwnPropertyDescriptor(owner, name)?.value ?? true;
    }
    return true;
  });
}
