/**
 * Sets up hostPath volumes. The path of a volume without a type is neither checked nor created.
 * Source: pkg/volume/hostpath of v1.33 (types, modes, error texts).
 */
import { chmod, mkdir, open, stat } from 'node:fs/promises';
import type { HostPathVolumeSource } from '../../api/generated/types.ts';

type Stat = Awaited<ReturnType<typeof stat>>;

const checks: Readonly<Record<string, { fits(stat: Stat): boolean; words: string }>> = {
  Directory: { fits: (s) => s.isDirectory(), words: 'a directory' },
  DirectoryOrCreate: { fits: (s) => s.isDirectory(), words: 'a directory' },
  File: { fits: (s) => s.isFile(), words: 'a file' },
  FileOrCreate: { fits: (s) => s.isFile(), words: 'a file' },
  Socket: { fits: (s) => s.isSocket(), words: 'a socket file' },
  CharDevice: { fits: (s) => s.isCharacterDevice(), words: 'a character device' },
  BlockDevice: { fits: (s) => s.isBlockDevice(), words: 'a block device' },
};

export async function setUpHostPath({ path, type = '' }: HostPathVolumeSource): Promise<void> {
  if (type === '') return;
  const check = checks[type];
  if (check === undefined) throw new Error(`${JSON.stringify(type)} is an invalid volume type`);
  let found = await statIfPresent(path);
  if (found === undefined && type === 'DirectoryOrCreate') {
    await mkdir(path, { recursive: true });
    await chmod(path, 0o755);
    found = await stat(path);
  } else if (found === undefined && type === 'FileOrCreate') {
    await (await open(path, 'a', 0o644)).close();
    found = await stat(path);
  }
  if (found === undefined || !check.fits(found))
    throw new Error(`hostPath type check failed: ${path} is not ${check.words}`);
}

async function statIfPresent(path: string): Promise<Stat | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
