/**
 * Invariant: a termination is written to the Pod's folder before the Pod's worker is notified, so that the next agent continues it. If the
 * write fails, the Pod is terminated nevertheless.
 */
import { rmSync } from 'node:fs';
import type { Pod } from '../../api/generated/types.ts';
import { nodeEndAfter } from '../../lifecycle/termination-causes.ts';
import type { NodeEnd } from '../../lifecycle/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import type { PodWorker } from '../pod/worker/worker.ts';
import { nodeEndFile, readNodeEnd, writeNodeEnd } from './ending-files.ts';

export interface NodeEndsOptions {
  timers: Timers;
  log: Log;
  podDirectory(uid: string): string;
  workers: ReadonlyMap<string, PodWorker>;
}

export interface NodeEnds {
  /** If the node is already terminating the Pod, this can only shorten the grace period. Does nothing for a Pod without a worker. */
  end(pod: Pod, by: Omit<NodeEnd, 'at'>): void;
  /** Returns the termination of this Pod that a previous agent started; undefined: there is none, or the Pod starts again. */
  restore(pod: Pod): NodeEnd | undefined;
  get(podUid: string): NodeEnd | undefined;
  /** Called when the Pod's worker no longer exists. */
  forget(podUid: string): void;
}

export function createNodeEnds({ timers, log, podDirectory, workers }: NodeEndsOptions): NodeEnds {
  const ends = new Map<string, NodeEnd>();
  return {
    end(pod, by) {
      const uid = uidOf(pod);
      const worker = workers.get(uid);
      if (worker === undefined) return;
      const before = ends.get(uid);
      if (before === undefined || by.graceSeconds < before.graceSeconds) {
        const end = nodeEndAfter(before, by, timers.now());
        ends.set(uid, end);
        try {
          writeNodeEnd(podDirectory(uid), end);
        } catch (error) {
          // A full disk may be the reason for the eviction. An agent that starts before the Pod has ended decides again whether to evict.
          log.warn('cannot record that a Pod is being terminated', { podUid: uid, error: (error as Error).message });
        }
      }
      worker.end(by);
    },
    restore(pod) {
      const folder = podDirectory(uidOf(pod));
      if (pod.status?.startTime === undefined) {
        // A static Pod with this UID may have been terminated when the machine shut down, and starts again.
        rmSync(nodeEndFile(folder), { force: true });
        return undefined;
      }
      const read = readNodeEnd(folder);
      if (read === undefined) return undefined;
      // The clock may have been set back since the file was written.
      const end = { ...read, at: Math.min(read.at, timers.now()) };
      ends.set(uidOf(pod), end);
      return end;
    },
    get: (podUid) => ends.get(podUid),
    forget: (podUid) => void ends.delete(podUid),
  };
}
