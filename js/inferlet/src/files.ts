/**
 * Beside the files of a program, which it reads and writes by `node:fs/promises`: why the engine refused something.
 */

import * as host from 'pie:host';
import { InferletError } from './errors.js';

/**
 * Why the engine last refused a call on files; undefined where it has refused nothing. The error that was thrown has it
 * as its `cause`. Its code is `limit-files` where `/scratch` is full or a path is too long, `files-off` where there
 * is no folder, `limit-resources` where too many files are open, and `files-stalled` where the disk does not answer;
 * its message names the limit.
 */
export function refusal(): InferletError | undefined {
  try {
    host.check();
    return undefined;
  } catch (error) {
    if (error instanceof InferletError) return error;
    throw error;
  }
}
