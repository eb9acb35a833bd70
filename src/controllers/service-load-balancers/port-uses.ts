/**
 * Finds node ports and host ports that conflict with load balancers or with each other. The nodes look up load balancers first, then node
 * ports, then host ports, so the later ones get no connections. The functions are pure.
 */
import { hostPortsOf } from '../../api/core/v1/pod/host-ports.ts';
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Node, Pod, Service } from '../../api/generated/types.ts';
import { type Assignment, nameOf, nodeAddresses, portsOf } from './assign.ts';

export interface PortUse {
  /** The protocol and the port number, such as `TCP/80`. */
  port: string;
  kind: 'node port' | 'host port';
  object: Service | Pod;
  /** Whether the port is open at the addresses of the nodes. A host port may be open at another address only. */
  isAtNodes: boolean;
}

export interface HiddenUse {
  use: PortUse;
  /** The message of an Event about the object: what is wrong, and what to do. */
  message: string;
}

export const WITH_HOST_PORTS = 'host-ports';

export const hasHostPorts = (pod: Pod): boolean =>
  (pod.spec?.nodeName ?? '') !== '' && !hasEnded(pod) && hostPortsOf(pod).length > 0;

/** An index key for Pods that have host ports on a node. */
export const byHostPorts = (pod: Pod): readonly string[] => (hasHostPorts(pod) ? [WITH_HOST_PORTS] : []);

/** Returns the node ports of the Services and the host ports of the Pods. `pods` must have host ports on a node. */
export function portUses(services: readonly Service[], pods: readonly Pod[], nodes: readonly Node[]): PortUse[] {
  const addresses = nodeAddresses(nodes);
  const atNodes = new Set(['', '0.0.0.0', '::', ...addresses.IPv4, ...addresses.IPv6]);
  const nodePorts = services.flatMap((object) =>
    (object.spec?.ports ?? []).flatMap(({ protocol = 'TCP', nodePort = 0 }): PortUse[] =>
      nodePort === 0 ? [] : [{ port: `${protocol}/${nodePort}`, kind: 'node port', object, isAtNodes: true }],
    ),
  );
  const hostPorts = pods.flatMap((object) =>
    hostPortsOf(object).map(({ protocol = 'TCP', hostPort, hostIP = '' }): PortUse => {
      return { port: `${protocol}/${hostPort}`, kind: 'host port', object, isAtNodes: atNodes.has(hostIP) };
    }),
  );
  return [...nodePorts, ...hostPorts];
}

/** Returns, for example, `the host port of the Pod a/web`. */
const textOf = ({ kind, object }: PortUse): string =>
  `the ${kind} of the ${kind === 'host port' ? 'Pod' : 'Service'} ${nameOf(object)}`;

/** Whether both lead to the same Pods: the Service has the node port, or selects the Pod. */
function sharesPods(service: Service, { kind, object }: PortUse): boolean {
  if (object.metadata.namespace !== service.metadata.namespace) return false;
  if (kind === 'node port') return object.metadata.name === service.metadata.name;
  const selector = Object.entries(service.spec?.selector ?? {});
  return selector.length > 0 && selector.every(([key, value]) => object.metadata.labels?.[key] === value);
}

/**
 * Returns a function that describes another use of the port at the addresses of the nodes, such as `the host port of the Pod a/web`. Its
 * result is undefined if nothing else uses the port, apart from the Service itself and its Pods.
 */
export function otherUseIn(uses: readonly PortUse[]): (service: Service, port: string) => string | undefined {
  const byPort = Map.groupBy(
    uses.filter(({ isAtNodes }) => isAtNodes),
    ({ port }) => port,
  );
  return (service, port) => {
    const other = byPort.get(port)?.find((use) => !sharesPods(service, use));
    return other && textOf(other);
  };
}

/** Returns the uses that get no connections, or none to the addresses of the nodes, because of a load balancer or a node port. */
export function hiddenUses(uses: readonly PortUse[], assignments: readonly Assignment[]): HiddenUse[] {
  const balanced = new Map<string, Service>();
  for (const { service, ingress } of assignments)
    for (const port of ingress.length === 0 ? [] : portsOf(service)) balanced.set(port, service);
  const nodePorts = new Map(uses.filter(({ kind }) => kind === 'node port').map((use) => [use.port, use]));
  return uses.flatMap((use) => {
    const balancer = use.isAtNodes ? balanced.get(use.port) : undefined;
    const nodePort = use.kind === 'host port' ? nodePorts.get(use.port) : undefined;
    const winner =
      balancer !== undefined && !sharesPods(balancer, use)
        ? `the load balancer of the Service ${nameOf(balancer)}`
        : nodePort !== undefined && !sharesPods(nodePort.object as Service, use)
          ? textOf(nodePort)
          : undefined;
    if (winner === undefined) return [];
    const message = `connections to the ${use.kind} ${use.port} reach ${winner}: use another port for one of them`;
    return [{ use, message }];
  });
}
