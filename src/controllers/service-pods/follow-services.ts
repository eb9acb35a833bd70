/**
 * Finds the Services whose endpoints may have changed, and the Pods of a Service.
 *
 * Neither search visits all objects. The search for a Pod visits the Services of its namespace whose selector begins with one of the Pod's
 * labels. The search for a Service visits the Pods with the rarest label of its selector.
 * Source: pkg/controller/endpointslice and the package endpointslice/util of v1.33 (behavior).
 */
import { isDeepStrictEqual } from 'node:util';
import { crc32 } from 'node:zlib';
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Pod, Service } from '../../api/generated/types.ts';
import { PODS, SERVICES } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { type ControllerOptions, nodeNamesOf } from '../controller.ts';
import { isPodReady } from '../ownership/pod-state.ts';

/**
 * The number of index buckets for the labels of a namespace. Labels share buckets, so that a Pod with many labels takes little memory in
 * the index.
 */
const BUCKETS = 1024;

/** A Service without a selector has no Pods. */
const selectorOf = ({ spec }: Service): [key: string, value: string][] => Object.entries(spec?.selector ?? {});

export const hasSelector = (service: Service): boolean => selectorOf(service).length > 0;

const labelKey = (namespace: string | undefined, [label, value]: readonly [string, string]): string =>
  `${namespace ?? ''}/${label}=${value}`;

const labelKeys = ({ metadata: { namespace, labels = {} } }: KubeObject): string[] =>
  Object.entries(labels).map((label) => labelKey(namespace, label));

/** Different labels may have the same bucket. */
const bucketOf = (key: string): string => `${key.slice(0, key.indexOf('/'))}/${crc32(key) % BUCKETS}`;

const labelBuckets = (object: KubeObject): string[] => [...new Set(labelKeys(object).map(bucketOf))];

/** Index keys of Services: the alphabetically first label of the selector. */
function selectorKeys(service: Service): string[] {
  const [first] = selectorOf(service).sort(([a], [b]) => (a < b ? -1 : 1));
  return first === undefined ? [] : [labelKey(service.metadata.namespace, first)];
}

const matches = (service: Service, pod: Pod): boolean =>
  selectorOf(service).every(([label, value]) => pod.metadata.labels?.[label] === value);

const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;

function endpointsChanged(pod: Pod, old: Pod): boolean {
  const [now, before] = [pod, old].map(({ metadata, spec, status }) => [
    metadata.deletionTimestamp === undefined,
    spec?.nodeName,
    status?.podIP,
    status?.podIPs,
  ]);
  return isPodReady(pod) !== isPodReady(old) || hasEnded(pod) !== hasEnded(old) || !isDeepStrictEqual(now, before);
}

/** Whether the change of the Pod can change to which Services it belongs. */
const membershipChanged = ({ metadata, spec }: Pod, old: Pod): boolean =>
  spec?.hostname !== old.spec?.hostname ||
  spec?.subdomain !== old.spec?.subdomain ||
  !isDeepStrictEqual(metadata.labels, old.metadata.labels);

export interface FollowedServices {
  services: Informer<Service>;
  /** Resolves once the informers' caches of Services and Pods are complete. */
  synced: Promise<unknown>;
  /** Returns the Pods that the Service selects, in no particular order. */
  podsOf(service: Service): Pod[];
  /** Calls `changed` for the Services with Pods on the node. */
  nodeChanged(name: string): void;
}

/**
 * Calls `changed` with the key of each Service whose endpoints may have changed: its namespace, `/` and its name. If the Service was
 * deleted, calls `deleted` first.
 */
export function followServices(
  { informers, signal }: Pick<ControllerOptions, 'informers' | 'signal'>,
  changed: (key: string) => void,
  deleted: (key: string) => void = () => {},
): FollowedServices {
  const serviceChanged = (service: Service): void => changed(keyOf(service));
  const services = informers.follow<Service>(
    SERVICES,
    { signal },
    {
      added: serviceChanged,
      updated: serviceChanged,
      deleted(service) {
        deleted(keyOf(service));
        serviceChanged(service);
      },
    },
  );
  const podChanged = (pod: Pod): void => {
    for (const key of labelKeys(pod))
      for (const service of services.by(selectorKeys, key)) if (matches(service, pod)) serviceChanged(service);
  };
  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    {
      added: podChanged,
      deleted: podChanged,
      updated(pod, old) {
        const moved = membershipChanged(pod, old);
        if (moved || endpointsChanged(pod, old)) podChanged(pod);
        if (moved) podChanged(old);
      },
    },
  );
  return {
    services,
    synced: Promise.all([services.synced, pods.synced]),
    podsOf(service) {
      const keys = selectorOf(service).map((label) => labelKey(service.metadata.namespace, label));
      const [smallest] = keys.map((key) => pods.by(labelBuckets, bucketOf(key))).sort((a, b) => a.size - b.size);
      const { namespace } = service.metadata;
      return [...(smallest ?? [])].filter((pod) => pod.metadata.namespace === namespace && matches(service, pod));
    },
    nodeChanged(name) {
      for (const pod of pods.by(nodeNamesOf, name)) podChanged(pod);
    },
  };
}
