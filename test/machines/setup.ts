/** Builds the package and the images once for all test files, as an archive that each virtual machine reads as its second disk. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { runCommandOk } from '../../src/platform/processes.ts';
import { makeBusyboxArchive, makePauseArchive } from '../../src/runtime/images/local-images.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A tar archive with the folders package and images. */
    packageArchive: string;
  }
}

export default async function setup({ provide }: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-machines-'));
  const images = join(folder, 'images');
  mkdirSync(images);
  await makeBusyboxArchive(join(images, 'busybox.tar'), { reference: 'docker.io/library/busybox:1.28' });
  await makePauseArchive(join(images, 'pause.tar'), { reference: 'localhost/pause:1' });
  await runCommandOk('bash', [join(import.meta.dirname, 'build-package.sh'), folder]);
  provide('packageArchive', join(folder, 'package.tar'));
  return () => rmSync(folder, { recursive: true, force: true });
}
