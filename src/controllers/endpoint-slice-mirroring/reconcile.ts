/**
 * Decides which EndpointSlices mirror Endpoints: one slice for each combination of ports and address family.
 * Source: pkg/controller/endpointslicemirroring of v1.33 (behavior).
 */
import { isDeepStrictEqual } from 'node:util';
import {
  MANAGED_BY_LABEL,
  MIRRORING_CONTROLLER,
  SERVICE_NAME_LABEL,
  SKIP_MIRROR_LABEL,
} from '../../api/discovery.k8s.io/v1/endpoint-slice/labels.ts';
import type {
  CoreV1EndpointPort,
  DiscoveryV1EndpointPort,
  Endpoint,
  EndpointAddress,
  EndpointSlice,
  Endpoints,
  Service,
} from '../../api/generated/types.ts';
import { ENDPOINTS } from '../../api/resources.ts';
import { canonicalIp, type IpFamily, parseIp } from '../../machinery/ip.ts';
import { endpointIpErrors } from '../../machinery/ip-address.ts';
import { endpointKey, portsKey } from '../endpoint-slice/desired-endpoints.ts';
import { generateNameFor, recycle, type SliceChanges } from '../endpoint-slice/slice-changes.ts';
import { controllerReference } from '../ownership/owner.ts';
import { copied } from '../service-pods/copied-metadata.ts';
import { hasSelector } from '../service-pods/follow-services.ts';
import { TRIGGER_TIME } from '../service-pods/pod-endpoint.ts';

/** Upstream's default of --mirroring-max-endpoints-per-subset. */
export const MAX_PER_SUBSET = 1000;
/** The maximum number of slices of one Endpoints object. Upstream has no limit. */
export const MAX_SLICES = 100;
const LEADER_ANNOTATION = 'control-plane.alpha.kubernetes.io/leader';
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const OWNER = { apiVersion: 'v1', kind: 'Endpoints', resource: ENDPOINTS };

/** Endpoints are not mirrored if they opt out with SKIP_MIRROR_LABEL or are the lock of a leader election. */
export const isMirrored = (endpoints: Endpoints | undefined, service: Service | undefined): endpoints is Endpoints =>
  endpoints !== undefined &&
  service !== undefined &&
  !hasSelector(service) &&
  endpoints.metadata.labels?.[SKIP_MIRROR_LABEL] !== 'true' &&
  endpoints.metadata.annotations?.[LEADER_ANNOTATION] === undefined;

export interface MirrorDecision {
  changes: SliceChanges;
  /** The numbers of addresses in no slice: in excess of MAX_PER_SUBSET or MAX_SLICES, and invalid ones. */
  skipped: { beyondMax: number; invalid: number };
}

interface Group {
  type: IpFamily;
  ports: DiscoveryV1EndpointPort[];
  /** By endpointKey(). */
  endpoints: Map<string, Endpoint>;
}

const portOf = ({ name = '', port, protocol = 'TCP', appProtocol }: CoreV1EndpointPort): DiscoveryV1EndpointPort => ({
  name,
  port,
  protocol,
  ...(appProtocol === undefined ? {} : { appProtocol }),
});

const endpointOf = ({ ip, hostname, nodeName, targetRef }: EndpointAddress, ready: boolean): Endpoint => ({
  addresses: [canonicalIp(ip) ?? ip],
  conditions: { ready },
  ...(hostname ? { hostname } : {}),
  ...(nodeName === undefined ? {} : { nodeName }),
  ...(targetRef === undefined ? {} : { targetRef }),
});

/** Groups the addresses by family and ports, and counts the skipped ones. The first of duplicate endpoints in a group counts. */
function groupsOf({ subsets = [] }: Endpoints): { groups: Map<string, Group>; skipped: MirrorDecision['skipped'] } {
  const groups = new Map<string, Group>();
  const skipped = { beyondMax: 0, invalid: 0 };
  for (const { addresses = [], notReadyAddresses = [], ports: subsetPorts = [] } of subsets) {
    const ports = subsetPorts.map(portOf);
    let added = 0;
    const all = [
      ...addresses.map((one) => [one, true] as const),
      ...notReadyAddresses.map((one) => [one, false] as const),
    ];
    for (const [address, isReady] of all) {
      if (endpointIpErrors(address.ip).length > 0) {
        skipped.invalid += 1;
        continue;
      }
      const type = parseIp(address.ip)?.family ?? 'IPv4';
      const key = `${type} ${portsKey(ports)}`;
      const group = groups.get(key) ?? { type, ports, endpoints: new Map() };
      const isFull = !groups.has(key) && groups.size === MAX_SLICES;
      if (isFull || Math.max(added, group.endpoints.size) >= MAX_PER_SUBSET) {
        skipped.beyondMax += 1;
        continue;
      }
      added += 1;
      groups.set(key, group);
      const endpoint = endpointOf(address, isReady);
      if (!group.endpoints.has(endpointKey(endpoint))) group.endpoints.set(endpointKey(endpoint), endpoint);
    }
  }
  return { groups, skipped };
}

function mirroredMetadata({ metadata }: Endpoints) {
  const { [TRIGGER_TIME]: _time, [LAST_APPLIED]: _applied, ...annotations } = metadata.annotations ?? {};
  const own = { [SERVICE_NAME_LABEL]: metadata.name, [MANAGED_BY_LABEL]: MIRRORING_CONTROLLER };
  return { labels: { ...copied(metadata.labels), ...own }, annotations: copied(annotations) };
}

function shows(slice: EndpointSlice, { endpoints }: Group, wanted: ReturnType<typeof mirroredMetadata>): boolean {
  const { labels, annotations = {} } = slice.metadata;
  return (
    isDeepStrictEqual({ labels, annotations }, wanted) &&
    slice.endpoints.length === endpoints.size &&
    slice.endpoints.every((endpoint) => isDeepStrictEqual(endpoint, endpoints.get(endpointKey(endpoint))))
  );
}

/** `slices`: the slices of the Service that the controller manages and that are not being deleted. */
export function reconcile(endpoints: Endpoints, slices: readonly EndpointSlice[]): MirrorDecision {
  const { groups, skipped } = groupsOf(endpoints);
  const changes: SliceChanges = { create: [], update: [], remove: [] };
  const existing = Map.groupBy(slices, ({ addressType, ports }) => `${addressType} ${portsKey(ports)}`);
  const wanted = mirroredMetadata(endpoints);
  for (const [key, group] of groups) {
    const [first, ...others] = existing.get(key) ?? [];
    const content = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      addressType: group.type,
      endpoints: [...group.endpoints.values()],
      ports: group.ports,
    };
    const { name, namespace } = endpoints.metadata;
    const ownerReferences = [controllerReference(endpoints, OWNER)];
    if (first === undefined) {
      const metadata = { name: '', generateName: generateNameFor(name), namespace, ...wanted, ownerReferences };
      changes.create.push({ ...content, metadata });
    } else if (!shows(first, group, wanted)) {
      changes.update.push({ ...content, metadata: { ...first.metadata, ...wanted, ownerReferences } });
    }
    changes.remove.push(...others);
  }
  for (const [key, list] of existing) if (!groups.has(key)) changes.remove.push(...list);
  const all = recycle(changes, endpoints);
  // The garbage collector deletes the slices of Endpoints that are being deleted.
  return { changes: endpoints.metadata.deletionTimestamp === undefined ? all : { ...all, create: [] }, skipped };
}
