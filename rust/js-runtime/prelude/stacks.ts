/** Which lines of a stack are of the program. */

/**
 * The lines of a stack that lead through the program's own files. Those of the SDK and the runtime were compiled
 * without names and places.
 */
export function ownLines(error: Error): string[] {
  const lines = String(error.stack ?? '').split('\n');
  return lines.filter((line) => /:\d+:\d+\)?$/.test(line) && !/[( ](?:<null>|pie:)/.test(line));
}
