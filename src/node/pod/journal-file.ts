/** Stores in the Pod's folder the facts about a Pod that a new agent needs and that the Pod's status and the runtime may lack. */

import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { movedBack } from '../../api/core/v1/pod/status/termination.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { Journal, Stop } from '../../lifecycle/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Millis } from '../../machinery/time.ts';
import { readTextIfPresent } from '../../platform/files.ts';
import type { Log, Timers } from '../../platform/platform.ts';

export interface KeptJournal {
  /**
   * Returns an empty journal if the file is absent or unreadable. If the Pod's status has no start time, deletes the file, which is from an
   * earlier life of the UID.
   */
  read(pod: Pod): Journal;
  /** Writes the journal synchronously. Does nothing if the Pod has no folder. Logs any other failure and deletes the old journal. */
  keep(pod: Pod, journal: Journal): void;
}

const EMPTY: Journal = { stops: {} };

export function createKeptJournal(
  podDirectory: (uid: string) => string,
  { timers, log }: { timers: Pick<Timers, 'now'>; log: Log },
): KeptJournal {
  const fileOf = (pod: Pod): string => join(podDirectory(uidOf(pod)), 'journal.json');
  return {
    read(pod) {
      if (pod.status?.startTime === undefined) {
        // After a reboot, a static Pod starts again under its UID and still has the folder of its earlier life.
        rmSync(fileOf(pod), { force: true });
        return EMPTY;
      }
      try {
        const journal = { ...EMPTY, ...(JSON.parse(readTextIfPresent(fileOf(pod)) ?? '{}') as Partial<Journal>) };
        return withoutFutureTimes(timers.now(), journal);
      } catch (error) {
        log.warn('cannot read the journal of a Pod', { pod: pod.metadata.name, error: String(error) });
        return EMPTY;
      }
    },
    keep(pod, journal) {
      const file = fileOf(pod);
      try {
        // No fsync is needed, since a crash of the machine also ends the containers that the journal describes.
        writeFileSync(`${file}.new`, JSON.stringify(journal), { mode: 0o600 });
        renameSync(`${file}.new`, file);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
        // Only log the error, since the runs are stopped even without a journal.
        log.warn('cannot write the journal of a Pod', { pod: pod.metadata.name, error: String(error) });
        rmSync(file, { force: true });
      }
    },
  };
}

/** Moves start times in the future back to now, and their deadlines by the same amount, since the clock may have been set back. */
function withoutFutureTimes(now: Millis, { stops, termination, ...others }: Journal): Journal {
  const capped = (stop: Stop): Stop => ({
    ...stop,
    at: Math.min(stop.at, now),
    deadline: Math.min(stop.deadline, now + stop.deadline - stop.at),
  });
  const back = Math.max(0, (termination?.startedAt ?? 0) - now);
  return {
    ...others,
    stops: Object.fromEntries(Object.entries(stops).map(([id, stop]) => [id, capped(stop)])),
    termination: termination && movedBack(termination, back),
  };
}
