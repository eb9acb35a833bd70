/**
 * Writes the statuses of one Pod, one at a time. If several statuses arrive during a write, only the newest is written.
 */
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import { pause } from '../../platform/pause.ts';
import type { Log, Timers } from '../../platform/platform.ts';

export interface StatusPorts {
  timers: Timers;
  log: Log;
  writeStatus(pod: Pod, status: PodStatus): Promise<void>;
}

const RETRY_MILLIS = 1000;

export interface StatusWriter {
  write(pod: Pod, status: PodStatus): void;
  /** Resolves when no status is left to write. Once `signal` has aborted, only waits for the write that is under way. */
  flushed(): Promise<void>;
}

export function createStatusWriter(ports: StatusPorts, signal: AbortSignal): StatusWriter {
  /** The serialized status of the last write, which succeeded or is under way; '' if it failed, or if there was none. */
  let written = '';
  let wanted: { pod: Pod; status: PodStatus; text: string } | undefined;
  let writing: Promise<void> | undefined;

  const drain = async (): Promise<void> => {
    for (let next = wanted; next !== undefined && !signal.aborted; next = wanted) {
      wanted = undefined;
      written = next.text;
      try {
        await ports.writeStatus(next.pod, next.status);
      } catch (error) {
        written = '';
        ports.log.warn('cannot write the status of a Pod', { pod: next.pod.metadata.name, error: String(error) });
        wanted ??= next;
        await pause(ports.timers, RETRY_MILLIS, signal);
      }
    }
  };
  return {
    write(pod, status) {
      // Sort the fields, since the core copies some of them from the API server, which orders them differently.
      const text = JSON.stringify(Object.entries(status).sort(([a], [b]) => (a < b ? -1 : 1)));
      if (text === (wanted?.text ?? written)) return;
      wanted = { pod, status, text };
      writing ??= drain().finally(() => {
        writing = undefined;
      });
    },
    flushed: () => writing ?? Promise.resolve(),
  };
}
