/** `lifepod image make`: makes images from programs of this machine and loads them, for a machine that reaches no registry. */
import { join } from 'node:path';
import { UserError } from '../../platform/files.ts';
import { makeBusyboxArchive } from '../../runtime/images/local-images.ts';
import { normalizeReference } from '../../runtime/images/references.ts';
import { hintsFor } from '../hints.ts';
import { loadImages } from '../image.ts';
import { whyNotMakeable } from './makeable.ts';
import { withTemporaryFolder } from './temporary-folder.ts';

/** Makes and loads the images. If one of the names is not one of busybox, makes none and rejects with a UserError. */
export async function makeImages(dataDir: string, references: readonly string[]): Promise<void> {
  const [problem] = references.flatMap((reference) => whyNotMakeable(reference) ?? []);
  if (problem !== undefined)
    throw new UserError(
      `${problem}: load an archive with '${hintsFor({ dataDir }, process.env).engine('image load FILE')}'`,
    );
  await withTemporaryFolder('lifepod-image-', async (folder) => {
    for (const [index, reference] of references.entries()) {
      const archive = join(folder, `${index}.tar`);
      await makeBusyboxArchive(archive, { reference: normalizeReference(reference) });
      await loadImages(dataDir, [archive], () => undefined);
    }
  });
}
