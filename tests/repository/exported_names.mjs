// Writes the public names of the TypeScript SDK, as the parser of the compiler finds them, as a JSON list of paths.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const js = new URL('../../js/inferlet/', import.meta.url);
const ts = createRequire(new URL('package.json', js))('typescript');
const { SyntaxKind } = ts;

const names = new Set();

function parse(path) {
  return ts.createSourceFile(path, readFileSync(new URL(path, js), 'utf8'), ts.ScriptTarget.ESNext, true).statements;
}

function isInternal(node) {
  return ts.getJSDocTags(node).some((tag) => tag.tagName.text === 'internal');
}

function has(node, ...kinds) {
  return (node.modifiers ?? []).some((modifier) => kinds.includes(modifier.kind));
}

/** What a file declares at its top, by names. */
function declared(statements) {
  const found = [];
  for (const node of statements) {
    if (isInternal(node)) continue;
    if (ts.isVariableStatement(node)) {
      for (const one of node.declarationList.declarations) found.push({ name: one.name.text, node: one, isExported: has(node, SyntaxKind.ExportKeyword) });
    } else if (node.name !== undefined) {
      found.push({ name: node.name.text, node, isExported: has(node, SyntaxKind.ExportKeyword) });
    }
  }
  return found;
}

/** Adds a name with those of its members. */
function add(path, node) {
  names.add(path);
  const members = ts.isVariableDeclaration(node) ? (node.type?.members ?? []) : (node.members ?? []);
  for (const member of members) {
    const name = member.name;
    if (name === undefined || !(ts.isIdentifier(name) || ts.isStringLiteral(name))) continue;
    if (has(member, SyntaxKind.PrivateKeyword, SyntaxKind.ProtectedKeyword) || isInternal(member)) continue;
    names.add(`${path}.${name.text}`);
  }
}

for (const node of parse('src/index.ts')) {
  if (!ts.isExportDeclaration(node)) throw new Error(`index.ts has what is no export: ${node.getText()}`);
  const found = declared(parse(`src/${node.moduleSpecifier.text.replace(/^\.\/|\.js$/g, '')}.ts`));
  const clause = node.exportClause;
  if (ts.isNamespaceExport(clause)) {
    names.add(clause.name.text);
    for (const one of found) if (one.isExported) add(`${clause.name.text}.${one.name}`, one.node);
  } else {
    for (const element of clause.elements) {
      const own = (element.propertyName ?? element.name).text;
      for (const one of found) if (one.name === own) add(element.name.text, one.node);
    }
  }
}

for (const one of declared(parse('globals.d.ts'))) {
  if (ts.isModuleDeclaration(one.node)) {
    names.add(one.name);
    for (const inner of declared(one.node.body.statements)) add(`${one.name}.${inner.name}`, inner.node);
  } else {
    add(one.name, one.node);
  }
}

console.log(JSON.stringify([...names].sort()));
