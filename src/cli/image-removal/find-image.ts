import { isMeant } from '../../node/images/images-in-use.ts';
import { UserError } from '../../platform/files.ts';
import { shellQuoted } from '../../platform/programs/typed-program.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';
import type { Hints } from '../hints.ts';

const SHORT_ID_LENGTH = 12;

const digitsOf = (id: string): string => id.replace(/^sha256:/, '');

export const shortId = ({ id }: ImageInfo): string => digitsOf(id).slice(0, SHORT_ID_LENGTH);

export const namesOf = ({ id, tags, digests }: ImageInfo): string[] =>
  tags.length > 0 ? tags : digests.length > 0 ? digests : [id];

/**
 * Finds an image by name, ID, or at least the first 4 digits of its ID, which may follow `sha256:`. Throws a UserError if no image or more
 * than one matches.
 */
export function findImage(images: readonly ImageInfo[], reference: string, hints: Hints): ImageInfo {
  const found = images.filter(
    (image) =>
      isMeant(image, reference) ||
      (/^(?:sha256:)?[0-9a-f]{4,64}$/.test(reference) && digitsOf(image.id).startsWith(digitsOf(reference))),
  );
  const [image, ...others] = found;
  if (image === undefined)
    throw new UserError(
      `there is no image ${shellQuoted(reference)}: '${hints.engine('image list')}' shows all images`,
    );
  if (others.length > 0)
    throw new UserError(
      `${reference} matches ${found.length} images (${found.map(shortId).join(', ')}): give more of the ID`,
    );
  return image;
}
