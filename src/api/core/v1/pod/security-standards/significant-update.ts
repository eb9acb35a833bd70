/**
 * Decides which updates of a Pod are evaluated. Most fields that the Pod Security Standards examine cannot change, so an update is
 * evaluated only if it adds or removes a container, or changes an image or a seccomp annotation.
 * Source: k8s.io/pod-security-admission/admission of v1.33 (behavior).
 */
import type { Pod } from '../../../../generated/types.ts';
import { SECCOMP_POD, SECCOMP_PREFIX } from './baseline.ts';

const FIXED_LISTS = ['containers', 'initContainers', 'deferContainers'] as const;
const LISTS = [...FIXED_LISTS, 'ephemeralContainers'] as const;

export function isSignificantUpdate(pod: Pod, old: Pod): boolean {
  const isChanged = (annotation: string): boolean =>
    pod.metadata.annotations?.[annotation] !== old.metadata.annotations?.[annotation];
  if (isChanged(SECCOMP_POD)) return true;
  if (FIXED_LISTS.some((list) => pod.spec?.[list]?.length !== old.spec?.[list]?.length)) return true;
  return LISTS.some((list) => {
    const images = new Map((old.spec?.[list] ?? []).map(({ name, image }) => [name, image]));
    return (pod.spec?.[list] ?? []).some(
      ({ name, image }) => !images.has(name) || images.get(name) !== image || isChanged(SECCOMP_PREFIX + name),
    );
  });
}
