/** Builds the archive of the image busybox:1.28 from the machine's busybox-static. Later runs of the tests reuse the archive. */
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeBusyboxArchive } from '../../src/runtime/images/local-images.ts';

export async function busyboxArchive(): Promise<string> {
  const folder = join(tmpdir(), 'lifepod-test-images');
  const archive = join(folder, 'busybox-1.28.tar');
  if (existsSync(archive)) return archive;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const unfinished = `${archive}.${process.pid}`;
  await makeBusyboxArchive(unfinished, { reference: 'docker.io/library/busybox:1.28' });
  renameSync(unfinished, archive);
  return archive;
}
