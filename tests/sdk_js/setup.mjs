// Lets Node load the compiled SDK: `pie:host` is the fake engine beside this file.
import { register } from 'node:module';

const hooks = `
  const host = ${JSON.stringify(new URL('host.mjs', import.meta.url).href)};
  export async function resolve(specifier, context, next) {
    return specifier === 'pie:host' ? { url: host, shortCircuit: true } : next(specifier, context);
  }
`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

// QuickJS has it; Node only from version 22 on.
Promise.withResolvers ??= function () {
  let resolve, reject;
  const promise = new this((...settlers) => ([resolve, reject] = settlers));
  return { promise, resolve, reject };
};
