import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { boundLog, compress, rotateLog, uncompressed } from './log-files.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-rotation-'));
  path = join(folder, '0.log');
});
afterEach(() => rmSync(folder, { recursive: true }));

const LONG = 'content that is long'.repeat(50);
const { signal } = new AbortController();
const at = (second: number): number => Date.UTC(2026, 0, 31, 9, 30, second);
const files = (): string[] => readdirSync(folder).sort();
const opened = async (): Promise<void> => writeFileSync(path, '', { mode: 0o640 });
const rotate = async (second: number, reopen = opened, maxFiles = 3): Promise<boolean> =>
  (await rotateLog({ path, maxBytes: LONG.length, maxFiles, now: at(second), reopen })).rotated;
const compressAll = async (): Promise<void> => {
  for (const file of await uncompressed(path)) await compress(file, signal);
};
const sizes = (): number => files().reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);

describe('rotateLog', () => {
  it.each([
    ['smaller than the limit by keeping it', LONG.slice(1), false],
    ['as large as the limit by rotating it', LONG, true],
  ])('rotateLog handles a log %s', async (_, content, expected) => {
    writeFileSync(path, content);
    expect(await rotate(1)).toBe(expected);
    expect(files()).toEqual(expected ? ['0.log', '0.log.20260131-093001'] : ['0.log']);
  });

  it('rotateLog keeps the newest files, and leaves only the last one uncompressed', async () => {
    for (const second of [1, 2, 3, 4, 5]) {
      writeFileSync(path, `${LONG} ${second}`, { mode: 0o640 });
      expect(await rotate(second, opened, 4)).toBe(true);
      await compressAll();
    }
    expect(files()).toEqual(['0.log', '0.log.20260131-093003.gz', '0.log.20260131-093004.gz', '0.log.20260131-093005']);
    expect(readFileSync(join(folder, '0.log.20260131-093005'), 'utf8')).toBe(`${LONG} 5`);
    const compressed = join(folder, '0.log.20260131-093004.gz');
    expect(gunzipSync(readFileSync(compressed)).toString()).toBe(`${LONG} 4`);
    expect(statSync(compressed).mode & 0o777).toBe(0o640);
  });

  it('rotateLog keeps one rotated file if two files are allowed', async () => {
    for (const second of [1, 2]) {
      writeFileSync(path, LONG);
      await rotate(second, opened, 2);
    }
    expect(files()).toEqual(['0.log', '0.log.20260131-093002']);
  });

  it('rotateLog leaves the log in place if the runtime fails to open a new one', async () => {
    writeFileSync(path, LONG);
    await expect(rotate(1, () => Promise.reject(new Error('down')))).rejects.toThrow('down');
    expect(files()).toEqual(['0.log']);
    expect(readFileSync(path, 'utf8')).toBe(LONG);
  });

  it('rotateLog makes the runtime reopen the log after a crash between rename and reopen', async () => {
    writeFileSync(`${path}.20260131-093001`, LONG);
    expect(await rotate(2)).toBe(false);
    expect(files()).toEqual(['0.log', '0.log.20260131-093001']);
  });

  it('rotateLog cleans up after a crash during compression', async () => {
    writeFileSync(`${path}.20260131-093001`, LONG);
    writeFileSync(`${path}.20260131-093001.gz`, 'whole');
    writeFileSync(`${path}.20260131-093002.tmp`, 'half');
    writeFileSync(path, LONG);
    await rotate(3, opened, 5);
    expect(files()).toEqual(['0.log', '0.log.20260131-093001.gz', '0.log.20260131-093003']);
    expect(readFileSync(`${path}.20260131-093001.gz`, 'utf8')).toBe('whole');
  });

  it('rotateLog names files in the order of writing, within one second and after the clock was set back', async () => {
    const turns: [number, string][] = [
      [1_000, '20260131-093001'],
      [1_250, '20260131-093001-250'],
      [1_250, '20260131-093001-251'],
      [500, '20260131-093001-252'],
      [2_000, '20260131-093002'],
    ];
    const expected = ['0.log'];
    for (const [millis, name] of turns) {
      writeFileSync(path, LONG);
      await rotateLog({ path, maxBytes: LONG.length, maxFiles: 9, now: at(0) + millis, reopen: opened });
      expected.push(`0.log.${name}`);
      expect(files()).toEqual(expected);
    }
    await compress(join(folder, '0.log.20260131-093001'), signal);
    writeFileSync(path, LONG);
    await rotate(3, opened, 6);
    // The oldest file was removed, although its compressed name sorts after the names of the other files of that second.
    expect(files()).not.toContain('0.log.20260131-093001.gz');
    expect(files()).toContain('0.log.20260131-093001-250');
  });

  it('rotateLog keeps fewer files if they are larger than the limit', async () => {
    for (const second of [1, 2, 3, 4, 5]) {
      writeFileSync(path, LONG.repeat(2));
      expect(await rotate(second, opened, 5)).toBe(true);
      expect(sizes()).toBeLessThanOrEqual(4 * LONG.length);
    }
    expect(files()).toEqual(['0.log', '0.log.20260131-093004', '0.log.20260131-093005']);
  });

  it('rotateLog does not bring back a file that was removed during its compression', async () => {
    const aside = `${path}.20260131-093001`;
    writeFileSync(aside, LONG);
    const compressed = compress(aside, signal);
    rmSync(aside);
    await compressed;
    await compress(aside, signal);
    expect(files()).toEqual([]);
  });

  it('rotateLog does not touch other files', async () => {
    for (const name of ['0.log.save', '10.log', '00.log.20260131-093001']) writeFileSync(join(folder, name), 'x');
    for (const second of [1, 2, 3]) {
      writeFileSync(path, LONG);
      await rotate(second, opened, 2);
    }
    expect(files()).toEqual(['0.log', '0.log.20260131-093003', '0.log.save', '00.log.20260131-093001', '10.log']);
  });
});

