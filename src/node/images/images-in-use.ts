/** Which images Pods use. Pure. */
import { containersOf } from '../../api/core/v1/pod/containers.ts';
import type { Pod } from '../../api/generated/types.ts';
import { storedName } from '../../runtime/images/references.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';

/**
 * References of the images that the Pod names: of its containers of every kind, also of those still to come, and of its volumes.
 * The image of an entry with imageFrom is that of another container, which stays with it.
 */
export function imagesOf(pod: Pod): string[] {
  const volumes = (pod.spec?.volumes ?? []).map(({ image }) => image?.reference);
  const named = [...containersOf(pod).map(({ image }) => image), ...volumes];
  return named.filter((reference): reference is string => reference !== undefined && reference !== '');
}

/** It runs, or may run again. */
export const isUnfinished = ({ status }: Pod): boolean => status?.phase !== 'Succeeded' && status?.phase !== 'Failed';

/** Whether the reference, as a spec names it or complete, or an ID, means this image. */
export function isMeant({ id, tags, digests }: ImageInfo, reference: string): boolean {
  const name = storedName(reference);
  return id === reference || tags.includes(name) || digests.includes(name);
}
