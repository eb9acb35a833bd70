/** The served kinds. To add a kind, create its folder and list it here. */
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import { leaseKind } from './coordination.k8s.io/v1/lease/index.ts';
import { bindingKind } from './core/v1/binding/index.ts';
import { configMapKind } from './core/v1/config-map/index.ts';
import { eventKind } from './core/v1/event/index.ts';
import { namespaceKind } from './core/v1/namespace/index.ts';
import { nodeKind } from './core/v1/node/index.ts';
import { persistentVolumeKind } from './core/v1/persistent-volume/index.ts';
import { persistentVolumeClaimKind } from './core/v1/persistent-volume-claim/index.ts';
import { podKind } from './core/v1/pod/index.ts';
import { podTemplateKind } from './core/v1/pod-template/index.ts';
import { secretKind } from './core/v1/secret/index.ts';
import { serviceKind } from './core/v1/service/index.ts';
import { serviceAccountKind } from './core/v1/service-account/index.ts';
import { eventsV1EventKind } from './events.k8s.io/v1/event/index.ts';
import type { KindDefinition } from './kind.ts';
import { podRecordKind } from './lifepod.io/v1/pod-record/index.ts';
import { nodeMetricsKind } from './metrics.k8s.io/v1beta1/node-metrics/index.ts';
import { podMetricsKind } from './metrics.k8s.io/v1beta1/pod-metrics/index.ts';
import { runtimeClassKind } from './node.k8s.io/v1/runtime-class/index.ts';
import { priorityClassKind } from './scheduling.k8s.io/v1/priority-class/index.ts';
import { storageClassKind } from './storage.k8s.io/v1/storage-class/index.ts';

/** Removes the object type from a definition. This is safe, because a definition is only called with objects of its own kind. */
const general = <T extends KubeObject>(kind: KindDefinition<T>): KindDefinition => kind as unknown as KindDefinition;

export const kinds: readonly KindDefinition[] = [
  general(bindingKind),
  general(configMapKind),
  general(eventKind),
  general(namespaceKind),
  general(nodeKind),
  general(persistentVolumeKind),
  general(persistentVolumeClaimKind),
  general(podKind),
  general(podTemplateKind),
  general(secretKind),
  general(serviceKind),
  general(serviceAccountKind),
  general(leaseKind),
  general(runtimeClassKind),
  general(priorityClassKind),
  general(storageClassKind),
  general(eventsV1EventKind),
  general(podRecordKind),
  general(nodeMetricsKind),
  general(podMetricsKind),
];

const byRef = new Map(kinds.map((kind) => [`${kind.group}/${kind.version}/${kind.plural}`, kind]));
const byName = new Map(kinds.map((kind) => [`${kind.group}/${kind.version}/${kind.kind}`, kind]));

/** The kind of a resource such as `pods`; undefined if the resource is not served. */
export const findKind = ({ group, version, resource }: ResourceRef): KindDefinition | undefined =>
  byRef.get(`${group}/${version}/${resource}`);

/** The kind with a name such as `Pod`; undefined if the kind is not served. */
export const kindByName = (group: string, version: string, kind: string): KindDefinition | undefined =>
  byName.get(`${group}/${version}/${kind}`);
