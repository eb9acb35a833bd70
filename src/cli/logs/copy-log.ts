/** Copies a log from the API server to standard output. */
import type { Readable } from 'node:stream';
import { UserError } from '../../platform/files.ts';
import { terminalLine } from '../progress/terminal-line.ts';
import type { LineSplitter } from './merged-lines.ts';

/** Resolves at the end of the body or at an abort of `signal`. Rejects with a UserError if the connection is lost. */
export async function copyLog(body: Readable, lines: LineSplitter | undefined, signal: AbortSignal): Promise<void> {
  try {
    for await (const chunk of body as AsyncIterable<Buffer>)
      await write(lines === undefined ? chunk : lines.feed(chunk));
  } catch (error) {
    if (signal.aborted) return;
    throw new UserError(`the connection to the API server was lost: ${(error as Error).message}`);
  }
  if (lines !== undefined) await write(lines.end());
}

const write = (chunk: Buffer): Promise<void> =>
  new Promise((resolve) => {
    if (chunk.length === 0) resolve();
    else terminalLine.printAbove(process.stdout, chunk, resolve);
  });

/** Follows the convention of no-color.org. */
export const hasColors = (): boolean => process.stdout.isTTY === true && !process.env['NO_COLOR'];
