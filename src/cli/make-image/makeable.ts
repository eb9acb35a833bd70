/** Decides which images `lifepod image make` can make. Pure. */
import { normalizeReference, referenceError, repositoryOf } from '../../runtime/images/references.ts';

const BUSYBOX = 'docker.io/library/busybox';

/**
 * Returns why the image cannot be made; undefined if it can. The content of an image with a digest, or from another registry, is defined by
 * the digest or by that registry.
 */
export function whyNotMakeable(reference: string): string | undefined {
  const cannot = `the image ${reference === '' ? `''` : reference} cannot be made from this machine`;
  if (referenceError(reference) !== undefined) return `${cannot}, its name is not valid`;
  const repository = repositoryOf(reference);
  if (normalizeReference(reference).includes('@')) return `${cannot}, because its name has a digest`;
  if (repository === BUSYBOX) return undefined;
  return repository.endsWith('/busybox')
    ? `${cannot}, because its name has a registry or a path: only plain busybox can, with any tag`
    : `${cannot}, only busybox can, with any tag`;
}

export const isMakeable = (reference: string): boolean => whyNotMakeable(reference) === undefined;
