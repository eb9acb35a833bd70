/**
 * Writes the statuses of one Pod, one after the other; of those that come while one is being written, the newest.
 */
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import type { Log, Timers } from '../../platform/platform.ts';

export interface StatusPorts {
  timers: Timers;
  log: Log;
  writeStatus(pod: Pod, status: PodStatus): Promise<void>;
}

const RETRY_MILLIS = 1000;

export interface StatusWriter {
  write(pod: Pod, status: PodStatus): void;
  /** Resolves when nothing is left to write. */
  flushed(): Promise<void>;
}

export function createStatusWriter(ports: StatusPorts, signal: AbortSignal): StatusWriter {
  /** Of the newest that was given to the API, or is on its way there. */
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
        ports.log.warn('status not written', { pod: next.pod.metadata.name, error: String(error) });
        wanted ??= next;
        await new Promise<void>((resolve) => void ports.timers.at(ports.timers.now() + RETRY_MILLIS, resolve));
      }
    }
  };
  return {
    write(pod, status) {
      // The fields' order is no difference: the API server and the core have each their own.
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
