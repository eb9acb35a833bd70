/** Which images Pods use. Pure. */

import { containersOf } from '../../api/core/v1/pod/containers.ts';
import { isFinalPhase } from '../../api/core/v1/pod/status/phase.ts';
import type { Pod } from '../../api/generated/types.ts';
import { storedName } from '../../runtime/images/references.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';

/**
 * References of the images that the Pod names: of its containers of every kind, also those not yet started, and of its volumes. An
 * entry with imageFrom uses the image of another container of the Pod, which is in the list anyway.
 */
export function imagesOf(pod: Pod): string[] {
  const volumes = (pod.spec?.volumes ?? []).map(({ image }) => image?.reference);
  const named = [...containersOf(pod).map(({ image }) => image), ...volumes];
  return named.filter((reference): reference is string => reference !== undefined && reference !== '');
}

/** Whether the Pod runs or may still run. */
export const isUnfinished = ({ status }: Pod): boolean => !isFinalPhase(status?.phase);

/** Whether the reference (short as in a spec, or complete) or ID refers to this image. */
export function isMeant({ id, tags, digests }: ImageInfo, reference: string): boolean {
  const name = storedName(reference);
  return id === reference || tags.includes(name) || digests.includes(name);
}
