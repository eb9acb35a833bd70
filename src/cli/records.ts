/** Finds the PodRecords with the life of a Pod that exists or was deleted. */

import { mirroredUid } from '../api/core/v1/pod/mirror.ts';
import type { Pod, PodRecord } from '../api/generated/types.ts';
import { POD_RECORDS, recordName, shortUid } from '../api/lifepod.io/v1/pod-record/index.ts';
import { lastLife, livesIn, partNumber } from '../api/lifepod.io/v1/pod-record/lives.ts';
import { PODS } from '../api/resources.ts';
import type { Client } from '../client/client.ts';
import type { Transition } from '../lifecycle/types.ts';
import { uidOf } from '../machinery/meta.ts';
import { isApiError } from '../machinery/status.ts';
import { fromApi } from '../node/record/step-conversion.ts';
import { UserError } from '../platform/files.ts';
import type { ListOptions } from '../ports/backend.ts';
import type { Hints } from './hints.ts';
import { mayNotReadPods, mayNotReadRecords } from './refusals.ts';
import { missingPod } from './workloads/missing-pod.ts';

const PAGE_SIZE = 500;

export interface PodLife {
  name: string;
  namespace: string;
  /** The UID in the record. For a static Pod this is the UID of the static Pod, not of its mirror Pod. */
  uid: string;
  pod?: Pod;
  records: PodRecord[];
  /** Whether `records` is empty because the user may not read records. */
  isUnread?: true;
}

/** Returns the steps in all PodRecords of one life, in the order in which they were recorded. */
export const transitionsOf = (records: readonly PodRecord[]): Transition[] =>
  [...records].sort((a, b) => partNumber(a) - partNumber(b)).flatMap(({ transitions }) => transitions.map(fromApi));

