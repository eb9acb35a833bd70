import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLog, testTimers } from '../client/testing.ts';
import { rotateLog, startLogRotation } from './log-rotation.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-rotation-'));
  path = join(folder, '0.log');
});
afterEach(() => rmSync(folder, { recursive: true }));

const LONG = 'content that is long';
const at = (second: number): number => Date.UTC(2026, 0, 31, 9, 30, second);
const files = (): string[] => readdirSync(folder).sort();
const rotate = (
  second: number,
  reopen = async (): Promise<void> => writeFileSync(path, '', { mode: 0o640 }),
  maxFiles = 3,
) => rotateLog({ path, maxBytes: LONG.length, maxFiles, now: at(second), reopen });
const notCalled = () => Promise.reject(new Error('not called'));

describe('rotateLog', () => {
  it.each([
    ['smaller than the limit', LONG.slice(1), false],
    ['as large', LONG, true],
  ])('a log that is %s', async (_, content, expected) => {
    writeFileSync(path, content);
    expect(await rotate(1)).toBe(expected);
    expect(files()).toEqual(expected ? ['0.log', '0.log.20260131-093001'] : ['0.log']);
  });

  it('keeps the newest files, the last one as it was, the others compressed', async () => {
    for (const second of [1, 2, 3, 4, 5]) {
      writeFileSync(path, `${LONG} ${second}`, { mode: 0o640 });
      expect(await rotate(second, undefined, 4)).toBe(true);
    }
    expect(files()).toEqual(['0.log', '0.log.20260131-093003.gz', '0.log.20260131-093004.gz', '0.log.20260131-093005']);
    expect(readFileSync(join(folder, '0.log.20260131-093005'), 'utf8')).toBe(`${LONG} 5`);
    const compressed = join(folder, '0.log.20260131-093004.gz');
    expect(gunzipSync(readFileSync(compressed)).toString()).toBe(`${LONG} 4`);
    expect(statSync(compressed).mode & 0o777).toBe(0o640);
  });

  it('with two files keeps one beside the one being written', async () => {
    for (const second of [1, 2]) {
      writeFileSync(path, LONG);
      await rotate(second, undefined, 2);
    }
    expect(files()).toEqual(['0.log', '0.log.20260131-093002']);
  });

  it('leaves the log in place where the runtime opens no new one', async () => {
    writeFileSync(path, LONG);
    await expect(rotate(1, () => Promise.reject(new Error('down')))).rejects.toThrow('down');
    expect(files()).toEqual(['0.log']);
    expect(readFileSync(path, 'utf8')).toBe(LONG);
  });

  it('after a crash between the two steps makes the runtime open the log', async () => {
    writeFileSync(`${path}.20260131-093001`, LONG);
    expect(await rotate(2)).toBe(false);
    expect(files()).toEqual(['0.log', '0.log.20260131-093001']);
  });

  it('clears away what a crash left while it compressed', async () => {
    writeFileSync(`${path}.20260131-093001`, LONG);
    writeFileSync(`${path}.20260131-093001.gz`, 'whole');
    writeFileSync(`${path}.20260131-093002.tmp`, 'half');
    writeFileSync(path, LONG);
    await rotate(3, undefined, 5);
    expect(files()).toEqual(['0.log', '0.log.20260131-093001.gz', '0.log.20260131-093003']);
    expect(readFileSync(`${path}.20260131-093001.gz`, 'utf8')).toBe('whole');
  });

  it('overwrites nothing where two rotations fall into one second', async () => {
    writeFileSync(path, `${LONG} 1`);
    await rotate(1);
    writeFileSync(path, `${LONG} 2`);
    expect(await rotate(1, notCalled)).toBe(false);
    expect(readFileSync(`${path}.20260131-093001`, 'utf8')).toBe(`${LONG} 1`);
    expect(await rotate(2)).toBe(true);
    expect(files()).toHaveLength(3);
  });

  it('touches no other file', async () => {
    for (const name of ['0.log.save', '10.log', '00.log.20260131-093001']) writeFileSync(join(folder, name), 'x');
    for (const second of [1, 2, 3]) {
      writeFileSync(path, LONG);
      await rotate(second, undefined, 2);
    }
    expect(files()).toEqual(['0.log', '0.log.20260131-093003', '0.log.save', '00.log.20260131-093001', '10.log']);
  });
});

it('startLogRotation looks at each interval at the logs of what runs then, whatever fails', async () => {
  const timers = testTimers(at(0));
  const stop = new AbortController();
  const second = join(folder, '1.log');
  const warnings: string[] = [];
  let turn = Promise.withResolvers<void>();
  let running = [{ containerId: 'a', path }];
  startLogRotation({
    maxBytes: LONG.length,
    maxFiles: 3,
    intervalMillis: 10_000,
    timers: {
      ...timers,
      at(time, callback) {
        // Asked for when a turn is over.
        turn.resolve();
        return timers.at(time, callback);
      },
    },
    log: { ...silentLog, warn: (message, fields) => void warnings.push(`${message}: ${fields?.['error']}`) },
    signal: stop.signal,
    logs: () => running,
    async reopen(containerId) {
      if (containerId === 'a') throw new Error('down');
      writeFileSync(second, '');
    },
  });
  const next = async (millis: number): Promise<void> => {
    turn = Promise.withResolvers<void>();
    timers.advance(millis);
    await turn.promise;
  };
  writeFileSync(path, LONG);
  writeFileSync(second, LONG);
  timers.advance(9_999);
  expect(files()).toEqual(['0.log', '1.log']);
  await next(1);
  expect(files()).toEqual(['0.log', '1.log']);
  expect(warnings).toEqual(['log not rotated: down']);
  running = [...running, { containerId: 'b', path: second }];
  await next(10_000);
  expect(files()).toEqual(['0.log', '1.log', '1.log.20260131-093020']);
  stop.abort();
  writeFileSync(second, LONG);
  timers.advance(60_000);
  expect(existsSync(`${second}.20260131-093120`)).toBe(false);
});
