/**
 * Records which objects belong to a node: its Pods, the objects to which they refer, the PersistentVolumes of their claims, and the Secrets
 * of these volumes. The caller reports each Pod and PersistentVolume that exists, changes or is deleted, in any order.
 * Mirror Pods relate their node to no other object, because the node itself creates them.
 *
 * Source: plugin/pkg/auth/authorizer/node/graph.go of v1.33 (behavior).
 */
import { isMirrorPod } from '../../../../api/core/v1/pod/mirror.ts';
import { referencesOf } from '../../../../api/core/v1/pod/references.ts';
import type { PersistentVolume, Pod } from '../../../../api/generated/types.ts';
import { volumeSecrets } from './volume-secrets.ts';

export interface NodeRelations {
  /**
   * `resource`: the plural of the kind, without the group, because all related kinds have different plurals. `namespace`: empty for
   * cluster-scoped kinds.
   */
  relates(nodeName: string, resource: string, namespace: string, name: string): boolean;
}

export interface NodeGraph extends NodeRelations {
  /** The caller must not modify the Pod afterwards. */
  putPod(pod: Pod): void;
  removePod(pod: Pod): void;
  putVolume(volume: PersistentVolume): void;
  removeVolume(volume: PersistentVolume): void;
}

const keyOf = (resource: string, namespace: string, name: string): string => `${resource}/${namespace}/${name}`;

export function createNodeGraph(): NodeGraph {
  /** For each node, the number of references from its Pods to each object, by the key of the object. */
  const nodes = new Map<string, Map<string, number>>();
  const pods = new Map<string, Pod>();
  /** The PersistentVolumes that have a claim, by name. `claim`: the key of the claim. */
  const volumes = new Map<string, { volume: PersistentVolume; claim: string }>();
  /** The names of PersistentVolumes by the key of a Secret that they name. */
  const volumesOfSecrets = new Map<string, Set<string>>();

  function forget({ metadata: { name } }: PersistentVolume): void {
    const known = volumes.get(name);
    volumes.delete(name);
    if (known !== undefined) for (const key of secretKeys(known.volume)) removeFrom(volumesOfSecrets, key, name);
  }
  const refers = (nodeName: string, key: string): boolean => nodes.get(nodeName)?.has(key) === true;
  const usesVolume = (nodeName: string, volume: string): boolean => {
    const claim = volumes.get(volume)?.claim;
    return claim !== undefined && refers(nodeName, claim);
  };

  return {
    putPod(pod) {
      const { nodeName } = pod.spec ?? {};
      const key = podKey(pod);
      const before = pods.get(key);
      // Count the new references before the old ones are removed, so that the count of an object with both references never drops to 0.
      if (nodeName) {
        count(nodes, nodeName, podKeys(pod), 1);
        pods.set(key, pod);
      } else pods.delete(key);
      if (before?.spec?.nodeName) count(nodes, before.spec.nodeName, podKeys(before), -1);
    },
    removePod(pod) {
      const key = podKey(pod);
      const known = pods.get(key);
      pods.delete(key);
      if (known?.spec?.nodeName) count(nodes, known.spec.nodeName, podKeys(known), -1);
    },
    putVolume(volume) {
      forget(volume);
      const { name } = volume.metadata;
      const claim = volume.spec?.claimRef;
      if (claim === undefined) return;
      volumes.set(name, { volume, claim: keyOf('persistentvolumeclaims', claim.namespace ?? '', claim.name ?? '') });
      for (const key of secretKeys(volume)) addTo(volumesOfSecrets, key, name);
    },
    removeVolume: forget,
    relates(nodeName, resource, namespace, name) {
      if (resource === 'persistentvolumes') return usesVolume(nodeName, name);
      const key = keyOf(resource, namespace, name);
      if (refers(nodeName, key)) return true;
      if (resource !== 'secrets') return false;
      for (const volume of volumesOfSecrets.get(key) ?? []) if (usesVolume(nodeName, volume)) return true;
      return false;
    },
  };
}

const podKey = ({ metadata: { namespace = '', name } }: Pod): string => keyOf('pods', namespace, name);

function* podKeys(pod: Pod): Generator<string> {
  const { namespace = '' } = pod.metadata;
  yield podKey(pod);
  if (isMirrorPod(pod)) return;
  for (const reference of referencesOf(pod))
    if (reference.name !== '') yield keyOf(reference.resource, namespace, reference.name);
}

function* secretKeys(volume: PersistentVolume): Generator<string> {
  for (const { namespace, name } of volumeSecrets(volume)) yield keyOf('secrets', namespace, name);
}

function count(nodes: Map<string, Map<string, number>>, nodeName: string, keys: Iterable<string>, change: 1 | -1) {
  const counts = nodes.get(nodeName) ?? new Map<string, number>();
  for (const key of keys) {
    const sum = (counts.get(key) ?? 0) + change;
    if (sum > 0) counts.set(key, sum);
    else counts.delete(key);
  }
  if (counts.size > 0) nodes.set(nodeName, counts);
  else nodes.delete(nodeName);
}

function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}

function removeFrom(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key);
  set?.delete(value);
  if (set?.size === 0) sets.delete(key);
}
