/**
 * Records which objects belong to a node: the Pods of the node, the objects to which these Pods refer, the PersistentVolumes of their
 * claims, and the Secrets of these volumes.
 *
 * Boundary: pure. The caller reports each Pod and PersistentVolume that exists, changes or is deleted.
 * Invariants:
 *  1. The relations depend only on the objects that exist, not on the order in which they were reported.
 *  2. relates() makes a fixed number of look-ups, and one more for each PersistentVolume that names the Secret in question.
 *  3. Mirror Pods relate their node to no other object, because the node itself creates them.
 *
 * Source: plugin/pkg/auth/authorizer/node/graph.go of v1.33 (behavior).
 */
import { isMirrorPod } from '../../../../api/core/v1/pod/mirror.ts';
import { referencesOf } from '../../../../api/core/v1/pod/references.ts';
import type { PersistentVolume, Pod } from '../../../../api/generated/types.ts';
import { volumeSecrets } from './volume-secrets.ts';

export interface NodeRelations {
  /**
   * Whether the object belongs to the node. `resource`: the plural of its kind, without the group, because all related kinds have different
   * plurals. `namespace`: empty for cluster-scoped kinds.
   */
  relates(nodeName: string, resource: string, namespace: string, name: string): boolean;
}

export interface NodeGraph extends NodeRelations {
  /** Records a new or changed Pod. The caller must not modify the Pod afterwards. */
  putPod(pod: Pod): void;
  /** Forgets the Pod with the name and namespace of `pod`. */
  removePod(pod: Pod): void;
  putVolume(volume: PersistentVolume): void;
  removeVolume(volume: PersistentVolume): void;
}

const keyOf = (resource: string, namespace: string, name: string): string => `${resource}/${namespace}/${name}`;

export function createNodeGraph(): NodeGraph {
  /** For each node, how many references of its Pods there are to each object. */
  const nodes = new Map<string, Map<string, number>>();
  /** The recorded Pods that are bound to a node, by key. The counts in `nodes` include their references. */
  const pods = new Map<string, Pod>();
  /** The PersistentVolumes that have a claim, with the key of the claim, by name. */
  const volumes = new Map<string, { volume: PersistentVolume; claim: string }>();
  /** The names of the PersistentVolumes that name a Secret, by the key of the Secret. */
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

/** Yields the keys of the objects that a Pod relates to its node: the Pod itself, and those to which it refers. */
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
