/**
 * Computes the Endpoints of a Service.
 * Source: pkg/controller/endpoint of v1.33 (behavior). Upstream remembers trigger times; this file compares addresses instead.
 */
import { isDeepStrictEqual } from 'node:util';
import { ENDPOINTS_CONTROLLER, ENDPOINTS_MANAGED_BY } from '../../api/core/v1/endpoints/labels.ts';
import { repackSubsets } from '../../api/core/v1/endpoints/repack-subsets.ts';
import type {
  CoreV1EndpointPort,
  EndpointAddress,
  EndpointSubset,
  Endpoints,
  Pod,
  Service,
} from '../../api/generated/types.ts';
import type { IpFamily } from '../../machinery/ip.ts';
import { isPodReady } from '../ownership/pod-state.ts';
import { copied } from '../service-pods/copied-metadata.ts';
import {
  addressesOf,
  earliest,
  HEADLESS_LABEL,
  hostnameOf,
  isEndpoint,
  isHeadless,
  podReference,
  readinessChangedAt,
  TRIGGER_TIME,
  targetPortOf,
} from '../service-pods/pod-endpoint.ts';

/** The maximum number of addresses in Endpoints. */
const CAPACITY = 1000;
export const OVER_CAPACITY = 'endpoints.kubernetes.io/over-capacity';

interface Member {
  pod: Pod;
  address: EndpointAddress;
  isReady: boolean;
}

/** Returns the first family of the Service; without families, the family of its cluster IP or, if it is headless, of the Pod's address. */
function familyOf({ spec }: Service, pod: Pod): IpFamily {
  const [first] = spec?.ipFamilies ?? [];
  if (first !== undefined) return first === 'IPv6' ? 'IPv6' : 'IPv4';
  const { clusterIP } = spec ?? {};
  const example = clusterIP && clusterIP !== 'None' ? clusterIP : pod.status?.podIP;
  return example?.includes(':') ? 'IPv6' : 'IPv4';
}

function membersOf(service: Service, pods: readonly Pod[]): Member[] {
  const publishAll = service.spec?.publishNotReadyAddresses === true;
  return pods.flatMap((pod) => {
    if (!isEndpoint(pod, publishAll)) return [];
    const [ip] = addressesOf(pod, familyOf(service, pod));
    if (ip === undefined) return [];
    const hostname = hostnameOf(pod, service);
    const nodeName = pod.spec?.nodeName;
    const address: EndpointAddress = {
      ip,
      ...(hostname === undefined ? {} : { hostname }),
      ...(nodeName ? { nodeName } : {}),
      targetRef: podReference(pod),
    };
    return [{ pod, address, isReady: publishAll || isPodReady(pod) }];
  });
}

/**
 * Returns the ports of the Service for the Pod. Omits a port if the Pod does not declare the named target port. Returns [undefined] for a
 * headless Service without ports: its Pods are in a subset without ports.
 */
function portsFor(pod: Pod, service: Service): (CoreV1EndpointPort | undefined)[] {
  const ports = service.spec?.ports ?? [];
  if (ports.length === 0) return isHeadless(service) ? [undefined] : [];
  return ports.flatMap((servicePort) => {
    const port = targetPortOf(pod, servicePort);
    if (port === undefined) return [];
    const { name, protocol = 'TCP', appProtocol } = servicePort;
    return [{ ...(name ? { name } : {}), port, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) }];
  });
}

/** Each Pod gets a subset with all its ports. repackSubsets() merges subsets with the same ports. */
const subsetsOf = (service: Service, members: readonly Member[]): EndpointSubset[] =>
  repackSubsets(
    members.flatMap(({ pod, address, isReady }) => {
      const ports = portsFor(pod, service);
      if (ports.length === 0) return [];
      const list = { [isReady ? 'addresses' : 'notReadyAddresses']: [address] };
      return [{ ...list, ports: ports.filter((port) => port !== undefined) }];
    }),
  );

const countOf = (subsets: readonly EndpointSubset[], list: 'addresses' | 'notReadyAddresses'): number =>
  subsets.reduce((sum, subset) => sum + (subset[list]?.length ?? 0), 0);

