/** Programs that ask servers: one function a task. */

type Input = { readonly do: string; readonly url: string; readonly [key: string]: unknown };

export async function main(input: Input): Promise<unknown> {
  const task = TASKS[input.do];
  if (task === undefined) throw new Error(`no task ${input.do}`);
  return task(input);
}

async function get({ url }: Input): Promise<unknown> {
  const response = await fetch(url);
  const { status, statusText, ok, url: last, redirected, headers } = response;
  return [status, statusText, ok, last, redirected, headers.get('X-Own'), await response.text()];
}

async function echo({ url, value }: Input): Promise<unknown> {
  const headers = { 'content-type': 'application/json', 'X-A': 'ü', Host: 'other.example' };
  const response = await fetch(url, { method: 'post', body: JSON.stringify(value), headers });
  return response.json();
}

async function stream({ url, go }: Input): Promise<string[]> {
  const response = await fetch(url);
  const [decoder, parts] = [new TextDecoder(), [] as string[]];
  for await (const part of response.body!) {
    parts.push(decoder.decode(part));
    if (parts.length === 1) await fetch(String(go), { method: 'POST' });
  }
  return parts;
}

async function lines({ url }: Input): Promise<string[]> {
  const text = await (await fetch(url)).text();
  return text.trimEnd().split(/\r\n|\n|\r/);
}

async function upload({ url }: Input): Promise<unknown> {
  async function* parts(): AsyncGenerator<Uint8Array> {
    for (const part of ['one', 'two', 'three']) {
      await Promise.resolve();
      yield new TextEncoder().encode(part);
    }
  }
  const response = await fetch(url, { method: 'POST', body: ReadableStream.from(parts()) });
  return ((await response.json()) as { body: string }).body;
}

/** What a server gets of a form, a blob and parameters: the type of each, and what it reads of them. */
async function forms({ url }: Input): Promise<unknown> {
  const form = new FormData();
  form.append('text', 'ü');
  form.append('file', new File(['a\r\nb'], 'a.txt', { type: 'text/plain' }));
  const bodies = [form, new Blob(['x'], { type: 'a/b' }), new URLSearchParams({ q: 'a b&c' })];
  const seen: unknown[] = [];
  for (const body of bodies) {
    const response = await fetch(new URL('echo', url), { method: 'POST', body });
    const { headers, body: got } = (await response.json()) as { headers: Record<string, string>; body: string };
    const type = headers['content-type'] ?? '';
    seen.push([type.split(';', 1)[0], body instanceof FormData ? got.replaceAll(/pie-form-[0-9a-f]{32}/g, 'pie-form-x') : got]);
  }
  return seen;
}

async function tooLong({ url }: Input): Promise<unknown> {
  const encoder = new TextEncoder();
  const body = ReadableStream.from([encoder.encode('x'.repeat(600)), encoder.encode('y'.repeat(600))]);
  return code(fetch(url, { method: 'POST', body }));
}

async function together({ url, n }: Input): Promise<number> {
  const responses = await Promise.all(Array.from({ length: Number(n) }, () => fetch(url)));
  await Promise.all(responses.map((response) => response.text()));
  return responses.reduce((sum, response) => sum + response.status, 0);
}

async function redirects({ url }: Input): Promise<unknown> {
  const kept = await fetch(url, { redirect: 'manual' });
  return [kept.status, kept.headers.get('location'), await code(fetch(url, { redirect: 'error' }))];
}

async function codes({ urls }: Input): Promise<unknown> {
  const found = [];
  for (const url of urls as string[]) found.push(await code(fetch(url).then((response) => response.text())));
  return found;
}

async function code(asking: Promise<unknown>): Promise<string | null> {
  try {
    await asking;
    return null;
  } catch (error) {
    const failure = error as Error & { code: string; cause: { code: string } };
    if (!(failure instanceof TypeError) || failure.cause.code !== failure.code) throw error;
    return failure.code;
  }
}

async function uncaught({ url }: Input): Promise<string> {
  return (await fetch(url)).text();
}

/** Gives up a request that is not answered, and one whose answer does not end. */
async function giveUp({ url }: Input): Promise<string> {
  const controller = new AbortController();
  const asking = fetch(`${url}/hang`, { signal: controller.signal });
  setTimeout(() => controller.abort(), 50);
  const reason = await asking.catch((error: unknown) => error);
  if (reason !== controller.signal.reason) throw reason;
  for await (const part of (await fetch(`${url}/endless`)).body!) {
    if (part.length > 0) break;
  }
  return 'gave up';
}

async function inTime({ url }: Input): Promise<unknown> {
  const signal = AbortSignal.timeout(100);
  const reason = (await fetch(url, { signal }).catch((error: unknown) => error)) as Error;
  return reason.name === 'TimeoutError' ? 'limit-http-time' : reason;
}

const TASKS: Record<string, (input: Input) => Promise<unknown>> = {
  get,
  echo,
  stream,
  lines,
  upload,
  forms,
  too_long: tooLong,
  together,
  redirects,
  codes,
  uncaught,
  give_up: giveUp,
  in_time: inTime,
};
