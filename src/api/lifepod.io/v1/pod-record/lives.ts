/**
 * Groups the parts of a record by life. A static Pod gets its UID from its manifest, so its record may contain several lives, each with its
 * own parts. A part begins the next life if its step Created has another time than in the parts before it.
 */
import { parseTime } from '../../../../machinery/time.ts';
import type { PodRecord } from '../../../generated/types.ts';

/** Returns undefined if the part has no step Created. */
export const creationIn = ({ transitions }: PodRecord): string | undefined =>
  transitions.find(({ type }) => type === 'Created')?.at;

/** `created`, `other`: the times of creation. Returns false if one of them is unknown, because the first parts may have been deleted. */
export const areTwoLives = (created: string | undefined, other: string | undefined): boolean =>
  created !== undefined && other !== undefined && parseTime(created) !== parseTime(other);

export const partNumber = ({ metadata, podUID }: PodRecord): number => Number(metadata.name.slice(podUID.length + 1));

/** `parts`: the parts of one UID in any order. Returns the parts of each life, in the order in which they were recorded. */
export function livesIn(parts: readonly PodRecord[]): PodRecord[][] {
  const lives: PodRecord[][] = [];
  let created: string | undefined;
  for (const part of [...parts].sort((a, b) => partNumber(a) - partNumber(b))) {
    const next = creationIn(part);
    const last = lives.at(-1);
    if (last === undefined || areTwoLives(created, next)) lives.push([part]);
    else last.push(part);
    created = next ?? created;
  }
  return lives;
}

export const lastLife = (parts: readonly PodRecord[]): PodRecord[] => livesIn(parts).at(-1) ?? [];
