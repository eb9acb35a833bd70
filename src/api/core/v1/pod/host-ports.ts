/** The host ports of a Pod. Source: GetHostPorts of the scheduler of v1.33 (behavior). */
import type { ContainerPort, Pod } from '../../../generated/types.ts';

/**
 * The ports of sidecars, app containers and defer containers that have a host port. Like upstream, ignores other init containers. The
 * ports of defer containers are reserved from the start, because a terminating Pod cannot be moved to another node.
 */
export const hostPortsOf = (pod: Pod): ContainerPort[] =>
  [
    ...(pod.spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always'),
    ...(pod.spec?.containers ?? []),
    ...(pod.spec?.deferContainers ?? []),
  ]
    .flatMap((container) => container.ports ?? [])
    .filter(({ hostPort }) => (hostPort ?? 0) > 0);
