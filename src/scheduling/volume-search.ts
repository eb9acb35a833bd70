/**
 * Finds a PersistentVolume for a claim among many, without comparing all pairs of volumes and claims.
 * Source: pkg/controller/volume/persistentvolume of v1.33 (behavior).
 */
import type { Node, PersistentVolume, PersistentVolumeClaim } from '../api/generated/types.ts';
import { labelSelectorMatcher } from '../machinery/labels.ts';
import { compareQuantities, type Quantity, quantityOrZero } from '../machinery/quantity.ts';
import { matchesNodeSelector } from './requirements.ts';

export const isReachable = ({ spec }: PersistentVolume, node: Node): boolean =>
  spec?.nodeAffinity?.required === undefined || matchesNodeSelector(spec.nodeAffinity.required, node);

/**
 * Finds the volume that is reserved for the claim (by claimRef), or else the smallest free volume that satisfies the claim. Returns
 * undefined if there is none.
 */
export type FindVolume = (claim: PersistentVolumeClaim) => PersistentVolume | undefined;

export interface VolumeSearch {
  /** Returns a function that finds only volumes that can be used on the node. Without a node, finds any volume. */
  on(node: Node | undefined): FindVolume;
}

/** remove() must get the version of the volume that put() got. */
export interface VolumeIndex extends VolumeSearch {
  put(volume: PersistentVolume): void;
  remove(volume: PersistentVolume): void;
}

interface Sized {
  volume: PersistentVolume;
  size: Quantity;
}

/** Free volumes with the same class, volume mode and access modes. */
interface Shelf {
  modes: ReadonlySet<string>;
  /** Sorted by size, then by name. */
  volumes: Sized[];
  /** Cache: the volumes that can be used on the last searched node. */
  reachable: { node: Node; volumes: Sized[] } | undefined;
}

const sized = (volume: PersistentVolume): Sized => ({
  volume,
  size: quantityOrZero(volume.spec?.capacity?.['storage']),
});
const placeOf = ({ namespace, name }: { namespace?: string; name?: string }): string =>
  `${namespace ?? ''}/${name ?? ''}`;
const contentOf = ({ storageClassName, volumeMode }: { storageClassName?: string; volumeMode?: string } = {}) =>
  JSON.stringify([storageClassName ?? '', volumeMode ?? 'Filesystem']);
const modesOf = ({ spec }: PersistentVolume): string => [...new Set(spec?.accessModes)].sort().join();

function ensure<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  const value = map.get(key) ?? create();
  map.set(key, value);
  return value;
}

/** Returns an index of the volumes. The index ignores volumes that are being deleted, or that are neither reserved nor Available. */
export function volumeIndex(volumes: readonly PersistentVolume[] = []): VolumeIndex {
  /** Reserved volumes, by namespace and name of the claim, then by name of the volume. */
  const kept = new Map<string, Map<string, PersistentVolume>>();
  /** Free volumes, by class and volume mode, then by access modes. There are few combinations of access modes. */
  const free = new Map<string, Map<string, Shelf>>();
  const isFree = ({ status }: PersistentVolume): boolean => status?.phase === 'Available';

  function put(volume: PersistentVolume): void {
    const { metadata, spec } = volume;
    if (metadata.deletionTimestamp !== undefined) return;
    if (spec?.claimRef !== undefined) {
      ensure(kept, placeOf(spec.claimRef), () => new Map()).set(metadata.name, volume);
    } else if (isFree(volume)) {
      const shelves = ensure(free, contentOf(spec), () => new Map<string, Shelf>());
      const modes = new Set(spec?.accessModes);
      const shelf = ensure(shelves, modesOf(volume), () => ({ modes, volumes: [], reachable: undefined }));
      const item = sized(volume);
      insert(shelf.volumes, item);
      if (shelf.reachable !== undefined && isReachable(volume, shelf.reachable.node))
        insert(shelf.reachable.volumes, item);
    }
  }

  function remove(volume: PersistentVolume): void {
    const { metadata, spec } = volume;
    if (spec?.claimRef !== undefined) {
      const place = placeOf(spec.claimRef);
      kept.get(place)?.delete(metadata.name);
      if (kept.get(place)?.size === 0) kept.delete(place);
      return;
    }
    const [content, modes] = [contentOf(spec), modesOf(volume)];
    const shelf = free.get(content)?.get(modes);
    if (shelf === undefined) return;
    const item = sized(volume);
    takeOut(shelf.volumes, item);
    if (shelf.reachable !== undefined) takeOut(shelf.reachable.volumes, item);
    if (shelf.volumes.length === 0) free.get(content)?.delete(modes);
    if (free.get(content)?.size === 0) free.delete(content);
  }

  for (const volume of volumes) put(volume);
  return {
    put,
    remove,
    on(node) {
      const onNode = (shelf: Shelf): Sized[] => (node === undefined ? shelf.volumes : reachableOn(shelf, node));
      return (claim) =>
        [...(kept.get(placeOf(claim.metadata))?.values() ?? [])].find(
          (volume) => isKeptFor(volume, claim) && (node === undefined || isReachable(volume, node)),
        ) ?? smallest(free.get(contentOf(claim.spec))?.values() ?? [], onNode, claim);
    },
  };
}

const isKeptFor = ({ spec }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean =>
  !spec?.claimRef?.uid || spec.claimRef.uid === metadata.uid;

const smallerFirst = (a: Sized, b: Sized): number =>
  compareQuantities(a.size, b.size) || a.volume.metadata.name.localeCompare(b.volume.metadata.name);

const placeIn = (volumes: readonly Sized[], item: Sized): number =>
  firstWhere(volumes, (each) => smallerFirst(each, item) >= 0);

function insert(volumes: Sized[], item: Sized): void {
  volumes.splice(placeIn(volumes, item), 0, item);
}

function takeOut(volumes: Sized[], item: Sized): void {
  const at = placeIn(volumes, item);
  if (volumes[at]?.volume.metadata.name === item.volume.metadata.name) volumes.splice(at, 1);
}

function reachableOn(shelf: Shelf, node: Node): Sized[] {
  if (shelf.reachable?.node !== node) {
    shelf.reachable = { node, volumes: shelf.volumes.filter(({ volume }) => isReachable(volume, node)) };
  }
  return shelf.reachable.volumes;
}

function smallest(
  shelves: Iterable<Shelf>,
  volumesOf: (shelf: Shelf) => readonly Sized[],
  { spec }: PersistentVolumeClaim,
): PersistentVolume | undefined {
  const request = quantityOrZero(spec?.resources?.requests?.['storage']);
  const matches = spec?.selector === undefined ? undefined : labelSelectorMatcher(spec.selector);
  let best: Sized | undefined;
  for (const shelf of shelves) {
    if (!(spec?.accessModes ?? []).every((mode) => shelf.modes.has(mode))) continue;
    const volumes = volumesOf(shelf);
    for (let at = firstWhere(volumes, ({ size }) => compareQuantities(size, request) >= 0); at < volumes.length; at++) {
      const found = volumes[at] as Sized;
      if (matches !== undefined && !matches(found.volume.metadata.labels)) continue;
      if (best === undefined || smallerFirst(found, best) < 0) best = found;
      break;
    }
  }
  return best?.volume;
}

/** Returns the index of the first volume for which `holds` is true, by binary search. `holds` must also be true for all later volumes. */
function firstWhere(volumes: readonly Sized[], holds: (item: Sized) => boolean): number {
  let [from, to] = [0, volumes.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (holds(volumes[middle] as Sized)) to = middle;
    else from = middle + 1;
  }
  return from;
}
