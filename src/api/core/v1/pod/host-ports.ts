/** Source: GetHostPorts of the scheduler of v1.33 (behavior). */
import type { ContainerPort, Pod } from '../../../generated/types.ts';

/**
 * Like upstream, ignores init containers other than sidecars. The ports of defer containers are reserved from the start, because a
 * terminating Pod cannot be moved to another node.
 */
export function hostPortsOf({ spec }: Pod): ContainerPort[] {
  const ports: ContainerPort[] = [];
  const add = (container: { ports?: ContainerPort[] }): void => {
    for (const port of container.ports ?? []) if ((port.hostPort ?? 0) > 0) ports.push(port);
  };
  spec?.initContainers?.filter(({ restartPolicy }) => restartPolicy === 'Always').forEach(add);
  (spec?.containers ?? []).forEach(add);
  spec?.deferContainers?.forEach(add);
  return ports;
}
