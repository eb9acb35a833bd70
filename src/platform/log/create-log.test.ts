import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLog, type LogOptions } from '../node-js.ts';
import type { Log } from '../platform.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-log-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** Returns the lines that `use` writes to a log. `opened` runs before the log is created. */
function written(
  options: Omit<LogOptions, 'fileDescriptor'>,
  use: (log: Log) => void,
  opened: (fileDescriptor: number) => void = () => undefined,
): string[] {
  const path = join(folder, 'log');
  const fileDescriptor = openSync(path, 'a');
  opened(fileDescriptor);
  use(createLog({ ...options, fileDescriptor }));
  closeSync(fileDescriptor);
  return readFileSync(path, 'utf8').split('\n').slice(0, -1);
}

test('a message in the format json is one object, with each key once', () => {
  const lines = written({ level: 'info', format: 'json' }, (log) => {
    const child = log.child({ pod: 'default/web', attempt: 1 });
    child.warn('action failed', { pod: 'web', message: 'no' });
    child.child({ attempt: 2 }).info('again');
    child.info('own names', { level: 'high', time: 1, msg: 'text' });
  });
  expect(lines.map((line) => line.replace(/"time":"[^"]+"/, '"time":"T"'))).toEqual([
    '{"level":40,"time":"T","pod":"web","attempt":1,"message":"no","msg":"action failed"}',
    '{"level":30,"time":"T","pod":"default/web","attempt":2,"msg":"again"}',
    '{"level":30,"time":"T","pod":"default/web","attempt":1,"level_":"high","time_":1,"msg_":"text","msg":"own names"}',
  ]);
});

test('a message is text by default, without colors in a file', () => {
  const [line, ...others] = written({ level: 'info' }, (log) =>
    log.child({ pod: 'default/web' }).error('it\nfailed', { code: 3 }),
  );
  expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z ERROR it\\u000afailed pod=default\/web code=3$/);
  expect(others).toEqual([]);
});

/** Sets JOURNAL_STREAM as systemd does. If `more` is not 0, the variable names a stream other than the log's. */
const streamOf = (more: bigint) => (fileDescriptor: number) => {
  const { dev, ino } = fstatSync(fileDescriptor, { bigint: true });
  vi.stubEnv('JOURNAL_STREAM', `${dev}:${ino + more}`);
};

test('a message in the journal is readable, and begins with its priority', () => {
  const use = (log: Log): void => {
    log.debug('a');
    log.info('b');
    log.child({ pod: 'default/web' }).warn('it\nfailed', { code: 3 });
    log.error('d');
  };
  expect(written({ level: 'debug' }, use, streamOf(0n))).toEqual([
    '<7>DEBUG a',
    '<6>INFO  b',
    '<4>WARN  it\\u000afailed pod=default/web code=3',
    '<3>ERROR d',
  ]);
});

test('a message has no priority if JOURNAL_STREAM names another stream, or if the format is json', () => {
  const use = (log: Log): void => log.info('a');
  const lines = [
    ...written({ level: 'info' }, use, streamOf(1n)),
    ...written({ level: 'info', format: 'json' }, use, streamOf(0n)),
  ];
  expect(lines.at(0)).toMatch(/^\d{4}-[^ ]+Z INFO +a$/);
  expect(lines.at(-1)).toMatch(/^\{.*"msg":"a"\}$/);
});

test('messages below the level are not written', () => {
  const lines = written({ level: 'warn' }, (log) => {
    log.debug('a');
    log.info('b');
    log.child({ x: 1 }).info('c');
    log.warn('d');
  });
  expect(lines).toHaveLength(1);
});
