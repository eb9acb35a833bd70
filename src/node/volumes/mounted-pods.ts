/**
 * Rewrites the volumes of Pods when their sources change, before a token in them expires, and when an update must be retried.
 *
 * Boundary: pod-set-up.ts writes the volumes. The caller must run mount() and rewrite() through `operations`, which runs one operation per
 * Pod at a time.
 */

import type { Pod } from '../../api/generated/types.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer, Timers } from '../../platform/platform.ts';
import type { SerialByKey } from '../../platform/serial-by-key.ts';
import { claimNamesOf } from '../../scheduling/volume-claims.ts';
import { shownRoom } from './file-size-limit.ts';
import type { FollowedObjects } from './followed-objects.ts';
import {
  downwardFacts,
  type PodVolumes,
  RETRY_MILLIS,
  reportStale,
  type SetUpPorts,
  setUpVolumes,
} from './pod-set-up.ts';
import { shownObjects, showsChange, showsObjects, showsPod } from './references.ts';

export interface MountedPods {
  /** If the setup fails, the Pod stays registered for updates. */
  mount(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Called when the Pod object has changed. Starts an update if a volume contains a changed field and the last mount() succeeded. */
  update(pod: Pod): void;
  /** Rewrites the volumes that contain fields of the Pod or resources of its containers. Rejects if the Pod is not registered. */
  rewrite(pod: Pod, signal: AbortSignal): Promise<void>;
  /** `key`: from fileSourceKey(). Starts an update of the Pods whose volumes refer to the object. */
  objectChanged(key: string): void;
  /** No further update of the Pod's volumes starts. An update under way continues. */
  forget(uid: string): void;
  /** Returns the UIDs of the Pods that have claims and whose last mount() has failed. */
  waitingForClaims(): string[];
}

export interface MountedPodsPorts extends SetUpPorts {
  /** The key is the Pod's UID. */
  operations: SerialByKey;
  /** The caller passes changes of the followed objects to objectChanged(). */
  objects: FollowedObjects;
  signal: AbortSignal;
  /** Called instead of an update of the Pod's volumes if the last mount() has failed, because another mount() may succeed now. */
  onRetry?(podUid: string): void;
}

interface MountedPod extends PodVolumes {
  /** From fileSourceKey(). */
  shows: ReadonlySet<string>;
  failed: boolean;
  /** When to replace the first token or to retry a failed update, in milliseconds since the epoch; Infinity if never. */
  refreshAt: number;
}

export function createMountedPods(ports: MountedPodsPorts): MountedPods {
  const { log, timers, signal, operations, objects } = ports;
  const mounted = new Map<string, MountedPod>();

  const refreshes = createWorkQueue({ name: 'volumes', process: refresh, log, timers, signal });
  const timer = createRefreshTimer(mounted, timers, signal, refreshes.add);

  /** The queue limits how many Pods are updated at a time, and combines changes that arrive together. */
  async function refresh(uid: string): Promise<void> {
    const underWay = operations.pending(uid);
    if (underWay === undefined) return operations.run(uid, () => rewriteObjects(uid));
    // The operation under way may include a long pull, so process other Pods in the meantime.
    void underWay.then(() => refreshes.add(uid));
  }

  async function rewriteObjects(uid: string): Promise<void> {
    const entry = mounted.get(uid);
    if (entry === undefined) return;
    if (entry.failed) return ports.onRetry?.(uid);
    try {
      timer.set(entry, await setUpVolumes(entry, showsObjects, ports, signal));
    } catch (error) {
      if (!signal.aborted) timer.set(entry, reportStale(entry.pod, error as Error, ports));
    }
  }

  return {
    async mount(pod, abort) {
      const uid = uidOf(pod);
      // Register the Pod before its objects are read, so that no change of an object after its read is missed.
      const entry = entryOf(pod, mounted.get(uid)?.keeps);
      mounted.set(uid, entry);
      objects.follow(ownerOf(uid), entry.shows);
      try {
        timer.set(entry, await setUpVolumes(entry, () => true, ports, abort));
      } catch (error) {
        entry.failed = true;
        throw error;
      }
    },
    update(pod) {
      const uid = uidOf(pod);
      const entry = mounted.get(uid);
      if (entry === undefined) return;
      const { pod: before } = entry;
      entry.pod = pod;
      if (!entry.failed && showsChange(before, pod, downwardFacts(ports))) refreshes.add(uid);
    },
    async rewrite(pod, abort) {
      const entry = mounted.get(uidOf(pod));
      if (entry === undefined) throw new Error('the volumes of the Pod are not mounted');
      entry.pod = pod;
      const { refreshAt: before } = entry;
      // Keep an earlier refreshAt, because the volumes that rewrite() leaves unchanged may contain tokens.
      timer.set(entry, Math.min(before, await setUpVolumes(entry, showsPod, ports, abort)));
    },
    objectChanged(key) {
      for (const [uid, { shows }] of mounted) if (shows.has(key)) refreshes.add(uid);
    },
    forget(uid) {
      mounted.delete(uid);
      objects.unfollow(ownerOf(uid));
      timer.update();
    },
    waitingForClaims: () =>
      [...mounted].filter(([, { pod, failed }]) => failed && claimNamesOf(pod).length > 0).map(([uid]) => uid),
  };
}

const ownerOf = (uid: string): string => `volumes/${uid}`;

const entryOf = (pod: Pod, keeps: MountedPod['keeps'] = { tokens: new Map(), room: shownRoom() }): MountedPod => ({
  pod,
  shows: shownObjects(pod),
  failed: false,
  refreshAt: Number.POSITIVE_INFINITY,
  keeps,
});

interface RefreshTimer {
  set(entry: MountedPod, refreshAt: number): void;
  update(): void;
}

/**
 * One timer for all Pods calls `refresh` at each Pod's refreshAt, and then every RETRY_MILLIS until set() is called for the Pod or the Pod
 * is removed from `mounted`.
 */
function createRefreshTimer(
  mounted: ReadonlyMap<string, MountedPod>,
  timers: Timers,
  signal: AbortSignal,
  refresh: (uid: string) => void,
): RefreshTimer {
  let armed: { timer: Timer; at: number } | undefined;
  const update = (): void => {
    const at = Math.min(...[...mounted.values()].map(({ refreshAt }) => refreshAt));
    if (armed?.at === at || signal.aborted) return;
    armed?.timer.cancel();
    armed = at === Number.POSITIVE_INFINITY ? undefined : { at, timer: timers.at(at, refreshDue) };
  };
  const refreshDue = (): void => {
    armed = undefined;
    for (const [uid, entry] of mounted) {
      if (entry.refreshAt > timers.now()) continue;
      entry.refreshAt = timers.now() + RETRY_MILLIS;
      refresh(uid);
    }
    update();
  };
  onAbort(signal, () => armed?.timer.cancel());
  return {
    set(entry, refreshAt) {
      entry.refreshAt = refreshAt;
      update();
    },
    update,
  };
}
