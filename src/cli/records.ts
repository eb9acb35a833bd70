/** Finds the record of a Pod's life: of one that is there, or of one that is gone. */

import { mirroredUid } from '../api/core/v1/pod/mirror.ts';
import type { Pod, PodRecord } from '../api/generated/types.ts';
import { POD_RECORDS, recordName, shortUid } from '../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../api/resources.ts';
import type { Client } from '../client/client.ts';
import type { Transition } from '../lifecycle/types.ts';
import { isApiError } from '../machinery/status.ts';
import { fromApi } from '../node/record/step-conversion.ts';
import { UserError } from '../platform/files.ts';
import type { ListOptions } from '../ports/backend.ts';

const PAGE_SIZE = 500;

export interface PodLife {
  name: string;
  namespace: string;
  /** Of the record: a static Pod's own, not its mirror's. */
  uid: string;
  /** Absent: it is gone. */
  pod?: Pod;
  records: PodRecord[];
}

/** The steps, in the order in which they were recorded. */
export const transitionsOf = (records: readonly PodRecord[]): Transition[] =>
  [...records].sort((a, b) => partOf(a) - partOf(b)).flatMap(({ transitions }) => transitions.map(fromApi));

const partOf = ({ metadata, podUID }: PodRecord): number => Number(metadata.name.slice(podUID.length + 1));

/** `pod/NAME` or `NAME`. */
export const podName = (given: string): string => given.replace(/^(pods?|po)\//, '');

/**
 * By name, the Pod that is there, or the one of that name that was there last; or by UID, of which the beginning is enough.
 * Rejects with a UserError where there is none, or more than one.
 */
export async function findLife(client: Client, namespace: string, given: string): Promise<PodLife> {
  const name = podName(given);
  const pod = await client.resource<Pod>(PODS).get(name, namespace).catch(unlessMissing);
  if (pod !== undefined) return lifeOf(client, pod);
  const ofName = newest(await listRecords(client, { namespace, fieldSelector: `podName=${name}` }));
  if (ofName !== undefined) return ofName;
  const ofUid = /^[0-9a-f][0-9a-f-]{3,35}$/.test(name) ? await findByUid(client, name) : undefined;
  if (ofUid !== undefined) return ofUid;
  throw new UserError(
    `no Pod ${name} in namespace ${namespace}, nor a record of one: 'kubectl get pods -A' shows what there is, ` +
      `'kubectl get podrecords -A' what is recorded; records are kept for a time after their Pod (lifepod up --record-age)`,
  );
}

/** Of a Pod that is there; its record may have no steps yet. */
export async function lifeOf(client: Client, pod: Pod): Promise<PodLife> {
  const { name, namespace = 'default', uid: ownUid = '' } = pod.metadata;
  const uid = mirroredUid(pod) ?? ownUid;
  const records = client.resource<PodRecord>(POD_RECORDS);
  const found: PodRecord[] = [];
  for (;;) {
    const record = await records.get(recordName(uid, found.length), namespace).catch(unlessMissing);
    if (record === undefined) break;
    found.push(record);
  }
  // Of a long life the first parts may be gone.
  const started = pod.status?.startTime !== undefined;
  const all =
    found.length > 0 || !started ? found : await listRecords(client, { namespace, fieldSelector: `podUID=${uid}` });
  return { name, namespace, uid, pod, records: all };
}

async function findByUid(client: Client, prefix: string): Promise<PodLife | undefined> {
  const pods = await client.resource<Pod>(PODS).list();
  const living = pods.items.filter(({ metadata }) => metadata.uid?.startsWith(prefix));
  const records = (await listRecords(client, {})).filter(({ podUID }) => podUID.startsWith(prefix));
  const uids = new Set([...living.map(({ metadata }) => metadata.uid ?? ''), ...records.map(({ podUID }) => podUID)]);
  if (uids.size > 1) {
    const some = [...uids].slice(0, 5).join(', ');
    throw new UserError(`${uids.size} Pods have a UID that begins with ${prefix}: ${some}: give more of it`);
  }
  const [pod] = living;
  return pod === undefined ? newest(records) : lifeOf(client, pod);
}

/** The life that has the newest step. */
function newest(records: readonly PodRecord[]): PodLife | undefined {
  const last = records.reduce<PodRecord | undefined>(
    (best, each) => (best === undefined || lastAt(each) > lastAt(best) ? each : best),
    undefined,
  );
  if (last === undefined) return undefined;
  const { podName: name, podUID: uid, metadata } = last;
  return { name, namespace: metadata.namespace ?? '', uid, records: records.filter(({ podUID }) => podUID === uid) };
}

const lastAt = ({ transitions }: PodRecord): string => transitions.at(-1)?.at ?? '';

async function listRecords(client: Client, options: ListOptions): Promise<PodRecord[]> {
  const records = client.resource<PodRecord>(POD_RECORDS);
  const found: PodRecord[] = [];
  let page = await records.list({ ...options, limit: PAGE_SIZE });
  for (;;) {
    found.push(...page.items);
    if (!page.metadata.continue) return found;
    page = await records.list({ ...options, limit: PAGE_SIZE, continue: page.metadata.continue });
  }
}

function unlessMissing(error: unknown): undefined {
  if (isApiError(error, 'NotFound')) return undefined;
  throw error;
}

export const titleOf = ({ name, namespace, uid }: PodLife): string => `${name} (${namespace}, UID ${shortUid(uid)})`;
