// A signal by the client for JavaScript: `signal.mjs ADDRESS PROGRAM` writes what the program has returned.

import { readFileSync } from 'node:fs';
import { connect } from '../../../js/client/dist/index.js';

const [address, path] = process.argv.slice(2);
const client = await connect(address);
const proc = await client.launch(await client.upload(new Uint8Array(readFileSync(path))), { input: 'signals' });
await proc.signal('stop');
console.log(JSON.stringify(await proc.result()));
await client.close();
