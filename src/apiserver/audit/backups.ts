/**
 * A rotated log has the name of the log with the time of the rotation in it, such as audit-2026-01-31T09-30-00.123.log.
 * Source: lumberjack v2, which kube-apiserver v1.33 uses.
 */
import { extname } from 'node:path';
import type { Millis } from '../../machinery/time.ts';

const DAY_MILLIS = 24 * 60 * 60 * 1000;
const TIME = /^(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d\.\d{3})$/;

export interface Retention {
  /** The number of rotated logs to keep; 0 means no limit. */
  maxBackups: number;
  /** The age in days from which rotated logs are deleted; 0 means no limit. */
  maxAgeDays: number;
}

const partsOf = (name: string): [start: string, end: string] => {
  const end = extname(name);
  return [`${name.slice(0, name.length - end.length)}-`, end];
};

/** `name`: the name of the log, without its folder. */
export function backupName(name: string, at: Millis): string {
  const [start, end] = partsOf(name);
  return `${start}${new Date(at).toISOString().slice(0, -1).replaceAll(':', '-')}${end}`;
}

/** Returns the names of the rotated logs to delete. `name`: the name of the log. `names`: the names of all files in its folder. */
export function expiredBackups(
  name: string,
  names: readonly string[],
  { maxBackups, maxAgeDays }: Retention,
  now: Millis,
): string[] {
  const [start, end] = partsOf(name);
  const backups = names
    .filter((each) => each.startsWith(start) && each.endsWith(end) && each.length > start.length + end.length)
    .flatMap((each) => {
      const [, hour, minute, second] = TIME.exec(each.slice(start.length, each.length - end.length)) ?? [];
      const at = Date.parse(`${hour}:${minute}:${second}Z`);
      return Number.isNaN(at) ? [] : [{ each, at }];
    })
    .sort((a, b) => b.at - a.at);
  return backups
    .filter(
      ({ at }, index) =>
        (maxBackups > 0 && index >= maxBackups) || (maxAgeDays > 0 && at < now - maxAgeDays * DAY_MILLIS),
    )
    .map(({ each }) => each);
}
