// Schemas of zod for the test beside: `schemas` prints them as JSON Schemas, `check` says of each document on stdin, a
// list of names and texts, whether zod takes it: null, or what it says.

import { readFileSync } from 'node:fs';
import { z } from '../../js/inferlet/node_modules/zod/index.js';

const Node = z.object({
  name: z.string().max(5),
  get children() {
    return z.array(Node).max(2);
  },
});
const Shape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('circle'), radius: z.number().min(0).max(9) }),
  z.object({ kind: z.literal('square'), side: z.int().min(1).max(9) }),
]);
const SCHEMAS = {
  order: z.object({
    shape: Shape,
    tree: Node,
    note: z.string().max(6).nullable().describe('What is to be known.'),
    level: z.enum(['low', 'high']).default('low'),
    size: z.int().min(0).max(99).optional(),
    pair: z.tuple([z.boolean(), z.literal([1, 2])]),
  }),
  address: z.object({ host: z.ipv4(), id: z.uuid(), day: z.iso.date().nullable() }),
};

if (process.argv[2] === 'schemas') {
  const told = Object.entries(SCHEMAS).map(([name, schema]) => [name, z.toJSONSchema(schema)]);
  console.log(JSON.stringify(Object.fromEntries(told)));
} else {
  const documents = JSON.parse(readFileSync(0, 'utf8'));
  const verdict = ([name, text]) => SCHEMAS[name].safeParse(JSON.parse(text)).error?.message ?? null;
  console.log(JSON.stringify(documents.map(verdict)));
}
