/**
 * Ends the records that no agent has ended: of Pods that went while none was there, or in the moment in which one died. What
 * is left of such a Pod in the runtime is known by then, and tells of its own end.
 */
import { mirroredUid } from '../../api/core/v1/pod/mirror.ts';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import type { Client } from '../../client/client.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Log } from '../../platform/platform.ts';

const PAGE_SIZE = 100;

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
  const pods = client.resource<Pod>({ group: '', version: 'v1', resource: 'pods' });
  /** By UID, those without an end so far: only who they are of is held of them. */
  const open = new Map<string, Pod>();
  const closed = new Set<string>();
  const look = ({ metadata, podName, podUID, transitions }: PodRecord): void => {
    if (transitions.some(({ type }) => type === 'Gone')) closed.add(podUID);
    const { namespace } = metadata;
    const pod = { name: podName, uid: podUID, ...(namespace && { namespace }) };
    open.set(podUID, { apiVersion: 'v1', kind: 'Pod', metadata: pod });
  };
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
    for (const [uid, pod] of open)
      if (!closed.has(uid) && !isKnown(uid) && !(await isThere(pod)) && !signal.aborted) gone(pod);
  } catch (error) {
    if (!signal.aborted) log.warn('records of Pods that are gone stay open', { error: (error as Error).message });
  }
}
