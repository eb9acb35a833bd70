/**
 * What the next agent needs of a Pod beside its status and the runtime, in a file of the Pod's folder: why runs are being ended
 * though it lives on, what preStop hooks answered, and its termination. It goes with the folder.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { movedBack } from '../../api/core/v1/pod/status/termination.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { Journal, Stop } from '../../lifecycle/types.ts';
import type { Millis } from '../../machinery/time.ts';
import { readTextIfPresent } from '../../platform/files.ts';
import type { Log, Timers } from '../../platform/platform.ts';

export interface KeptJournal {
  /** The journal of a Pod that has begun; that of an earlier life of its UID is removed. */
  read(pod: Pod): Journal;
  keep(pod: Pod, journal: Journal): void;
}

const EMPTY: Journal = { stops: {} };

export function createKeptJournal(
  podDirectory: (uid: string) => string,
  { timers, log }: { timers: Pick<Timers, 'now'>; log: Log },
): KeptJournal {
  const fileOf = ({ metadata }: Pod): string => join(podDirectory(metadata.uid ?? ''), 'journal.json');
  return {
    read(pod) {
      if (pod.status?.startTime === undefined) {
        // A static Pod that begins anew with its machine has the folder of its life before.
        rmSync(fileOf(pod), { force: true });
        return EMPTY;
      }
      try {
        const journal = { ...EMPTY, ...(JSON.parse(readTextIfPresent(fileOf(pod)) ?? '{}') as Partial<Journal>) };
        return notAfter(timers.now(), journal);
      } catch (error) {
        log.warn('cannot read the journal of a Pod', { pod: pod.metadata.name, error: String(error) });
        return EMPTY;
      }
    },
    keep(pod, journal) {
      const file = fileOf(pod);
      try {
        // Not flushed for a crash of the machine: that ends the containers as well.
        writeFileSync(`${file}.new`, JSON.stringify(journal), { mode: 0o600 });
        renameSync(`${file}.new`, file);
      } catch (error) {
        // Nothing of a Pod without a folder outlives the agent.
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
        // The runs are ended all the same.
        log.warn('cannot write the journal of a Pod', { pod: pod.metadata.name, error: String(error) });
        // The status of the Pod is newer than a journal that could not be replaced.
        rmSync(file, { force: true });
      }
    },
  };
}

/** The clock may have been set back since: nothing has more time than it had. */
function notAfter(now: Millis, { stops, termination, ...others }: Journal): Journal {
  const capped = (stop: Stop): Stop => ({
    ...stop,
    at: Math.min(stop.at, now),
    deadline: Math.min(stop.deadline, now + stop.deadline - stop.at),
  });
  const back = Math.max(0, (termination?.startedAt ?? 0) - now);
  return {
    ...others,
    stops: Object.fromEntries(Object.entries(stops).map(([id, stop]) => [id, capped(stop)])),
    ...(termination === undefined ? {} : { termination: movedBack(termination, back) }),
  };
}
