/** Copies an archive from standard input or another pipe to a file without a name, because an archive must be read twice. */
import { closeSync, constants, existsSync, openSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { binarySize } from '../../machinery/binary-size.ts';
import { UserError } from '../../platform/files.ts';
import { isThroughSudo, rootProgram, sudoProgram } from '../../platform/programs/typed-program.ts';
import { MAKE_AGAIN } from '../../runtime/images/import-failure.ts';
import { hintsFor } from '../hints.ts';

export const STANDARD_INPUT = 'standard input';

/** Matches what a shell passes as FILE for `<(COMMAND)`. */
const SHELL_PIPE = /^\/(?:dev|proc\/self)\/fd\/\d+$/;

/**
 * Returns the end of a sentence about a pipe of the shell that does not exist because sudo closes all files but the standard ones;
 * undefined for another path. `words`: the command that reads standard input instead, such as `up -`.
 */
export function closedBySudo(path: string, words: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  if (!SHELL_PIPE.test(path) || !isThroughSudo(env) || existsSync(path)) return undefined;
  return `does not exist, because ${sudoProgram(env)} closes the pipe of '<(COMMAND)': type 'COMMAND | ${rootProgram(env)} ${words}'`;
}

/**
 * Copies the input to a file in the folder, and calls `use` with a path in /proc that leads to the open file. The file has no name, so that
 * nothing is left even after kill -9. Settles as `use` does, but a UserError names the input instead of the path. Rejects with a UserError
 * if the input is a terminal.
 */
export async function withArchiveFrom<T>(
  input: Readable & { isTTY?: boolean },
  folder: string,
  show: (text: string) => void,
  use: (path: string) => Promise<T>,
  inputName = STANDARD_INPUT,
): Promise<T> {
  if (input.isTTY === true)
    throw new UserError(
      `${STANDARD_INPUT} is a terminal: send an archive, as in 'docker save busybox | ${hintsFor({ dataDir: folder }, process.env).engine('image load -')}'`,
    );
  const name = join(folder, `standard-input-${process.pid}`);
  const fd = openSync(name, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    rmSync(name);
    const path = `/proc/self/fd/${fd}`;
    await copy(input, path, (bytes) => show(`reading ${inputName}: ${binarySize(bytes)}`)).catch((error: Error) => {
      // The error of a failed write does not include the path.
      throw Object.assign(error, { path: name });
    });
    return await use(path).catch((error: unknown) => {
      if (!(error instanceof UserError)) throw error;
      throw new UserError(aboutInput(error.message, path, inputName));
    });
  } finally {
    closeSync(fd);
  }
}

/** The input cannot be copied again, so the advice MAKE_AGAIN is replaced. */
const aboutInput = (message: string, path: string, inputName: string): string =>
  message
    .replaceAll(`archive ${path}`, `archive from ${inputName}`)
    .replaceAll(path, inputName)
    .replace(MAKE_AGAIN, 'see whether the command that writes it has failed');

async function copy(input: Readable, path: string, show: (bytes: number) => void): Promise<void> {
  const file = await open(path, 'w');
  try {
    let bytes = 0;
    for await (const chunk of input as AsyncIterable<Buffer>) {
      await file.writeFile(chunk);
      bytes += chunk.length;
      show(bytes);
    }
  } finally {
    await file.close();
  }
}
