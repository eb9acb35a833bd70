import { expect, test } from 'vitest';
import { createTerminalLine, type Stream } from './terminal-line.ts';

const streamTo = (output: string[], isTTY: boolean, columns = 20): Stream => ({
  isTTY,
  columns,
  write: (chunk, done) => {
    output.push(String(chunk));
    done?.();
    return true;
  },
});

test('the line is rewritten when its text changes, and cut at the width of the terminal', () => {
  const output: string[] = [];
  const line = createTerminalLine(streamTo(output, true));
  for (const text of ['loading 1%', 'loading 1%', 'loading a file with a long name', '', '']) line.show(text);
  expect(output).toEqual(['\r\u001b[Kloading 1%', '\r\u001b[Kloading a file with', '\r\u001b[K']);
});

test('other output appears above the line', () => {
  const output: string[] = [];
  const line = createTerminalLine(streamTo(output, true));
  const stdout = streamTo(output, false);
  line.printAbove(stdout, 'before\n');
  line.show('pulling');
  line.printAbove(stdout, 'log\n');
  line.show('');
  line.printAbove(stdout, 'after\n');
  const [clear, shown] = ['\r\u001b[K', '\r\u001b[Kpulling'];
  expect(output).toEqual(['before\n', shown, clear, 'log\n', shown, clear, 'after\n']);
});

test('nothing is shown without a terminal', () => {
  const output: string[] = [];
  const line = createTerminalLine(streamTo(output, false));
  line.show('loading');
  line.printAbove(streamTo(output, false), 'log\n');
  expect([line.isShown, output]).toEqual([false, ['log\n']]);
});
