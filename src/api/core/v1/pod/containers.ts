/** The containers of all lists of a Pod, the paths that messages use for them, and checks for sidecars and for early defer containers. */
import type { Container, DeferContainer, EphemeralContainer, PodSpec } from '../../../generated/types.ts';

export type AnyContainer = Container | DeferContainer | EphemeralContainer;

/** Whether the init container is a native sidecar, which keeps running while the app containers run. Source: KEP-753. */
export const isSidecar = (container: { restartPolicy?: string }): boolean => container.restartPolicy === 'Always';

/** Whether the defer container runs before the app containers are stopped. True for all triggers except PostExit. */
export const runsBeforeExit = (entry: { trigger?: string }): boolean => entry.trigger !== 'PostExit';

export interface ContainerAtPath {
  container: AnyContainer;
  /** The path of the container, such as `spec.initContainers[0]`. */
  path: string;
}

/** All containers with their paths: init, app, defer and ephemeral containers. The order is upstream's, with defer containers added. */
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

/** The spec of a Pod; for a Pod without a spec, a spec without containers. */
export const specOf = ({ spec }: { spec?: PodSpec }): PodSpec => spec ?? { containers: [] };

/** The containers of all lists of a Pod. */
export const containersOf = ({ spec }: { spec?: PodSpec }): AnyContainer[] =>
  spec === undefined ? [] : containersWithPath(spec).map(({ container }) => container);
