/** Programs that use files: one function a task, by `node:fs/promises` alone. */

import { appendFile, mkdir, open, readFile, readdir, rename, rm, rmdir, stat, unlink, writeFile } from 'node:fs/promises';
import { files } from 'inferlet';

interface Input {
  do: keyof typeof tasks;
  root: string;
  path: string;
  paths: string[];
  text: string;
  size: number;
  n: number;
}

const tasks = { scenario, write, read, list, make, reach, fill, many, uncaught };

export async function main(input: Input): Promise<unknown> {
  return await tasks[input.do](input);
}

async function scenario({ root }: Input): Promise<unknown[]> {
  const folder = `${root}/notes`;
  const seen: unknown[] = [];
  await mkdir(`${folder}/deep`, { recursive: true });
  await writeFile(`${folder}/a.txt`, 'one\n');
  await appendFile(`${folder}/a.txt`, 'zwei ä\n');
  seen.push(await readFile(`${folder}/a.txt`, 'utf8'));
  seen.push((await stat(`${folder}/a.txt`)).size);
  seen.push(await readdir(folder));
  await rename(`${folder}/a.txt`, `${folder}/deep/b.txt`);
  await writeFile(`${folder}/deep/b.txt`, new TextEncoder().encode('x'));
  seen.push(await readFile(`${folder}/deep/b.txt`, { encoding: 'utf8' }));
  {
    await using file = await open(`${folder}/deep/b.txt`, 'r+');
    await file.write(new TextEncoder().encode('y'), 0, 1, 3);
    await file.truncate(6);
  }
  seen.push([...(await readFile(`${folder}/deep/b.txt`))]);
  seen.push(await failure(readFile(`${folder}/missing`)));
  seen.push(await failure(rmdir(`${folder}/deep`)));
  seen.push(await failure(mkdir(`${folder}/deep`)));
  seen.push(await failure(open(`${folder}/deep`, 'w')));
  seen.push(await failure(writeFile(`${folder}/deep/b.txt`, '', { flag: 'wx' })));
  await unlink(`${folder}/deep/b.txt`);
  await rmdir(`${folder}/deep`);
  seen.push(await readdir(folder));
  await rm(folder, { recursive: true });
  seen.push((await failure(stat(folder))) === null);
  return seen;
}

async function write({ path, text }: Input): Promise<void> {
  await writeFile(path, text);
}

async function read({ path }: Input): Promise<string> {
  return await readFile(path, 'utf8');
}

async function list({ path }: Input): Promise<string[]> {
  return await readdir(path);
}

async function make({ path }: Input): Promise<void> {
  await mkdir(path, { recursive: true });
}

async function reach({ paths }: Input): Promise<unknown> {
  const found: (string | null)[][] = [];
  for (const path of paths) {
    found.push([await failure(readFile(path)), await failure(writeFile(path, 'mine')), await failure(mkdir(path))]);
  }
  return found;
}

async function fill({ path, size }: Input): Promise<unknown> {
  const stopped = await failure(writeFile(path, new Uint8Array(size)));
  return [stopped, files.refusal()?.code ?? null, (await stat(path)).size <= size];
}

async function many({ path, n }: Input): Promise<unknown> {
  let made = 0;
  let stopped: string | null = null;
  while (made < n && stopped === null) {
    stopped = await failure(writeFile(`${path}/${made}`, ''));
    if (stopped === null) made += 1;
  }
  return [made, stopped, files.refusal()?.code ?? null];
}

async function uncaught({ path, size }: Input): Promise<void> {
  await writeFile(path, new Uint8Array(size));
}

/** The code of the error of a call. */
async function failure(call: Promise<unknown>): Promise<string | null> {
  try {
    await call;
    return null;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}
