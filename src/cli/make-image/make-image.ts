/** `lifepod image make`: makes images from programs of this machine and loads them, for a machine that reaches no registry. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UserError } from '../../platform/files.ts';
import { makeBusyboxArchive } from '../../runtime/images/local-images.ts';
import { normalizeReference } from '../../runtime/images/references.ts';
import { loadImages } from '../image.ts';
import { isMakeable } from './makeable.ts';

/** Makes and loads the images. If one of the names is not one of busybox, makes none and rejects with a UserError. */
export async function makeImages(dataDir: string, references: readonly string[]): Promise<void> {
  const other = references.find((reference) => !isMakeable(reference));
  if (other !== undefined) {
    throw new UserError(
      `the image ${other} cannot be made from this machine, only busybox can, with any tag: load an archive with 'lifepod image load FILE'`,
    );
  }
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-image-'));
  try {
    for (const [index, reference] of references.entries()) {
      const archive = join(folder, `${index}.tar`);
      await makeBusyboxArchive(archive, { reference: normalizeReference(reference) });
      await loadImages(dataDir, [archive], () => undefined);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
