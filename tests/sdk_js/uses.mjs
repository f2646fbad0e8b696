// Prints what the types of `pie:host` declare, what the SDK uses of it, and what the tests' fake of it exports:
// `node uses.mjs` looks at the SDK, `node uses.mjs FOLDER` at another copy of its sources.

import path from 'node:path';
import ts from '../../js/inferlet/node_modules/typescript/lib/typescript.js';
import * as fake from './host.mjs';

const sdk = path.join(import.meta.dirname, '../../js/inferlet');
const folder = process.argv[2] ?? path.join(sdk, 'src');
const { config } = ts.readConfigFile(path.join(sdk, 'tsconfig.json'), ts.sys.readFile);
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, sdk);
const files = ts.sys.readDirectory(folder, ['.ts']);
const program = ts.createProgram(files, { ...options, rootDir: folder });
const checker = program.getTypeChecker();

/** The name under which a declaration is counted: a function's own, or that of an interface and its method. */
function nameOf(declaration) {
  if (ts.isFunctionDeclaration(declaration)) return declaration.name.text;
  if (ts.isMethodSignature(declaration)) return `${declaration.parent.name.text}.${declaration.name.text}`;
  return undefined;
}

const isTyping = (source, name) => path.basename(source.fileName) === name;
const declared = { 'host.d.ts': [], 'host-runtime.d.ts': [] };
const used = new Set();
for (const source of program.getSourceFiles().filter((source) => source.fileName.startsWith(folder))) {
  const typing = Object.keys(declared).find((name) => isTyping(source, name));
  (function visit(node) {
    if (typing !== undefined) {
      const name = nameOf(node);
      if (name !== undefined) declared[typing].push(name);
    } else if (ts.isIdentifier(node)) {
      const symbol = checker.getSymbolAtLocation(node);
      const found = symbol !== undefined && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      for (const declaration of found?.declarations ?? []) {
        const name = isTyping(declaration.getSourceFile(), 'host.d.ts') ? nameOf(declaration) : undefined;
        if (name !== undefined && !ts.isImportSpecifier(node.parent)) used.add(name);
      }
    }
    ts.forEachChild(node, visit);
  })(source);
}
const types = Object.values(declared).map((names) => names.sort());
console.log(JSON.stringify({ engine: types[0], runtime: types[1], used: [...used].sort(), faked: Object.keys(fake).sort() }));
