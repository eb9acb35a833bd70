import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { limitMessage, messageLimitBytes, readTerminationMessage } from './termination-message.ts';

test.each([
  [0, 4096],
  [1, 4096],
  [3, 4096],
  [4, 3072],
  [5, 2457],
])('the limit of a message in a Pod of %i containers is %i bytes', (containers, bytes) => {
  expect(messageLimitBytes(containers)).toBe(bytes);
});

test.each([
  ['abc', 3, 'abc'],
  ['abc', 2, 'ab'],
  ['aé', 2, 'a'],
  ['aé', 3, 'aé'],
  ['a€b', 3, 'a'],
  ['a€b', 4, 'a€'],
  ['€', 0, ''],
])('limitMessage() of %j to %i bytes does not split a character', (message, bytes, expected) => {
  expect(limitMessage(message, bytes)).toBe(expected);
});

describe('readTerminationMessage()', () => {
  const { signal } = new AbortController();
  let folder: string;
  let isEnded: boolean;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'lifepod-message-'));
    isEnded = false;
    writeLog(['out of memory']);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const path = (name: string): string => join(folder, name);
  const writeLog = (lines: readonly string[]): void =>
    writeFileSync(path('log'), lines.map((line) => `2026-01-01T00:00:00Z stderr F ${line}\n`).join(''));
  const read = (
    more: { file?: string; logFile?: string; policy?: string; exitCode?: number } = {},
  ): Promise<string> => {
    const { file = path('message'), logFile = path('log'), policy = 'File', exitCode = 1 } = more;
    const logEnded = async (): Promise<void> => {
      isEnded = true;
    };
    return readTerminationMessage({ file, logFile, logEnded, policy, exitCode }, signal);
  };
  const fallBack = (more: { file?: string; logFile?: string; exitCode?: number } = {}): Promise<string> =>
    read({ policy: 'FallbackToLogsOnError', ...more });

  test('the message is the content of the file, even if the log has content', async () => {
    writeFileSync(path('message'), 'disk full');
    expect([await read(), await fallBack()]).toEqual(['disk full', 'disk full']);
    expect(isEnded).toBe(false);
  });

  test('the message is at most the first 4096 bytes of the file', async () => {
    writeFileSync(path('message'), `${'a'.repeat(4096)}b`);
    expect(await read()).toBe('a'.repeat(4096));
  });

  test('there is no message without a file or without content', async () => {
    expect(await read()).toBe('');
    writeFileSync(path('message'), '');
    expect(await read()).toBe('');
  });

  test('the message of a failed container falls back to the log once the log has ended', async () => {
    writeFileSync(path('message'), '');
    expect(await fallBack()).toBe('out of memory\n');
    expect(isEnded).toBe(true);
  });

  test('the message of a container without a file falls back to the log', async () => {
    const options = { file: undefined, logFile: path('log'), logEnded: async () => undefined, exitCode: 1 };
    expect(await readTerminationMessage({ ...options, policy: 'FallbackToLogsOnError' }, signal)).toBe(
      'out of memory\n',
    );
    expect(await readTerminationMessage({ ...options, policy: undefined }, signal)).toBe('');
  });

  test('the message of a container that succeeded does not fall back to the log', async () => {
    expect(await fallBack({ exitCode: 0 })).toBe('');
  });

  test('the log contributes at most its last 80 lines and 2048 bytes', async () => {
    const lines = Array.from({ length: 81 }, (_, index) => `${index}`);
    writeLog(lines);
    expect(await fallBack()).toBe(`${lines.slice(1).join('\n')}\n`);
    writeLog(['a'.repeat(3000), 'b'.repeat(1000)]);
    expect(await fallBack()).toBe(`${'a'.repeat(1046)}\n${'b'.repeat(1000)}\n`);
  });

  test('a file that the container replaced by a link is not followed', async () => {
    writeFileSync(path('secret'), 'secret');
    symlinkSync(path('secret'), path('message'));
    expect(await read()).toMatch(new RegExp(`^Error on reading termination log ${path('message')}: ELOOP`));
  });

  test('a file that the container replaced by a named pipe does not block the read', async () => {
    execFileSync('mkfifo', [path('message')]);
    expect(await read()).toMatch(/^Error on reading termination log .*: ESPIPE/);
  });

  test('a log that cannot be read is reported in the message', async () => {
    mkdirSync(path('folder'));
    expect(await fallBack({ logFile: path('folder') })).toMatch(
      /^Error on reading termination message from logs: EISDIR/,
    );
  });
});
