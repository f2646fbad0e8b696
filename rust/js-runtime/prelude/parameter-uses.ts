/** What a function does with its one parameter, as far as its text tells. Loaded where a warning depends on it. */

/** A place where a text uses a name. */
interface Use {
  /** The key that is read there; undefined where the text does not say which, or where none is. */
  readonly key: string | undefined;
  /** Whether something is read by brackets there, or taken apart by a pattern. */
  readonly takesParts: boolean;
}

/** The keys that a function reads of its one parameter; undefined where it uses that otherwise. */
export function keysRead(source: string): readonly string[] | undefined {
  const head = /^(?:async\b\s*)?(?:function\b\s*[\w$]*\s*)?\(?\s*/.exec(source)![0]!;
  const rest = source.slice(head.length);
  if (rest.startsWith(')')) return [];
  const parts = /^\{([^{}]*)\}/.exec(rest)?.[1]?.split(',').map((part) => part.trim());
  if (parts !== undefined) return parts.some((part) => part.startsWith('...')) ? undefined : parts.map((part) => part.split(/[:=]/)[0]!.trim());
  const name = /^([A-Za-z_$][\w$]*)\s*(?:[,)=])/.exec(rest)?.[1];
  if (name === undefined) return undefined;
  const uses = usesOf(name, rest.slice(name.length));
  const keys = uses.flatMap(({ key }) => (key === undefined ? [] : [key]));
  return keys.length === uses.length ? keys : undefined;
}

/** Whether a function reads the part of a parameter that is called as the parameter is. */
export function readsPart(name: string, source: string): boolean {
  return usesOf(name, source).some(({ key, takesParts }) => takesParts || key === name);
}

/** Where a text uses a name. Behind one dot it is a key of something else, and behind three of them it is spread. */
function usesOf(name: string, text: string): Use[] {
  const word = name.replaceAll('$', '\\$');
  const found = text.matchAll(new RegExp(`(\\}\\s*=\\s*)?(?<![\\w$]|[^.]\\.)${word}(?![\\w$])`, 'g'));
  return Array.from(found, ({ 0: use, 1: pattern, index }) => {
    const behind = text.slice(index + use.length);
    const dotted = /^\s*\??\.\s*([\w$]+)/.exec(behind)?.[1];
    const bracket = /^\s*(?:\?\.)?\[(?:\s*(['"])([^'"]*)\1\s*\])?/.exec(behind);
    return { key: dotted ?? bracket?.[2], takesParts: pattern !== undefined || bracket !== null };
  });
}
