/** Copies a log from the API server to standard output. */
import type { Readable } from 'node:stream';
import { UserError } from '../../platform/files.ts';
import type { Hints } from '../hints.ts';
import { terminalLine } from '../progress/terminal-line.ts';
import type { LineSplitter } from './merged-lines.ts';

/**
 * Resolves at the end of the body or at an abort of `signal`. Rejects with a UserError if the connection is lost. With `hints`, the error
 * names the next command.
 */
export async function copyLog(
  body: Readable,
  lines: LineSplitter | undefined,
  signal: AbortSignal,
  hints?: Pick<Hints, 'lifepod'>,
): Promise<void> {
  try {
    for await (const chunk of body as AsyncIterable<Buffer>)
      await write(lines === undefined ? chunk : lines.feed(chunk));
  } catch (error) {
    if (signal.aborted) return;
    const next = hints === undefined ? '' : `; '${hints.lifepod('status')}' shows whether it answers again`;
    throw new UserError(`the connection to the API server was lost: ${(error as Error).message}${next}`);
  }
  if (lines !== undefined) await write(lines.end());
}

/** Prints each log and reports each error, until `signal` aborts, which makes further requests fail. */
export async function printInTurn<T>(
  logged: readonly T[],
  print: (each: T) => Promise<void>,
  report: (error: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const each of logged) {
    if (signal.aborted) return;
    await print(each).catch((error: unknown) => {
      if (!signal.aborted) report(error);
    });
  }
}

const write = (chunk: Buffer): Promise<void> =>
  new Promise((resolve) => {
    if (chunk.length === 0) resolve();
    else terminalLine.printAbove(process.stdout, chunk, resolve);
  });

/** Follows the convention of no-color.org. */
export const hasColors = (): boolean => process.stdout.isTTY === true && !process.env['NO_COLOR'];
