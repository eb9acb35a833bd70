/**
 * Ends the records that no agent has ended: of Pods that went while none was there, or in the moment in which one died. What
 * is left of such a Pod in the runtime is known by then, and tells of its own end.
 */

import { mirroredUid } from '../../api/core/v1/pod/mirror.ts';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Log } from '../../platform/platform.ts';

const PAGE_SIZE = 100;
const OF_AN_END: ReadonlySet<string> = new Set(['Scheduled', 'Removed', 'Gone']);

/** The steps of a Pod of which nothing is left, on its node and in the API. The agent that saw Removed may have died before it was written. */
export const lastSteps = (at: Millis): Transition[] => ['Removed', 'Gone'].map((type) => ({ key: type, at, type }));

export interface CloseRecordsOptions {
  client: Client;
  log: Log;
  signal: AbortSignal;
  /** Something of the Pod is on this node. */
  isKnown(uid: string): boolean;
  /** Records that nothing is left of the Pod, where its record does not tell it. */
  gone(pod: Pod): void;
}

/** Resolves when all of them were looked at. */
export async function closeRecords({ client, log, signal, isKnown, gone }: CloseRecordsOptions): Promise<void> {
  const pods = client.resource<Pod>(PODS);
  /** By UID: of each record only whose it is, and which of the steps it has that tell whether it has its end. */
  const lives = new Map<string, { pod: Pod; steps: Set<string> }>();
  const look = ({ metadata, podName, podUID, transitions }: PodRecord): void => {
    const { namespace } = metadata;
    const pod = { name: podName, uid: podUID, ...(namespace && { namespace }) };
    const steps = lives.get(podUID)?.steps ?? new Set();
    for (const { type } of transitions) if (OF_AN_END.has(type)) steps.add(type);
    lives.set(podUID, { pod: { apiVersion: 'v1', kind: 'Pod', metadata: pod }, steps });
  };
  /** Of a Pod that never had a node nothing is removed. */
  const isClosed = (steps: ReadonlySet<string>): boolean =>
    steps.has('Gone') && (steps.has('Removed') || !steps.has('Scheduled'));
  const isThere = async ({ metadata: { name, namespace, uid } }: Pod): Promise<boolean> => {
    try {
      const found = await pods.get(name, namespace);
      return found.metadata.uid === uid || mirroredUid(found) === uid;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return false;
      throw error;
    }
  };
  try {
    const records = client.resource<PodRecord>(POD_RECORDS);
    for (let page = await records.list({ limit: PAGE_SIZE }); ; ) {
      page.items.forEach(look);
      if (!page.metadata.continue || signal.aborted) break;
      page = await records.list({ limit: PAGE_SIZE, continue: page.metadata.continue });
    }
    for (const [uid, { pod, steps }] of lives)
      if (!isClosed(steps) && !isKnown(uid) && !(await isThere(pod)) && !signal.aborted) gone(pod);
  } catch (error) {
    if (!signal.aborted) log.warn('records of Pods that are gone stay open', { error: (error as Error).message });
  }
}
