/** Invariant: parts are written in the order of their numbers, and only the newest one is changed. */

import { isStaticPod } from '../../api/core/v1/pod/mirror.ts';
import type { Pod, PodRecord, PodTransition } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { areTwoLives, creationIn, partNumber } from '../../api/lifepod.io/v1/pod-record/lives.ts';
import type { ResourceClient } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import { createRecordedSteps, type RecordedSteps } from './recorded-steps.ts';
import { fromApi } from './step-conversion.ts';

/** The maximum size of a part with several steps, in characters. It bounds the cost of a write, which contains a whole part. */
const PART_BYTES = 16 * 1024;

export interface RecordPart {
  number: number;
  steps: PodTransition[];
  /** The approximate size of the steps as JSON, in characters. */
  bytes: number;
  exists: boolean;
}

export const emptyPart = (number: number): RecordPart => partOf(number, [], false);

const partOf = (number: number, steps: readonly PodTransition[], exists: boolean): RecordPart => ({
  number,
  steps: [...steps],
  bytes: JSON.stringify(steps).length,
  exists,
});

/** Moves steps from the start of the list to the part until the part is full. An empty part takes at least one step. */
export function fill(part: RecordPart, steps: PodTransition[]): void {
  for (let next = steps[0]; next !== undefined; next = steps[0]) {
    const bytes = JSON.stringify(next).length;
    if (part.steps.length > 0 && part.bytes + bytes > PART_BYTES) return;
    part.steps.push(next);
    part.bytes += bytes;
    steps.shift();
  }
}

/**
 * Resolves to the steps of the Pod's life that were recorded before and the newest part, or an empty part if there are none. For a Pod that
 * was created after the recorded ones with its UID, this is the part after theirs.
 */
export async function readRecord(
  records: ResourceClient<PodRecord>,
  nodeName: string,
  pod: Pod,
): Promise<{ recorded: RecordedSteps; part: RecordPart }> {
  let recorded = createRecordedSteps();
  let newest = emptyPart(0);
  let created: string | undefined;
  for await (const [number, record] of partsOf(records, nodeName, pod)) {
    const next = creationIn(record);
    if (areTwoLives(created, next)) recorded = createRecordedSteps();
    created = next ?? created;
    recorded.fresh(record.transitions.map(fromApi));
    newest = partOf(number, record.transitions, true);
  }
  if (areTwoLives(created, pod.metadata.creationTimestamp))
    return { recorded: createRecordedSteps(), part: emptyPart(newest.number + 1) };
  return { recorded, part: newest };
}

async function* partsOf(
  records: ResourceClient<PodRecord>,
  nodeName: string,
  pod: Pod,
): AsyncGenerator<[number, PodRecord]> {
  const { namespace, uid = '', creationTimestamp } = pod.metadata;
  for (let number = 0; ; number++) {
    const part = await records.get(recordName(uid, number), namespace).catch(unlessMissing);
    if (part !== undefined) {
      yield [number, part];
      continue;
    }
    // If the Pod's object is known and its status has no start time, no agent has started the Pod, so its record has no later parts. Those
    // of a static Pod may be of its earlier lives.
    const isNew = creationTimestamp !== undefined && pod.status?.startTime === undefined && !isStaticPod(pod);
    if (number > 0 || isNew) return;
    // The first parts of a long record may have been deleted.
    const { items } = await records.list({ namespace, fieldSelector: `podUID=${uid},nodeName=${nodeName}` });
    const parts = items.map((item): [number, PodRecord] => [partNumber(item), item]);
    yield* parts.sort(([a], [b]) => a - b);
    return;
  }
}

/** If `part.exists` is wrong, corrects it and tries again. Other failed requests are not retried. */
export async function writePart(
  records: ResourceClient<PodRecord>,
  nodeName: string,
  pod: Pod,
  part: RecordPart,
): Promise<void> {
  const { name: podName, namespace, uid: podUID = '' } = pod.metadata;
  const record: PodRecord = {
    apiVersion: `${POD_RECORDS.group}/${POD_RECORDS.version}`,
    kind: 'PodRecord',
    metadata: { name: recordName(podUID, part.number), namespace },
    podName,
    podUID,
    nodeName,
    transitions: part.steps,
  };
  try {
    await (part.exists ? records.update(record) : records.create(record));
    part.exists = true;
  } catch (error) {
    if (!isApiError(error, part.exists ? 'NotFound' : 'AlreadyExists')) throw error;
    // A controller has deleted the part in the meantime, or an earlier request whose response was lost has created it.
    part.exists = !part.exists;
    await writePart(records, nodeName, pod, part);
  }
}

function unlessMissing(error: unknown): undefined {
  if (isApiError(error, 'NotFound')) return undefined;
  throw error;
}
