/** The containers of all lists of a Pod, with the paths that messages use. */
import type { Container, DeferContainer, EphemeralContainer, PodSpec } from '../../../generated/types.ts';

export type AnyContainer = Container | DeferContainer | EphemeralContainer;

/** A native sidecar: an init container that runs beside the app containers. Source: KEP-753. */
export const isSidecar = (container: { restartPolicy?: string }): boolean => container.restartPolicy === 'Always';

/** Whether the entry runs before the app containers exit, next to them. True for all triggers except PostExit. */
export const runsBeforeExit = (entry: { trigger?: string }): boolean => entry.trigger !== 'PostExit';

export interface ContainerAtPath {
  container: AnyContainer;
  /** spec.initContainers[0] */
  path: string;
}

/** Init, app, defer and ephemeral containers, in upstream's order with defer containers before the ephemeral ones. */
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

/** The spec of a Pod; a Pod without a spec has no containers. */
export const specOf = ({ spec }: { spec?: PodSpec }): PodSpec => spec ?? { containers: [] };

/** All containers of a Pod, of all lists. */
export const containersOf = ({ spec }: { spec?: PodSpec }): AnyContainer[] =>
  spec === undefined ? [] : containersWithPath(spec).map(({ container }) => container);