export const podName = (given: string): string => given.replace(/^(pods?|po)\//i, '');

/** Returns the name of the Pod in POD or pod/POD. Throws a UserError for any other text. */
export function requirePodName(given: string): string {
  const name = podName(given);
  if (name !== '' && !name.includes('/')) return name;
  throw new UserError(`${JSON.stringify(given)} is not a Pod: give POD or pod/POD`);
}

/**
 * Finds the life of a Pod by its name in the namespace, else by at least the first 4 characters of its UID in any namespace. Prefers the
 * existing Pod, then the one whose record has the newest step. Rejects with a UserError if no Pod or several UIDs match, if `reference` is
 * not the name of a Pod, or if the user may not read Pods or, for a Pod that does not exist, its records.
 */
export async function findLife(client: Client, namespace: string, reference: string, hints: Hints): Promise<PodLife> {
  const name = requirePodName(reference);
  const pod = await client
    .resource<Pod>(PODS)
    .get(name, namespace)
    .catch(unlessMissing)
    .catch(unlessRefused(() => mayNotReadPods(namespace)));
  if (pod !== undefined) return lifeOf(client, pod);
  const ofName = newest(
    await listRecords(client, { namespace, fieldSelector: `podName=${name}` }).catch(
      unlessRefused(() => mayNotReadRecords(namespace, `no Pod ${name} in namespace ${namespace}`)),
    ),
  );
  if (ofName !== undefined) return ofName;
  const ofUid = /^[0-9a-f][0-9a-f-]{3,35}$/.test(name) ? await findByUid(client, namespace, name) : undefined;
  if (ofUid !== undefined) return ofUid;
  throw await missingPod(client, namespace, name, hints);
}

/** Reads the records of an existing Pod. `records` is empty if no step has been recorded yet, or if the user may not read records. */
export async function lifeOf(client: Client, pod: Pod): Promise<PodLife> {
  const { name, namespace = 'default', uid: ownUid = '' } = pod.metadata;
  const uid = mirroredUid(pod) ?? ownUid;
  const life = { name, namespace, uid, pod };
  try {
    return { ...life, records: lastLife(await recordsOf(client, pod, { namespace, uid })) };
  } catch (error) {
    if (!isApiError(error, 'Forbidden')) throw error;
    return { ...life, records: [], isUnread: true };
  }
}

async function recordsOf(
  client: Client,
  pod: Pod,
  { namespace, uid }: { namespace: string; uid: string },
): Promise<PodRecord[]> {
  const records = client.resource<PodRecord>(POD_RECORDS);
  const found: PodRecord[] = [];
  for (;;) {
    const record = await records.get(recordName(uid, found.length), namespace).catch(unlessMissing);
    if (record === undefined) break;
    found.push(record);
  }
  // The first PodRecord of the life may have been deleted to limit the size of all records.
  const started = pod.status?.startTime !== undefined;
  return found.length > 0 || !started ? found : listRecords(client, { namespace, fieldSelector: `podUID=${uid}` });
}

/**
 * Resolves with the lives of all Pods that have had the name in the namespace and still have a record, in the order of their beginning. The
 * existing Pod is included even without a record.
 */
export async function livesOf(client: Client, { name, namespace }: PodLife): Promise<PodLife[]> {
  const pod = await client.resource<Pod>(PODS).get(name, namespace).catch(unlessMissing);
  const living = pod === undefined ? [] : [await lifeOf(client, pod)];
  const records = await listRecords(client, { namespace, fieldSelector: `podName=${name}` });
  const gone = [...Map.groupBy(records, ({ podUID }) => podUID)].flatMap(([uid, parts]): PodLife[] => {
    const lives = livesIn(parts);
    const isLiving = living.some((life) => life.uid === uid);
    return (isLiving ? lives.slice(0, -1) : lives).map((each) => ({ name, namespace, uid, records: each }));
  });
  const began = (life: PodLife): number =>
    Math.min(...transitionsOf(life.records).map(({ at }) => at), Number.POSITIVE_INFINITY);
  return [...gone, ...living].sort((a, b) => began(a) - began(b));
}

/**
 * Searches all namespaces; only `namespace` if the user may not read the others. Resolves with undefined if no UID begins with `prefix`,
 * and rejects with a UserError if several do.
 */
async function findByUid(client: Client, namespace: string, prefix: string): Promise<PodLife | undefined> {
  const within = async <T>(list: (options: ListOptions) => Promise<T>): Promise<T> =>
    list({}).catch((error: unknown) => {
      if (!isApiError(error, 'Forbidden')) throw error;
      return list({ namespace });
    });
  const pods = await within((options) => client.resource<Pod>(PODS).list(options));
  const living = pods.items.filter(({ metadata }) => metadata.uid?.startsWith(prefix));
  const records = (await within((options) => listRecords(client, options))).filter(({ podUID }) =>
    podUID.startsWith(prefix),
  );
  const uids = new Set([...living.map(uidOf), ...records.map(({ podUID }) => podUID)]);
  if (uids.size > 1) {
    const some = [...uids].slice(0, 5).join(', ');
    throw new UserError(`${uids.size} Pods have a UID that begins with ${prefix} (${some}): give more of the UID`);
  }
  const [pod] = living;
  return pod === undefined ? newest(records) : lifeOf(client, pod);
}

function newest(records: readonly PodRecord[]): PodLife | undefined {
  const last = records.reduce<PodRecord | undefined>(
    (best, each) => (best === undefined || lastAt(each) > lastAt(best) ? each : best),
    undefined,
  );
  if (last === undefined) return undefined;
  const { podName: name, podUID: uid, metadata } = last;
  const own = records.filter(({ podUID }) => podUID === uid);
  return { name, namespace: metadata.namespace ?? '', uid, records: lastLife(own) };
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

const unlessRefused =
  (refusal: () => UserError) =>
  (error: unknown): never => {
    throw isApiError(error, 'Forbidden') ? refusal() : error;
  };

export const titleOf = ({ name, namespace, uid }: PodLife): string => `${name} (${namespace}, UID ${shortUid(uid)})`;
