// What a page does with the client, where there is nothing but what browsers have: `browser.mjs` runs it. It is given
// `address`, `program` and `tell`.

import { PieError, connect } from 'pie-client';

const { address, program, tell } = globalThis;
const OF_NODE = ['process', 'Buffer', 'require', 'module', 'global', 'setImmediate'];
const N_FIRST = 5;

/** An MCP server of the page, which adds. */
class Adder {
  async connect(transport) {
    transport.onmessage = ({ id, method, params }) => {
      if (id !== undefined) void transport.send({ jsonrpc: '2.0', id, result: this.answer(method, params) });
    };
    await transport.start();
  }

  answer(method, params) {
    if (method === 'initialize') {
      return { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'page', version: '1' } };
    }
    const { a, b } = params.arguments;
    return { content: [{ type: 'text', text: `${method} ${a + b}` }] };
  }
}

tell('of Node', OF_NODE.filter((name) => name in globalThis));
const client = await connect(address, { user: 'ada' });
tell('user', client.user);
await client.registerMcpServer('files', new Adder());
const launched = await client.launch(await client.upload(program), { input: { from: 'page' } });
const events = launched.events();
const next = async () => (await events.next()).value;
const first = [];
for (let n = 0; n < N_FIRST; n += 1) first.push((await next()).text.trim());
tell('first', first);
await launched.send('hello');
tell('message', (await next()).text);
await launched.send('file');
await launched.transferFile(new Uint8Array([1, 2, 3]));
tell('file', Array.from((await next()).data));
await launched.send('tool');
tell('tool', (await next()).text);
await client.unregisterMcpServer('files');
await launched.send('tool');
tell('no tool', (await next()).text);
await launched.send('stop');
while (!(await events.next()).done);
const { stopped, large } = await launched.result();
tell('result', [stopped, String(large)]);
try {
  await client.launch('absent');
} catch (error) {
  tell('refused', error instanceof PieError ? error.code : String(error));
}
await client.close();
