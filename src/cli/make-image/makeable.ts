/** Decides which images `lifepod image make` can make. Pure. */
import { normalizeReference, referenceError, repositoryOf } from '../../runtime/images/references.ts';

const BUSYBOX = 'docker.io/library/busybox';

/** Whether the image is busybox with a tag. The image with a certain digest cannot be made. */
export const isMakeable = (reference: string): boolean =>
  referenceError(reference) === undefined &&
  repositoryOf(reference) === BUSYBOX &&
  !normalizeReference(reference).includes('@');
