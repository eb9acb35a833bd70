/**
 * Compares the host ports of Pods. Two Pods clash if they use the same host port and protocol, and their addresses are equal or one of them
 * is 0.0.0.0, which means every address.
 * Source: the scheduler plugin NodePorts of v1.33 (behavior).
 */
import { hostPortsOf } from '../api/core/v1/pod/host-ports.ts';
import { hasEnded } from '../api/core/v1/pod/status/final-phase.ts';
import type { ContainerPort, Pod } from '../api/generated/types.ts';
import type { PodsOnNode } from './node-pods.ts';

const EVERY_ADDRESS = '0.0.0.0';
const addressOf = ({ hostIP }: ContainerPort): string => hostIP || EVERY_ADDRESS;
/** A key without an address means the port at any address. */
const portAt = ({ protocol, hostPort }: ContainerPort, address?: string): string =>
  [protocol || 'TCP', hostPort, ...(address === undefined ? [] : [address])].join('/');

/** Returns two keys for each host port: with and without its address. */
export const portKeysOf = (pod: Pod): Set<string> =>
  new Set(hostPortsOf(pod).flatMap((port) => [portAt(port, addressOf(port)), portAt(port)]));

const isTakenOn = (port: ContainerPort, onNode: Pick<PodsOnNode, 'usesPort'>): boolean =>
  addressOf(port) === EVERY_ADDRESS
    ? onNode.usesPort(portAt(port))
    : onNode.usesPort(portAt(port, addressOf(port))) || onNode.usesPort(portAt(port, EVERY_ADDRESS));

export const hostPortsTakenOn = (pod: Pod, onNode: Pick<PodsOnNode, 'usesPort'>): boolean =>
  hostPortsOf(pod).some((port) => isTakenOn(port, onNode));

/** Returns the host ports of `pod`, such as TCP/8080, that `other` uses, without duplicates. */
export function hostPortsTakenBy(pod: Pod, other: Pod): string[] {
  const used = portKeysOf(other);
  const taken = hostPortsOf(pod).filter((port) => isTakenOn(port, { usesPort: (key) => used.has(key) }));
  return [...new Set(taken.map((port) => portAt(port)))];
}

/** Whether another Pod uses a host port of the Pod. Terminated Pods use no ports. */
export const hostPortsTaken = (pod: Pod, others: readonly Pod[]): boolean =>
  others.filter((other) => !hasEnded(other)).some(hostPortClash(pod));

/** Returns a function that checks whether the ports of one other Pod clash with the ports of `pod`. The ports of `pod` are indexed once. */
export function hostPortClash(pod: Pod): (other: Pod) => boolean {
  const wanted = portKeysOf(pod);
  if (wanted.size === 0) return () => false;
  return (other) => hostPortsTakenOn(other, { usesPort: (key) => wanted.has(key) });
}