/** Reduces each subset to its share of the capacity. Ready addresses take precedence over addresses that are not ready. */
function truncated(subsets: readonly EndpointSubset[]): EndpointSubset[] {
  const ready = countOf(subsets, 'addresses');
  const list = ready > CAPACITY ? 'addresses' : 'notReadyAddresses';
  const [room, total] =
    list === 'addresses' ? [CAPACITY, ready] : [CAPACITY - ready, countOf(subsets, 'notReadyAddresses')];
  let left = room;
  return subsets.map((subset) => {
    const all = subset[list] ?? [];
    const kept = all.slice(0, Math.min(left, Math.ceil((all.length / total) * room)));
    left -= kept.length;
    const { addresses, notReadyAddresses: _, ports } = subset;
    return {
      ...(list === 'addresses' || addresses === undefined ? {} : { addresses }),
      ...(kept.length === 0 ? {} : { [list]: kept }),
      ...(ports === undefined ? {} : { ports }),
    };
  });
}

function readiness({ subsets = [] }: Endpoints): Map<string, boolean> {
  const found = new Map<string, boolean>();
  for (const { addresses = [], notReadyAddresses = [] } of subsets) {
    for (const address of addresses) found.set(keyOf(address), true);
    for (const address of notReadyAddresses) found.set(keyOf(address), false);
  }
  return found;
}

const keyOf = ({ ip, targetRef }: EndpointAddress): string => `${ip} ${targetRef?.uid}`;

function triggerTime(service: Service, members: readonly Member[], current: Endpoints | undefined): string | undefined {
  if (current === undefined) return service.metadata.creationTimestamp;
  const known = readiness(current);
  const changed = members.filter(({ address, isReady }) => known.get(keyOf(address)) !== isReady);
  return earliest(changed.map(({ pod }) => readinessChangedAt(pod)));
}

/** Returns the subsets without the resourceVersions of Pods, for a comparison. */
const compared = (subsets: readonly EndpointSubset[] = []) =>
  subsets.map(({ addresses = [], notReadyAddresses = [], ports = [] }) => {
    const plain = ({ targetRef, ...address }: EndpointAddress) => ({
      ...address,
      targetRef: { ...targetRef, resourceVersion: '' },
    });
    return { addresses: addresses.map(plain), notReadyAddresses: notReadyAddresses.map(plain), ports };
  });

/** Returns the Endpoints to write, without a resourceVersion if they must be created; undefined if nothing changes. */
export function reconcile(
  service: Service,
  pods: readonly Pod[],
  current: Endpoints | undefined,
): Endpoints | undefined {
  const { name, namespace } = service.metadata;
  const labels: Record<string, string> = {
    ...copied(service.metadata.labels),
    [ENDPOINTS_MANAGED_BY]: ENDPOINTS_CONTROLLER,
  };
  if (isHeadless(service)) labels[HEADLESS_LABEL] = '';
  else delete labels[HEADLESS_LABEL];
  const members = membersOf(service, pods);
  const all = subsetsOf(service, members);
  const isOver = countOf(all, 'addresses') + countOf(all, 'notReadyAddresses') > CAPACITY;
  const subsets = isOver
    ? truncated(all).filter(({ addresses, notReadyAddresses }) => addresses ?? notReadyAddresses)
    : all;
  const { [TRIGGER_TIME]: _, [OVER_CAPACITY]: before, ...annotations } = current?.metadata.annotations ?? {};
  if (
    current !== undefined &&
    isDeepStrictEqual(compared(current.subsets), compared(subsets)) &&
    isDeepStrictEqual(current.metadata.labels, labels) &&
    before === (isOver ? 'truncated' : undefined)
  ) {
    return undefined;
  }
  const time = triggerTime(service, members, current);
  if (time !== undefined) annotations[TRIGGER_TIME] = time;
  if (isOver) annotations[OVER_CAPACITY] = 'truncated';
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { ...current?.metadata, name, namespace, labels, annotations },
    ...(subsets.length === 0 ? {} : { subsets }),
  };
}
