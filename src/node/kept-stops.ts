/**
 * Why runs of a Pod are being ended though it lives on, in a file of its folder: so an agent that starts meanwhile, or when they
 * have ended, restarts them, or does not, as the one before would have. It goes with the folder.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../api/generated/types.ts';
import type { Stop, Stops } from '../lifecycle/stops.ts';
import type { Millis } from '../machinery/time.ts';
import { readTextIfPresent } from '../platform/files.ts';
import type { Log, Timers } from '../platform/platform.ts';

export interface KeptStops {
  /** Of a Pod that has begun. */
  read(pod: Pod): Stops;
  keep(pod: Pod, stops: Stops): void;
}

export function createKeptStops(
  podDirectory: (uid: string) => string,
  { timers, log }: { timers: Pick<Timers, 'now'>; log: Log },
): KeptStops {
  const fileOf = ({ metadata }: Pod): string => join(podDirectory(metadata.uid ?? ''), 'stops.json');
  return {
    read(pod) {
      if (pod.status?.startTime === undefined) return {};
      try {
        const stops = JSON.parse(readTextIfPresent(fileOf(pod)) ?? '{}') as Stops;
        return Object.fromEntries(Object.entries(stops).map(([id, stop]) => [id, notAfter(timers.now(), stop)]));
      } catch (error) {
        log.warn('cannot read why containers are ended', { pod: pod.metadata.name, error: String(error) });
        return {};
      }
    },
    keep(pod, stops) {
      const file = fileOf(pod);
      try {
        // Not for a crash of the machine: that ends the containers as well.
        writeFileSync(`${file}.new`, JSON.stringify(stops), { mode: 0o600 });
        renameSync(`${file}.new`, file);
      } catch (error) {
        // They are ended all the same.
        log.warn('cannot write down why containers are ended', { pod: pod.metadata.name, error: String(error) });
      }
    },
  };
}

/** The clock may have been set back since: they have no more time than they had. */
const notAfter = (now: Millis, stop: Stop): Stop => ({
  ...stop,
  at: Math.min(stop.at, now),
  deadline: Math.min(stop.deadline, now + stop.deadline - stop.at),
});
