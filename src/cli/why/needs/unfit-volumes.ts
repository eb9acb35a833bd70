/** Explains why PersistentVolumes do not fit a claim. Pure. */
import type { Node, PersistentVolume, PersistentVolumeClaim } from '../../../api/generated/types.ts';
import { labelSelectorMatcher } from '../../../machinery/labels.ts';
import { compareQuantities, quantityOrZero } from '../../../machinery/quantity.ts';
import { isReachable } from '../../../scheduling/volume-search.ts';
import { amountText } from '../amounts.ts';
import { listed } from '../subject.ts';

/** A list of volumes in a sentence has at most so many names. */
const MOST_NAMES = 3;

/**
 * Returns a verb phrase such as `has only 1Gi of the requested 3Gi`; undefined if the volume fits. Does not compare the classes. `nodes`:
 * those of which one must be able to use the volume; undefined if this does not matter.
 */
export function misfit(
  volume: PersistentVolume,
  { metadata: own, spec: wanted = {} }: PersistentVolumeClaim,
  nodes?: readonly Node[],
): string | undefined {
  const { metadata, spec = {}, status } = volume;
  if (metadata.deletionTimestamp !== undefined) return 'is being deleted';
  const { claimRef } = spec;
  const placeProblem = (): string | undefined =>
    nodes?.every((node) => !isReachable(volume, node)) === true ? 'is on another node' : undefined;
  const holder = `the claim ${claimRef?.namespace}/${claimRef?.name}`;
  if (isReleased(volume)) return `is Released, because ${holder} was deleted`;
  if (status?.phase === 'Failed') return 'has the phase Failed';
  if (claimRef !== undefined) {
    const how = status?.phase === 'Bound' ? 'bound to' : 'reserved for';
    if (claimRef.namespace !== own.namespace || claimRef.name !== own.name) return `is ${how} ${holder}`;
    if (claimRef.uid && claimRef.uid !== own.uid) return `is ${how} an earlier claim ${own.namespace}/${own.name}`;
    return placeProblem();
  }
  const { phase = 'Pending' } = status ?? {};
  if (phase !== 'Available') return `has the phase ${phase}`;
  const capacity = quantityOrZero(spec.capacity?.['storage']);
  const request = quantityOrZero(wanted.resources?.requests?.['storage']);
  if (compareQuantities(capacity, request) < 0)
    return `has only ${amountText(capacity)} of the requested ${amountText(request)}`;
  const mode = spec.volumeMode ?? 'Filesystem';
  if (mode !== (wanted.volumeMode ?? 'Filesystem')) return `has the volumeMode ${mode}`;
  const missing = (wanted.accessModes ?? []).filter((each) => spec.accessModes?.includes(each) !== true);
  if (missing.length > 0) return `does not have the access mode ${listed(missing)}`;
  if (wanted.selector !== undefined && !labelSelectorMatcher(wanted.selector)(metadata.labels))
    return "does not have the labels of the claim's selector";
  return placeProblem();
}

export const isReleased = ({ status }: PersistentVolume): boolean => status?.phase === 'Released';

/** Returns why the volumes do not fit the claim, as a list after a colon; empty if there are none. Volumes of other claims come last. */
export function misfits(
  volumes: readonly PersistentVolume[],
  claim: PersistentVolumeClaim,
  nodes?: readonly Node[],
): string {
  const isHeld = ({ spec }: PersistentVolume): number => Number(spec?.claimRef !== undefined);
  const phrases = volumes
    .toSorted((a, b) => isHeld(a) - isHeld(b))
    .flatMap((volume) => {
      const phrase = misfit(volume, claim, nodes);
      return phrase === undefined ? [] : [`${volume.metadata.name} ${phrase}`];
    });
  if (phrases.length <= MOST_NAMES) return listed(phrases);
  const others = phrases.length - MOST_NAMES;
  return listed([...phrases.slice(0, MOST_NAMES), `${others} ${others === 1 ? 'other does' : 'others do'} not fit`]);
}
