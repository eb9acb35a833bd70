/**
 * Makes a command survive errors of its standard output and standard error, and report lost output.
 *
 * Invariants: a command with effects, such as `lifepod down`, finishes although its output is lost. A command whose output does not fit on
 * the disk prints one sentence to standard error, and its exit code is not 0.
 */
import { fstatSync, writeSync } from 'node:fs';
import { getSystemErrorMessage } from 'node:util';
import { printableText } from '../../platform/log/printable.ts';
import { terminalLine } from './terminal-line.ts';

const STDOUT = 1;

/**
 * The errors of a pipe whose reader has ended and of a terminal that was closed: no user waits for the output any more. For a file, EIO is
 * an error of its disk.
 */
const CLOSED: readonly unknown[] = ['EPIPE', 'EIO'];

/**
 * Prints the lines, which end without a line break, to standard output. Must print every text that may contain one of a client or of a
 * container, such as the message of a container, except logs and colored texts: see printableText().
 */
export const printLine = (line: string): void => void process.stdout.write(`${printableText(line)}\n`);

/** Like printLine(), to standard error, above the progress line. */
export const printError = (line: string): void => terminalLine.printAbove(process.stderr, `${printableText(line)}\n`);

/** Must be called once, before the first output. */
export function watchOutput(): void {
  const { stdout, stderr } = process;
  const isFile = fstatSync(STDOUT).isFile();
  let isReported = false;
  const report = (error: NodeJS.ErrnoException): void => {
    if (isReported || (!isFile && CLOSED.includes(error.code))) return;
    isReported = true;
    const cause = error.errno === undefined ? error.message : getSystemErrorMessage(error.errno);
    stderr.write(`lifepod: standard output cannot be written: ${cause}\n`);
  };
  if (isFile) writeWholly(stdout);
  stdout.on('error', report);
  // A sentence that cannot be written is lost.
  stderr.on('error', () => undefined);
  process.on('exit', () => {
    // process.exit() prevents the event of an error that has just occurred, such as after a help text.
    if (stdout.errored) report(stdout.errored);
    if (isReported && (process.exitCode ?? 0) === 0) process.exitCode = 1;
  });
}

/**
 * Makes the stream write each chunk wholly. On a disk that is almost full, write(2) writes only a part of a chunk, which the stream of
 * Node.js takes for the whole.
 */
function writeWholly(stream: NodeJS.WriteStream): void {
  stream._write = (chunk: Buffer, _encoding, done) => {
    try {
      for (let at = 0; at < chunk.length; ) at += writeSync(STDOUT, chunk, at);
    } catch (error) {
      done(error as Error);
      return;
    }
    done();
  };
}
