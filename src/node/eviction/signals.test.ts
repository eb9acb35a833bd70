import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hasSeparateImages, readSignals } from './signals.ts';

const dataDir = tmpdir();

test.each<[string, string | undefined, boolean]>([
  ['not separate if their folder is unknown', undefined, false],
  ['not separate if their folder is on the same disk', dataDir, false],
  ['not separate if their folder does not exist', join(dataDir, 'lifepod-missing'), false],
  ['separate if their folder is on another disk', '/proc', true],
])('the images are %s', async (_, imageDir, separate) => {
  expect(await hasSeparateImages({ dataDir, ...(imageDir === undefined ? {} : { imageDir }) })).toBe(separate);
});

test('the signals of memory and processes show less than the capacity', async () => {
  const signals = await readSignals({ dataDir });
  for (const signal of ['memory.available', 'pid.available', 'nodefs.available'] as const) {
    const { available = 0, capacity = 0 } = signals[signal] ?? {};
    expect([signal, available > 0, available < capacity]).toEqual([signal, true, true]);
  }
});

test('the image disk is measured only if its folder is known and exists, and its inodes only if it counts them', async () => {
  const measured = async (imageDir?: string) => {
    const signals = await readSignals({ dataDir, ...(imageDir === undefined ? {} : { imageDir }) });
    return [signals['imagefs.available'], signals['imagefs.inodesFree']];
  };
  expect(await measured()).toEqual([undefined, undefined]);
  expect(await measured(join(dataDir, 'lifepod-missing'))).toEqual([undefined, undefined]);
  // The file system of /proc has neither blocks nor inodes.
  expect(await measured('/proc')).toEqual([{ available: 0, capacity: 0 }, undefined]);
});
