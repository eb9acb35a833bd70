import { mirroredUid } from '../../api/core/v1/pod/mirror.ts';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { lastLife } from '../../api/lifepod.io/v1/pod-record/lives.ts';
import type { Client } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import type { Transition } from '../../lifecycle/types.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Log } from '../../platform/platform.ts';

const PAGE_SIZE = 100;
const RELEVANT_STEPS: ReadonlySet<string> = new Set(['Created', 'Scheduled', 'Removed', 'Gone']);

/** The last steps of a Pod that no longer exists. They include Removed, since an agent may have died before it wrote this step. */
export const lastSteps = (at: Millis): Transition[] => ['Removed', 'Gone'].map((type) => ({ key: type, at, type }));

/** Whether the Pod, or the mirror Pod of a static Pod, is among `pods`. */
export function isAmong(pods: Pick<Informer<Pod>, 'get'>, { metadata: { namespace, name, uid } }: Pod): boolean {
  const found = pods.get(namespace, name);
  return found !== undefined && (found.metadata.uid === uid || mirroredUid(found) === uid);
}

export interface CloseRecordsOptions {
  client: Client;
  nodeName: string;
  log: Log;
  signal: AbortSignal;
  /** Whether the Pod has a worker on this node, or exists in the API. */
  isKnown(pod: Pod): boolean;
  /**
   * Called with each unknown Pod of this node whose record lacks the last steps, because the Pod was removed while no agent ran, or because
   * the agent died.
   */
  gone(pod: Pod): void;
}

/**
 * Call this function after all Pods that still exist in the runtime have workers. Resolves when the check has ended; a failure is logged.
 */
export async function closeRecords(options: CloseRecordsOptions): Promise<void> {
  const { client, nodeName, log, signal, isKnown, gone } = options;
  /** The parts of each record, with only those RELEVANT_STEPS that they contain, by the Pod's UID. */
  const parts = new Map<string, PodRecord[]>();
  const collect = (part: PodRecord): void => {
    const transitions = part.transitions.filter(({ type }) => RELEVANT_STEPS.has(type));
    parts.set(part.podUID, [...(parts.get(part.podUID) ?? []), { ...part, transitions }]);
  };
  const podOf = ({ metadata: { namespace }, podName: name, podUID: uid }: PodRecord): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, uid, ...(namespace && { namespace }) },
  });
  /** The record of a Pod that was never scheduled needs no step Removed. */
  const isClosed = (steps: ReadonlySet<string>): boolean =>
    steps.has('Gone') && (steps.has('Removed') || !steps.has('Scheduled'));
  try {
    const records = client.resource<PodRecord>(POD_RECORDS);
    const query = { fieldSelector: `nodeName=${nodeName}`, limit: PAGE_SIZE };
    for (let page = await records.list(query); ; ) {
      page.items.forEach(collect);
      if (!page.metadata.continue || signal.aborted) break;
      page = await records.list({ ...query, continue: page.metadata.continue });
    }
    for (const life of [...parts.values()].map(lastLife)) {
      const steps = new Set(life.flatMap(({ transitions }) => transitions.map(({ type }) => type)));
      const pod = podOf(life[0] as PodRecord);
      if (!isClosed(steps) && !isKnown(pod) && !signal.aborted) gone(pod);
    }
  } catch (error) {
    if (!signal.aborted)
      log.warn('cannot complete the records of Pods that no longer exist', { error: (error as Error).message });
  }
}
