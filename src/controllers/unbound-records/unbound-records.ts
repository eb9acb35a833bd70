/**
 * Writes the records of Pods that are deleted before they are bound, because no node agent writes these records.
 *
 * Reads: pods. Writes: podrecords (create), one for each of these Pods after the Pod has been removed from the API.
 */
import type { Pod, PodRecord, PodTransition } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../../api/resources.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import { formatMicroTime, type Millis, parseTime } from '../../machinery/time.ts';
import type { ControllerOptions } from '../controller.ts';

export async function startUnboundRecords({
  client,
  informers,
  timers,
  log,
  signal,
}: ControllerOptions): Promise<void> {
  const records = client.resource<PodRecord>(POD_RECORDS);
  /** The records that are not stored yet, by name. A crash of the engine loses them. */
  const unwritten = new Map<string, PodRecord>();
  const queue = createWorkQueue({ name: 'unbound-records', process: write, log, timers, signal });
  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    {
      deleted(pod) {
        if (pod.spec?.nodeName) return;
        const record = recordOf(pod, timers.now());
        unwritten.set(record.metadata.name, record);
        queue.add(record.metadata.name);
      },
    },
  );

  async function write(name: string): Promise<void> {
    const record = unwritten.get(name);
    if (record === undefined) return;
    try {
      await records.create(record);
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error;
    }
    unwritten.delete(name);
  }
  await pods.synced;
}

/** src/lifecycle/report.ts lists the types of steps. */
function recordOf({ metadata, status }: Pod, now: Millis): PodRecord {
  const { name: podName, namespace, uid: podUID = '' } = metadata;
  const transitions: PodTransition[] = [];
  const addStep = (type: string, at: Millis | undefined, details: Partial<PodTransition> = {}): void => {
    if (at !== undefined) transitions.push({ key: type, at: formatMicroTime(at), type, ...details });
  };
  addStep('Created', parseTime(metadata.creationTimestamp));
  const unscheduled = status?.conditions?.find((each) => each.type === 'PodScheduled' && each.status === 'False');
  if (unscheduled !== undefined) {
    const { reason, message, lastTransitionTime } = unscheduled;
    addStep('NotScheduled', parseTime(lastTransitionTime) ?? now, {
      ...(reason && { reason }),
      ...(message && { message }),
    });
  }
  addStep('Gone', now);
  return {
    apiVersion: `${POD_RECORDS.group}/${POD_RECORDS.version}`,
    kind: 'PodRecord',
    metadata: { name: recordName(podUID, 0), namespace },
    podName,
    podUID,
    transitions,
  };
}