describe('boundLog', () => {
  const LINE = `${'a line of a log '.repeat(3)}\n`;
  const limits = { maxBytes: LINE.length * 100, maxFiles: 3 };
  const all = limits.maxBytes * limits.maxFiles;
  const writeLines = (file: string, count: number): void =>
    writeFileSync(file, Array.from({ length: count }, (_, i) => `${i} ${LINE}`).join(''), { mode: 0o640 });

  it('boundLog leaves a log within its limits unchanged', async () => {
    writeLines(path, 100);
    writeLines(`${path}.20260131-093001`, 100);
    await boundLog(path, limits, true);
    expect(files()).toEqual(['0.log', '0.log.20260131-093001']);
  });

  it('boundLog removes the oldest files of a log that has ended', async () => {
    writeLines(path, 150);
    for (const second of [1, 2, 3]) writeLines(`${path}.20260131-09300${second}`, 100);
    await boundLog(path, limits, true);
    expect(files()).toEqual(['0.log', '0.log.20260131-093003']);
    expect(sizes()).toBeLessThanOrEqual(all);
  });

  it('boundLog keeps older files if the source of a completed compression is large', async () => {
    writeLines(path, 50);
    writeLines(`${path}.20260131-093001`, 100);
    writeLines(`${path}.20260131-093002.gz`, 10);
    writeLines(`${path}.20260131-093002`, 300);
    await boundLog(path, limits, true);
    expect(files()).toEqual(['0.log', '0.log.20260131-093001', '0.log.20260131-093002.gz']);
  });

  it.each([
    ['the log itself, once it has ended', '0.log', true, all],
    ['the rotated file of a log that is being written', '0.log.20260131-093002', false, 2 * limits.maxBytes],
  ])('boundLog keeps the last whole lines of %s', async (_, name, ended, expected) => {
    writeLines(join(folder, name), 1_000);
    writeLines(`${path}.20260131-093001`, 10);
    await boundLog(path, limits, ended);
    expect(files()).toEqual([name]);
    const lines = readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1);
    expect(lines.at(-1)).toBe(`999 ${LINE.trimEnd()}`.padEnd(LINE.length + 3));
    expect(lines[0]).toMatch(/^\d+ a line/);
    expect(sizes()).toBeLessThanOrEqual(expected);
    expect(sizes()).toBeGreaterThan(expected - 2 * LINE.length);
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o640);
  });
});
