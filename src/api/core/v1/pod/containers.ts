import type {
  Container,
  ContainerPort,
  DeferContainer,
  EphemeralContainer,
  PodSpec,
} from '../../../generated/types.ts';

export type AnyContainer = Container | DeferContainer | EphemeralContainer;

/** A native sidecar is an init container that keeps running while the app containers run. Source: KEP-753. */
export const isSidecar = (container: { restartPolicy?: string }): boolean => container.restartPolicy === 'Always';

export const runsBeforeExit = (entry: { trigger?: string }): boolean => entry.trigger !== 'PostExit';

export interface ContainerAtPath {
  container: AnyContainer;
  /** Such as `spec.initContainers[0]`. */
  path: string;
}

/** The order is upstream's, with defer containers added. */
export function containersWithPath(spec: PodSpec): ContainerAtPath[] {
  const found: ContainerAtPath[] = [];
  for (const field of CONTAINER_LISTS) {
    spec[field]?.forEach((container, index) => {
      found.push({ container, path: `spec.${field}[${index}]` });
    });
  }
  return found;
}

const CONTAINER_LISTS = ['initContainers', 'containers', 'deferContainers', 'ephemeralContainers'] as const;

/** The spec of a Pod; for a Pod without a spec, a spec without containers. */
export const specOf = ({ spec }: { spec?: PodSpec }): PodSpec => spec ?? { containers: [] };

export const containersOf = ({ spec }: { spec?: PodSpec }): AnyContainer[] =>
  CONTAINER_LISTS.flatMap((field) => spec?.[field] ?? []);

/** The named ports of app containers and sidecars, to which Services and NetworkPolicies can refer. */
export const namedPorts = ({ spec }: { spec?: PodSpec }): ContainerPort[] =>
  [...(spec?.containers ?? []), ...(spec?.initContainers ?? []).filter(isSidecar)]
    .flatMap(({ ports = [] }) => ports)
    .filter(({ name }) => name !== undefined);
