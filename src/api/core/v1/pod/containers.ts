/** The containers of a Pod of every kind, with the paths that messages name them by. */
import type { Container, DeferContainer, EphemeralContainer, PodSpec } from '../../../generated/types.ts';

export type AnyContainer = Container | DeferContainer | EphemeralContainer;

/** A native sidecar: an init container that runs beside the app containers. Source: KEP-753. */
export const isSidecar = (container: { restartPolicy?: string }): boolean => container.restartPolicy === 'Always';

/** A defer container that runs beside the app containers: not the default, which PostExit alone departs from. */
export const runsBeforeExit = (entry: { trigger?: string }): boolean => entry.trigger !== 'PostExit';

export interface ContainerAtPath {
  container: AnyContainer;
  /** spec.initContainers[0] */
  path: string;
}

/** Init containers, then app containers and ephemeral ones, as upstream visits them, with the defer containers between. */
export function containersWithPath(spec: PodSpec): ContainerAtPath[] {
  const at = (list: readonly AnyContainer[] | undefined, field: string): ContainerAtPath[] =>
    (list ?? []).map((container, index) => ({ container, path: `spec.${field}[${index}]` }));
  return [
    ...at(spec.initContainers, 'initContainers'),
    ...at(spec.containers, 'containers'),
    ...at(spec.deferContainers, 'deferContainers'),
    ...at(spec.ephemeralContainers, 'ephemeralContainers'),
  ];
}

/** Those of the node's Pod, of every kind. */
export const containersOf = ({ spec }: { spec?: PodSpec }): AnyContainer[] =>
  spec === undefined ? [] : containersWithPath(spec).map(({ container }) => container);
