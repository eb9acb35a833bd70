/**
 * Decides how the EndpointSlices of a Service change.
 * Source: the package endpointslice of v1.33 (behavior). Upstream remembers trigger times; this file compares endpoints instead.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  MANAGED_BY_LABEL,
  SERVICE_NAME_LABEL,
  SLICE_CONTROLLER,
} from '../../api/discovery.k8s.io/v1/endpoint-slice/labels.ts';
import type { Endpoint, EndpointSlice, Node, Pod, Service } from '../../api/generated/types.ts';
import { SERVICES } from '../../api/resources.ts';
import type { IpFamily } from '../../machinery/ip.ts';
import { controllerReference } from '../ownership/owner.ts';
import { copied } from '../service-pods/copied-metadata.ts';
import {
  earliest,
  HEADLESS_LABEL,
  isHeadless,
  readinessChangedAt,
  TRIGGER_TIME,
} from '../service-pods/pod-endpoint.ts';
import { addressTypesOf, type DesiredGroup, desiredGroups, endpointKey, portsKey } from './desired-endpoints.ts';
import { pack } from './pack.ts';
import { generateNameFor, isOwnedBy, recycle, type SliceChanges } from './slice-changes.ts';

const SERVICE = { apiVersion: 'v1', kind: 'Service', resource: SERVICES };

export interface SliceInput {
  service: Service;
  pods: readonly Pod[];
  nodeNamed: (name: string) => Node | undefined;
  /** The slices of the Service that the controller manages and that are not being deleted. */
  slices: readonly EndpointSlice[];
}

function labelsOf(service: Service): Record<string, string> {
  const { name, labels } = service.metadata;
  const all: Record<string, string> = {
    ...copied(labels),
    [SERVICE_NAME_LABEL]: name,
    [MANAGED_BY_LABEL]: SLICE_CONTROLLER,
  };
  if (isHeadless(service)) all[HEADLESS_LABEL] = '';
  else delete all[HEADLESS_LABEL];
  return all;
}

function annotated(annotations: Record<string, string> | undefined, time: string | undefined): Record<string, string> {
  const { [TRIGGER_TIME]: _, ...others } = annotations ?? {};
  return time === undefined ? others : { ...others, [TRIGGER_TIME]: time };
}

export function reconcile(input: SliceInput): SliceChanges {
  const { service, slices } = input;
  const types = addressTypesOf(service);
  const changes = types.map((type) => reconcileType(input, type));
  const all: SliceChanges = {
    create: changes.flatMap(({ create }) => create),
    update: changes.flatMap(({ update }) => update),
    remove: changes.flatMap(({ remove }) => remove),
  };
  all.remove.push(...slices.filter(({ addressType }) => !types.includes(addressType as IpFamily)));
  // The garbage collector deletes the slices of a Service that is being deleted.
  return service.metadata.deletionTimestamp === undefined ? all : { ...all, create: [] };
}

function reconcileType({ service, pods, nodeNamed, slices }: SliceInput, type: IpFamily): SliceChanges {
  const existing = slices.filter(({ addressType }) => addressType === type);
  const owned = existing.filter((slice) => isOwnedBy(slice, service));
  const ownedByPorts = Map.groupBy(owned, ({ ports }) => portsKey(ports));
  const groups = desiredGroups(service, pods, nodeNamed, type);
  const changes: SliceChanges = { create: [], update: [], remove: existing.filter((slice) => !owned.includes(slice)) };
  const labels = labelsOf(service);
  const time = triggerTime(service, existing, groups);
  const newSlice = (ports: EndpointSlice['ports'], endpoints: Endpoint[]): EndpointSlice => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: '',
      generateName: generateNameFor(service.metadata.name),
      namespace: service.metadata.namespace,
      labels,
      annotations: annotated(undefined, time),
      ownerReferences: [controllerReference(service, SERVICE)],
    },
    addressType: type,
    endpoints,
    ports,
  });
  for (const [key, { ports, endpoints }] of groups) {
    const desired = new Map([...endpoints].map(([name, { endpoint }]) => [name, endpoint] as const));
    const sameports = ownedByPorts.get(key) ?? [];
    const { changed, created } = pack(sameports, desired);
    changes.create.push(...created.map((list) => newSlice(ports, list)));
    for (const slice of sameports) {
      const list = changed.get(slice);
      if (list?.length === 0) changes.remove.push(slice);
      else if (list !== undefined || !isDeepStrictEqual(slice.metadata.labels, labels))
        changes.update.push(withContent(slice, labels, list ?? slice.endpoints, time));
    }
  }
  for (const [key, list] of ownedByPorts) if (!groups.has(key)) changes.remove.push(...list);
  if (existing.length === changes.remove.length && changes.create.length === 0) {
    keepPlaceholder(changes, labels, newSlice([], []));
  }
  return recycle(changes, service);
}

const withContent = (
  slice: EndpointSlice,
  labels: Record<string, string>,
  endpoints: Endpoint[],
  time: string | undefined,
): EndpointSlice => {
  const { metadata } = slice;
  return { ...slice, metadata: { ...metadata, labels, annotations: annotated(metadata.annotations, time) }, endpoints };
};

/**
 * A Service has at least one slice of each family, so that clients can distinguish "no endpoints" from "not known yet". Keeps an equal
 * slice that would be removed, or else creates the placeholder.
 */
function keepPlaceholder(changes: SliceChanges, labels: Record<string, string>, placeholder: EndpointSlice): void {
  const found = changes.remove.findIndex(
    ({ metadata, endpoints, ports = [] }) =>
      endpoints.length + ports.length === 0 &&
      isDeepStrictEqual(metadata.labels, labels) &&
      metadata.ownerReferences?.some(({ uid }) => uid === placeholder.metadata.ownerReferences?.[0]?.uid),
  );
  if (found === -1) changes.create.push(placeholder);
  else changes.remove.splice(found, 1);
}

/**
 * Without existing slices, returns when the Service was created. Otherwise returns the earliest change of readiness of the Pods that are
 * new or whose readiness differs from their endpoints; undefined if there is no such Pod.
 */
function triggerTime(
  service: Service,
  existing: readonly EndpointSlice[],
  groups: ReadonlyMap<string, DesiredGroup>,
): string | undefined {
  if (existing.length === 0) return service.metadata.creationTimestamp;
  const known = new Map(existing.flatMap(({ endpoints }) => endpoints.map((old) => [endpointKey(old), old] as const)));
  const times: (string | undefined)[] = [];
  for (const { endpoints } of groups.values()) {
    for (const [key, { endpoint, pod }] of endpoints) {
      const before = known.get(key)?.conditions?.serving;
      if (before !== endpoint.conditions?.serving) times.push(readinessChangedAt(pod));
    }
  }
  return earliest(times);
}
