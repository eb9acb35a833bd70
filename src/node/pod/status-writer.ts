/**
 * Writes the statuses of one Pod, one at a time. If several statuses arrive during a write, only the newest is written. A change that may
 * wait (status-changes.ts) is written with the next change, or when its waiting time is over.
 */
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import { jsonEqual } from '../../machinery/json-value.ts';
import type { Millis } from '../../machinery/time.ts';
import { pause } from '../../platform/pause.ts';
import type { Log, Timer, Timers } from '../../platform/platform.ts';
import { mayWaitMillis } from './status-changes.ts';

export interface StatusPorts {
  timers: Timers;
  log: Log;
  writeStatus(pod: Pod, status: PodStatus): Promise<void>;
}

const RETRY_MILLIS = 1000;

export interface StatusWriter {
  write(pod: Pod, status: PodStatus): void;
  /**
   * Immediately writes a status that may wait, and resolves when no status is left to write. Once the signal has aborted, only waits for
   * the write in progress.
   */
  flushed(): Promise<void>;
}

interface WantedStatus {
  pod: Pod;
  status: PodStatus;
  due: Millis;
}

export function createStatusWriter(ports: StatusPorts, signal: AbortSignal): StatusWriter {
  const { timers } = ports;
  /** The status of the last write, which may still be in progress. */
  let written: { status: PodStatus; failed?: boolean } | undefined;
  let wanted: WantedStatus | undefined;
  let writing: Promise<void> | undefined;
  let timer: Timer | undefined;

  const drain = async (): Promise<void> => {
    for (let next = takeDue(); next !== undefined; next = takeDue()) {
      written = next;
      try {
        await ports.writeStatus(next.pod, next.status);
      } catch (error) {
        written = { status: next.status, failed: true };
        const { namespace, name } = next.pod.metadata;
        ports.log.warn('cannot write the status of a Pod', { pod: `${namespace}/${name}`, error: String(error) });
        wanted = { ...next, ...wanted, due: next.due };
        await pause(timers, RETRY_MILLIS, signal);
      }
    }
  };
  const takeDue = (): WantedStatus | undefined => {
    if (wanted === undefined || wanted.due > timers.now() || signal.aborted) return undefined;
    const due = wanted;
    wanted = undefined;
    return due;
  };
  const proceed = (): void => {
    timer?.cancel();
    if (wanted === undefined || writing !== undefined || signal.aborted) return;
    if (wanted.due > timers.now()) timer = timers.at(wanted.due, proceed);
    else
      writing = drain().finally(() => {
        writing = undefined;
        proceed();
      });
  };
  return {
    write(pod, status) {
      const last = wanted?.status ?? (written?.failed === true ? undefined : written?.status);
      if (jsonEqual(status, last)) return;
      const due = timers.now() + mayWaitMillis(written?.status ?? pod.status ?? {}, status);
      wanted = { pod, status, due: Math.min(due, wanted?.due ?? due) };
      proceed();
    },
    async flushed() {
      do {
        if (wanted !== undefined) wanted.due = timers.now();
        proceed();
        await writing;
      } while (wanted !== undefined && !signal.aborted);
    },
  };
}
