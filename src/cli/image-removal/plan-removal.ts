/**
 * Decides what `lifepod image rm` removes, and refuses to remove what is in use. The functions are pure.
 *
 * Invariant: a reference by tag removes only this tag and, with the last tag of a repository, the digests of the repository. The image
 * itself is removed with its last name, or by its ID or digest.
 * Source: docker rmi (behavior).
 */
import type { Pod } from '../../api/generated/types.ts';
import { isMeant, usesOf } from '../../node/images/images-in-use.ts';
import { UserError } from '../../platform/files.ts';
import { repositoryOf, storedName } from '../../runtime/images/references.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';
import type { Hints } from '../hints.ts';
import { findImage, namesOf } from './find-image.ts';

export interface Removal {
  image: ImageInfo;
  /** The tags and digests to remove, or the ID of an image that has none. */
  names: string[];
  /** The tags and digests that remain. If there are none, the image itself is removed. */
  kept: string[];
}

export interface ImageUse {
  pods: readonly Pod[];
  /** The images of containers of other programs. */
  foreign: readonly string[];
  sandboxImages: readonly string[];
}

/** Returns one removal for each image. Throws a UserError if a reference does not match exactly one image. */
export function planRemovals(images: readonly ImageInfo[], references: readonly string[], hints: Hints): Removal[] {
  const chosen = new Map<ImageInfo, string[]>();
  for (const reference of references) {
    const image = findImage(images, reference, hints);
    chosen.set(image, [...(chosen.get(image) ?? []), reference]);
  }
  return [...chosen].map(([image, own]) => {
    const names = own.map(storedName);
    return names.every((name) => image.tags.includes(name)) ? withoutTags(image, names) : whole(image);
  });
}

const whole = (image: ImageInfo): Removal => ({ image, names: namesOf(image), kept: [] });

function withoutTags(image: ImageInfo, tags: readonly string[]): Removal {
  const keptTags = image.tags.filter((tag) => !tags.includes(tag));
  const lost = new Set(tags.map(repositoryOf));
  for (const tag of keptTags) lost.delete(repositoryOf(tag));
  const digests = image.digests.filter((digest) => lost.has(repositoryOf(digest)));
  const kept = [...keptTags, ...image.digests.filter((digest) => !digests.includes(digest))];
  return kept.length === 0 ? whole(image) : { image, names: [...new Set([...tags, ...digests])], kept };
}

/**
 * Throws a UserError if the image to remove is in use, is the sandbox image or is pinned. If the image keeps a name, throws only if a
 * removed name is in use or is that of the sandbox image.
 */
export function refuseUsed({ image, names, kept }: Removal, { pods, foreign, sandboxImages }: ImageUse): void {
  const isRemoved = (reference: string): boolean =>
    kept.length === 0 ? isMeant(image, reference) : names.includes(storedName(reference));
  const meant = (used: readonly string[]): string =>
    names.find((each) => used.some((reference) => storedName(reference) === each)) ?? names[0] ?? '';
  if (sandboxImages.some(isRemoved))
    throw new UserError(`the image ${meant(sandboxImages)} cannot be removed: the sandbox of every Pod uses it`);
  if (image.pinned && kept.length === 0)
    throw new UserError(`the image ${meant([])} is pinned by the container runtime`);
  if (foreign.some(isRemoved))
    throw new UserError(`the image ${meant(foreign)} is used by containers of other programs: remove them first`);
  const users = pods.filter((pod) => usesOf(pod, image).some(isRemoved));
  if (users.length === 0) return;
  const named = users.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).join(', ');
  throw new UserError(
    `the image ${meant(users.flatMap((pod) => usesOf(pod, image)))} is used by ${users.length === 1 ? 'the Pod' : 'the Pods'} ${named}: delete ${users.length === 1 ? 'it' : 'them'} first`,
  );
}

export const removalLines = ({ names, kept }: Removal): string[] =>
  names.map((name) => (kept.length === 0 ? `removed ${name}` : `removed ${name}; the image keeps ${kept.join(', ')}`));
