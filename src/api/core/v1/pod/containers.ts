/** The containers of a Pod of every kind, with the paths that messages name them by. */
import type { Container, EphemeralContainer, PodSpec } from '../../../generated/types.ts';

export type AnyContainer = Container | EphemeralContainer;

/** A native sidecar: an init container that runs beside the app containers. Source: KEP-753. */
export const isSidecar = (container: { restartPolicy?: string }): boolean => container.restartPolicy === 'Always';

export interface ContainerAtPath {
  container: AnyContainer;
  /** spec.initContainers[0] */
  path: string;
}

/** Init containers, then app containers, then ephemeral ones, as upstream visits them. */
export function containersWithPath(spec: PodSpec): ContainerAtPath[] {
  const at = (list: readonly AnyContainer[] | undefined, field: string): ContainerAtPath[] =>
    (list ?? []).map((container, index) => ({ container, path: `spec.${field}[${index}]` }));
  return [
    ...at(spec.initContainers, 'initContainers'),
    ...at(spec.containers, 'containers'),
    ...at(spec.ephemeralContainers, 'ephemeralContainers'),
  ];
}
