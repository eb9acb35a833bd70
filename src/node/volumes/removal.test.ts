import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { VolumeImages } from './image.ts';
import { removeParts } from './removal.ts';

test('removeParts() releases images, and removes the emptyDirs, the folder in memory and the given parts of the disk', async () => {
  const root = mkdtempSync(join(tmpdir(), 'lifepod-removal-'));
  try {
    const [disk, memory] = [join(root, 'disk'), join(root, 'memory')];
    const volumes = 'volumes/kubernetes.io~';
    const kept = ['etc-hosts', `${volumes}configmap/c/file`, `${volumes}image/i/file`, 'part/file'];
    for (const file of [...kept, `${volumes}empty-dir/e/file`]
      .map((each) => join(disk, each))
      .concat(join(memory, 'file'))) {
      mkdirSync(join(file, '..'), { recursive: true });
      writeFileSync(file, '');
    }
    const released: string[] = [];
    const images = { release: async (key: string) => void released.push(key) } as Partial<VolumeImages> as VolumeImages;
    const options = { disk, memory, podUid: 'u1', images };
    const { signal } = new AbortController();
    await removeParts(options, ['part', 'missing'], signal);
    expect(released).toEqual(['lifepod-volume/u1/i']);
    expect(existsSync(memory)).toBe(false);
    expect(kept.filter((file) => existsSync(join(disk, file)))).toEqual(kept.slice(0, 3));
    expect(readdirSync(join(disk, 'volumes')).sort()).toEqual(['kubernetes.io~configmap', 'kubernetes.io~image']);
    await removeParts({ ...options, images: undefined }, [''], signal);
    expect(existsSync(disk)).toBe(false);
    await removeParts(options, [''], signal);
  } finally {
    rmSync(root, { recursive: true });
  }
});
