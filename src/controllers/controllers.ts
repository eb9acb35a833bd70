/**
 * The controllers: loops that bring the objects of the API to where they should be. Each has a folder, whose main
 * file declares what it reads and what it writes.
 *
 * Boundary: only the client; a controller knows no other and no node.
 * Invariant: every step is made from the newest state and may be repeated, so a crash between two loses nothing.
 */
import { kinds } from '../api/kinds.ts';
import type { ControllerOptions } from './controller.ts';
import { startEventsTtl } from './events-ttl/events-ttl.ts';
import { startNamespaceController } from './namespace/namespace.ts';
import { namespacedResources } from './namespace/namespaced-resources.ts';
import { startNodeTaints } from './node-taints/node-taints.ts';
import type { VolumeFolders } from './persistent-volumes/local-path.ts';
import { startPersistentVolumes } from './persistent-volumes/persistent-volumes.ts';
import { startPodGc } from './pod-gc/pod-gc.ts';
import { type RecordLimits, startRecordLimits } from './record-limits/record-limits.ts';
import { startRootCaPublisher } from './root-ca/root-ca.ts';
import { startServiceAccountController } from './service-account/service-account.ts';
import { startSystemObjects } from './system-objects/system-objects.ts';
import { startTaintEviction } from './taint-eviction/taint-eviction.ts';
import { startUnboundRecords } from './unbound-records/unbound-records.ts';

/**
 * Resolves once all of them but record-limits have looked at everything that was there; they go on until the signal
 * aborts.
 */
export async function startControllers(
  options: ControllerOptions & {
    caPem: string;
    /** Makes the system's objects that are missing. */
    bootstrap: () => Promise<void>;
    recordLimits: RecordLimits;
    folders: VolumeFolders;
    /** So many Pods that have ended stay; 0: all. Absent: DEFAULT_TERMINATED_PODS. */
    terminatedPods?: number;
  },
): Promise<void> {
  // There may be much to look at, and nobody waits for what it does.
  void startRecordLimits({ ...options, limits: options.recordLimits });
  await Promise.all([
    startNamespaceController({ ...options, resources: namespacedResources(kinds) }),
    startServiceAccountController(options),
    startRootCaPublisher(options),
    startSystemObjects(options),
    startEventsTtl(options),
    startPodGc(options),
    startPersistentVolumes(options),
    startNodeTaints(options),
    startTaintEviction(options),
    startUnboundRecords(options),
  ]);
}
