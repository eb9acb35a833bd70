/**
 * Rewrites a line at the bottom of the terminal that shows the progress of a command. While the line is shown, all other output of the
 * process must go through printAbove(), so that the output does not continue the line.
 */
import { printable } from '../../platform/log/printable.ts';

const CLEAR = '\r\u001b[K';
const USUAL_COLUMNS = 80;

export interface TerminalLine {
  /** Whether standard error is a terminal. Without one, show() and printAbove() do not write the progress line. */
  readonly isShown: boolean;
  /** Replaces the line. An empty text removes it. */
  show(text: string): void;
  /** Writes whole lines to the stream, and redraws the progress line below them. Calls `done` when the write has succeeded or failed. */
  printAbove(stream: Stream, lines: string | Uint8Array, done?: () => void): void;
}

export type Stream = Pick<NodeJS.WriteStream, 'isTTY' | 'columns'> & {
  write(chunk: string | Uint8Array, done?: () => void): boolean;
};

export function createTerminalLine(errors: Stream): TerminalLine {
  let shown = '';
  const draw = (text: string): void => void errors.write(CLEAR + text);
  return {
    isShown: errors.isTTY === true,
    show(text) {
      if (errors.isTTY !== true) return;
      const fitting = printable(text).slice(0, (errors.columns || USUAL_COLUMNS) - 1);
      if (fitting !== shown) draw(fitting);
      shown = fitting;
    },
    printAbove(stream, lines, done) {
      if (shown !== '') draw('');
      stream.write(lines, done);
      if (shown !== '') draw(shown);
    },
  };
}

export const terminalLine = createTerminalLine(process.stderr);
