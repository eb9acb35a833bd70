/** Source: pkg/registry/core/service/storage and portallocator of v1.33 (behavior and wording). */
import { needsHealthCheck } from '../../../api/core/v1/service/strategy.ts';
import type { ServicePort, ServiceSpec } from '../../../api/generated/types.ts';
import { type FieldError, invalid } from '../../../machinery/field-error.ts';
import { internalError } from '../../../machinery/status.ts';
import { searchUpperFirst } from './upper-first.ts';
import { nodePortsOf } from './uses.ts';

export const FIRST_NODE_PORT = 30_000;
export const LAST_NODE_PORT = 32_767;
/** The lower part is for ports that users choose. */
const NODE_PORTS = { first: BigInt(FIRST_NODE_PORT), last: BigInt(LAST_NODE_PORT), lowerSize: 86n };

export interface PortChoice {
  isTaken(port: number): boolean;
  /** Whether a Pod has the port as a host port, which a node port would hide. Such a port is chosen only if no other is free. */
  isHostPort(port: number): boolean;
  random(below: bigint): bigint;
  fail(errors: FieldError[]): Error;
  reserve(port: number): void;
}

const allocatesPorts = ({ type, allocateLoadBalancerNodePorts = true }: ServiceSpec): boolean =>
  type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts);

interface Ports extends PortChoice {
  own: Set<number>;
  allocates: boolean;
  /** Whether ports with the same number, such as those of TCP and UDP, get the same node port, as in a new Service. */
  shares: boolean;
}

/**
 * Sets the missing node ports and the missing port for health checks. `old`: the spec before an update. Throws 422 Invalid if a requested
 * node port is in use or out of range. Throws 500 InternalError if no port is free, or if the requested port for health checks is in use or
 * out of range.
 */
export function assignNodePorts(spec: ServiceSpec, old: ServiceSpec | undefined, choice: PortChoice): void {
  const own = new Set(old === undefined ? [] : nodePortsOf(old));
  const ports: Ports = { ...choice, own, allocates: allocatesPorts(spec), shares: old === undefined };
  if (spec.type === 'NodePort' || spec.type === 'LoadBalancer') {
    const list = spec.ports ?? [];
    if (ports.shares && ports.allocates) shareRequested(list);
    for (const [index, port] of list.entries()) assignPort(port, index, list, ports);
  }
  if (needsHealthCheck(spec) && !(old !== undefined && needsHealthCheck(old))) assignHealthCheckPort(spec, ports);
}

function shareRequested(list: readonly ServicePort[]): void {
  const requested = new Map<number, number>();
  for (const { port, nodePort } of list) if (nodePort && !requested.has(port)) requested.set(port, nodePort);
  for (const port of list) {
    const nodePort = port.nodePort || requested.get(port.port);
    if (nodePort) port.nodePort = nodePort;
  }
}

function assignPort(port: ServicePort, index: number, list: readonly ServicePort[], ports: Ports): void {
  const { own, isTaken, fail, reserve } = ports;
  if (!port.nodePort) {
    if (!ports.allocates) return;
    const shared = ports.shares ? list.slice(0, index).find((other) => other.port === port.port)?.nodePort : undefined;
    port.nodePort = shared || freePort(ports);
    own.add(port.nodePort);
    return;
  }
  if (own.has(port.nodePort)) return;
  const cause = refusal(port.nodePort, isTaken);
  if (cause !== undefined) throw fail([invalid(`spec.ports[${index}].nodePort`, port.nodePort, cause)]);
  own.add(port.nodePort);
  reserve(port.nodePort);
}

function assignHealthCheckPort(spec: ServiceSpec, ports: Ports): void {
  const requested = spec.healthCheckNodePort;
  if (!requested) {
    spec.healthCheckNodePort = freePort(ports);
    return;
  }
  const cause = ports.own.has(requested) ? TAKEN : refusal(requested, ports.isTaken);
  if (cause !== undefined)
    throw internalError(`failed to allocate requested HealthCheck NodePort ${requested}: ${cause}`);
  ports.reserve(requested);
}

const TAKEN = 'provided port is already allocated';

function refusal(port: number, isTaken: (port: number) => boolean): string | undefined {
  if (port < FIRST_NODE_PORT || port > LAST_NODE_PORT) {
    return `provided port is not in the valid range. The range of valid ports is ${FIRST_NODE_PORT}-${LAST_NODE_PORT}`;
  }
  return isTaken(port) ? TAKEN : undefined;
}

/** Unlike upstream, prefers ports that are not host ports of Pods. Throws 500 InternalError if no port is free. */
function freePort({ own, isTaken, isHostPort, random, reserve }: Ports): number {
  const find = (mayHave: (port: number) => boolean): bigint | undefined =>
    searchUpperFirst(NODE_PORTS, random, (value) => {
      const port = Number(value);
      return !isTaken(port) && !own.has(port) && mayHave(port);
    });
  const free = find((port) => !isHostPort(port)) ?? find(() => true);
  if (free === undefined) throw internalError('failed to allocate a nodePort: range is full');
  reserve(Number(free));
  return Number(free);
}
