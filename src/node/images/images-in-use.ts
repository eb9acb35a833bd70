import { containersOf } from '../../api/core/v1/pod/containers.ts';
import { isFinalPhase } from '../../api/core/v1/pod/status/final-phase.ts';
import { recordedStatuses } from '../../api/core/v1/pod/status/statuses.ts';
import type { Pod } from '../../api/generated/types.ts';
import { storedName } from '../../runtime/images/references.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';

/**
 * Includes the images of containers that have not started and of image volumes. A defer container with imageFrom adds nothing, because it
 * uses the image of another container of the Pod.
 */
export function imagesOf(pod: Pod): string[] {
  const volumes = (pod.spec?.volumes ?? []).map(({ image }) => image?.reference);
  const named = [...containersOf(pod).map(({ image }) => image), ...volumes];
  return named.filter((reference): reference is string => reference !== undefined && reference !== '');
}

export const isUnfinished = ({ status }: Pod): boolean => !isFinalPhase(status?.phase);

/** `reference`: an image ID, or an image name that is either complete or short, as in a spec. */
export function isMeant({ id, tags, digests }: ImageInfo, reference: string): boolean {
  const name = storedName(reference);
  return id === reference || tags.includes(name) || digests.includes(name);
}

/**
 * Returns the references with which the Pod uses the image: the names in its spec, or else the image's ID if a container runs from the
 * image under a name that now belongs to another image.
 */
export function usesOf(pod: Pod, image: ImageInfo): string[] {
  const named = imagesOf(pod).filter((reference) => isMeant(image, reference));
  if (named.length > 0) return named;
  return recordedStatuses(pod).some(({ imageID = '' }) => isMeant(image, imageID)) ? [image.id] : [];
}
