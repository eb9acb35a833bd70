/**
 * `lifepod image make`: makes images from programs of this machine and loads them, for a machine that reaches no registry.
 *
 * Invariant: a command that fails leaves no image. All names are in one archive, whose import succeeds or fails as a whole.
 */
import { join } from 'node:path';
import { UserError } from '../../platform/files.ts';
import { makeBusyboxArchive } from '../../runtime/images/local-images.ts';
import { normalizeReference, referenceError } from '../../runtime/images/references.ts';
import { hintsFor } from '../hints.ts';
import { loadImages } from '../image.ts';
import { whyNotMakeable } from './makeable.ts';
import { withTemporaryFolder } from './temporary-folder.ts';

/** If one of the images cannot be made, makes none and rejects with a UserError. */
export async function makeImages(dataDir: string, references: readonly string[], load = loadImages): Promise<void> {
  for (const reference of references) {
    const problem = whyNotMakeable(reference);
    if (problem === undefined) continue;
    const advice =
      referenceError(reference) === undefined
        ? `load an archive with '${hintsFor({ dataDir }, process.env).engine('image load FILE')}'`
        : 'give busybox, or busybox with a tag, such as busybox:1.28';
    throw new UserError(`${problem}: ${advice}`);
  }
  await withTemporaryFolder('lifepod-image-', async (folder) => {
    const archive = join(folder, 'image.tar');
    await makeBusyboxArchive(archive, { reference: [...new Set(references.map(normalizeReference))] });
    await load(dataDir, [archive], () => undefined).catch((error: unknown) => {
      // Users do not know the temporary file. Other errors, such as that of a user who is not root, remain as they are.
      if (!(error instanceof UserError && error.message.includes(archive))) throw error;
      throw new UserError(error.message.replaceAll(archive, `of ${references.join(', ')}`));
    });
  });
}
