/**
 * Reads the Pods of an API server, and finds those that are not well.
 *
 * Reads Pods, the ConfigMaps and Secrets that defer containers need, and, if some Pods may not be well, also Jobs, warning Events and
 * records. If the user may not read these, the result contains a sentence about that instead.
 */
import { mirroredUid } from '../../api/core/v1/pod/mirror.ts';
import type { CoreV1Event, Job, Node, Pod } from '../../api/generated/types.ts';
import { EVENTS, JOBS, PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Clock } from '../../platform/platform.ts';
import type { Hints } from '../hints.ts';
import { lifeOf, transitionsOf } from '../records.ts';
import { mayNotReadPods } from '../refusals.ts';
import { type EngineStart, recentStart, unreportedNode } from '../service/engine-start.ts';
import { explain } from '../why/explain.ts';
import { unboundClaimsReader } from '../why/needs/read-claims.ts';
import { entryNeedsReader } from '../why/needs/read-entry-needs.ts';
import { mayBeCut, rebootOf } from '../why/stops/reboot.ts';
import { controllerOf, type EntryNeed, type Living } from '../why/subject.ts';
import { eventsAbout } from '../workloads/events-about.ts';
import { lastFinished } from '../workloads/failed-jobs.ts';
import { missingNamespace } from '../workloads/missing-namespace.ts';
import { isJobFinished } from '../workloads/refused-pods.ts';
import { hasFailedLivenessProbe, mayFailAgain, type PodTrouble, podTrouble } from './pod-troubles.ts';

export interface UnwellPod extends PodTrouble {
  pod: Pod;
  sentence: string;
}

export interface PodReading {
  pods: Pod[];
  unwell: UnwellPod[];
  /** The namespace that was read; undefined for all namespaces. */
  namespace: string | undefined;
  unread: string[];
}

export interface ReadPodsOptions {
  client: Client;
  /** The namespace to read; undefined for all namespaces. */
  namespace: string | undefined;
  /** The namespace to read if the user may not read Pods in all namespaces. */
  ownNamespace: string;
  /** All Nodes; undefined if the user may not read Nodes. */
  nodes: readonly Node[] | undefined;
  /** The engine of this machine. */
  engine?: EngineStart | undefined;
  hints: Hints;
  /** Is read again after each answer of the API, because an answer may be slow, and contain times that are later than the request. */
  clock: Clock;
}

const PARALLEL_READS = 20;

export async function readPods(options: ReadPodsOptions): Promise<PodReading> {
  const { client } = options;
  const unread = new Set<string>();
  const { pods, namespace } = await listPods(options, unread);
  const listedAt = options.clock.now();
  const needsEvents = (pod: Pod): boolean => mayBeUnwell(pod, listedAt) || mayBeStopped(pod);
  const about = eventsAbout(pods.some(needsEvents) ? await warningsOfPods(client, namespace, unread) : []);
  const eventsOf = (pod: Pod): readonly CoreV1Event[] => about(pod, mirroredUid(pod));
  const needs = await entryNeedsByPod(client, pods, unread);
  const suspects = pods.filter(
    (pod) => mayBeUnwell(pod, listedAt) || needs.has(pod) || hasFailedLivenessProbe({ pod, events: eventsOf(pod) }),
  );
  const settled = await settledJobs(client, namespace, suspects, unread);
  const isReplaced = ({ metadata, status }: Pod): boolean =>
    metadata.deletionTimestamp === undefined && status?.phase === 'Failed';
  const doubtful = suspects.filter((pod) => !(isReplaced(pod) && settled.has(jobOf(pod) ?? '')));
  if (doubtful.length === 0) return { pods, unwell: [], namespace, unread: [...unread] };
  const rebootedAtOf = rebootReader(client);
  const unboundClaimsOf = unboundClaimsReader(client);
  const found = await inTurns(doubtful, async (pod) => {
    const [transitions, rebootedAt, unboundClaims] = await Promise.all([
      stepsOf(client, pod, unread),
      rebootedAtOf(pod),
      unboundClaimsOf(pod),
    ]);
    const entryNeeds = needs.get(pod);
    const read = { transitions, events: eventsOf(pod), otherPods: pods, rebootedAt, unboundClaims, entryNeeds };
    return unwellPod(pod, read, options);
  });
  return { pods, unwell: found.filter((each) => each !== undefined), namespace, unread: [...unread] };
}

async function inTurns<T>(pods: readonly Pod[], read: (pod: Pod) => Promise<T>): Promise<T[]> {
  const found: T[] = [];
  for (let from = 0; from < pods.length; from += PARALLEL_READS)
    found.push(...(await Promise.all(pods.slice(from, from + PARALLEL_READS).map(read))));
  return found;
}

/** Rejects with a UserError if the user may not read any Pods, or if the namespace does not exist. */
async function listPods({ client, namespace, ownNamespace, hints }: ReadPodsOptions, unread: Set<string>) {
  const list = async (within: string | undefined): Promise<Pod[]> =>
    (await client.resource<Pod>(PODS).list(within === undefined ? {} : { namespace: within })).items;
  const listOne = (one: string): Promise<Pod[]> =>
    list(one).catch((error: unknown) => {
      throw isApiError(error, 'Forbidden') ? mayNotReadPods(one) : error;
    });
  if (namespace !== undefined) {
    const pods = await listOne(namespace);
    // The API returns an empty list for a namespace that does not exist.
    const missing = pods.length === 0 ? await missingNamespace(client, namespace, hints) : undefined;
    if (missing !== undefined) throw missing;
    return { pods, namespace };
  }
  try {
    return { pods: await list(undefined), namespace };
  } catch (error) {
    if (!isApiError(error, 'Forbidden')) throw error;
    const pods = await listOne(ownNamespace);
    unread.add(`Pods of other namespaces than ${ownNamespace}: ${error.message}`);
    return { pods, namespace: ownNamespace };
  }
}

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true;

/** Returns false for a Pod whose status alone shows that the Pod is well. */
function mayBeUnwell(pod: Pod, now: Millis): boolean {
  const { metadata, status } = pod;
  if (status?.phase === 'Succeeded' && metadata.deletionTimestamp === undefined) return false;
  const all = [...(status?.deferContainerStatuses ?? []), ...(status?.ephemeralContainerStatuses ?? [])];
  if (!isReady(pod) || metadata.deletionTimestamp !== undefined) return true;
  const restartable = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return (
    all.some(({ state }) => state?.waiting !== undefined) || restartable.some((each) => mayFailAgain(pod, each, now))
  );
}

/** Returns whether a failed liveness probe may be stopping a container, which the status of a ready Pod does not show. */
const mayBeStopped = ({ spec, status }: Pod): boolean =>
  status?.phase === 'Running' &&
  [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].some(
    ({ livenessProbe }) => livenessProbe !== undefined,
  );

function unwellPod(
  pod: Pod,
  read: Pick<Living, 'transitions' | 'events' | 'otherPods' | 'rebootedAt' | 'unboundClaims' | 'entryNeeds'>,
  { nodes, engine, hints, clock }: ReadPodsOptions,
): UnwellPod | undefined {
  const { name, namespace = 'default' } = pod.metadata;
  // An explanation of an unscheduled Pod compares its requests with what all nodes have.
  const own = nodes?.filter((each) => !pod.spec?.nodeName || each.metadata.name === pod.spec.nodeName);
  const node = pod.spec?.nodeName ? own?.[0] : undefined;
  const unreported = node && engine && unreportedNode(node, engine);
  const subject = {
    name,
    namespace,
    pod,
    node,
    nodes: own,
    unreported,
    engineStartedAt: node && engine && recentStart(node, engine),
    lastLines: {},
    hints,
    now: clock.now(),
    ...read,
  };
  const trouble = podTrouble(subject);
  return trouble && { ...trouble, pod, sentence: explain(subject).sentence };
}

/**
 * Resolves with what the defer containers of ready Pods need and what does not exist, only for Pods that lack something. A Pod that is not
 * ready has another trouble, or is being created together with these objects.
 */
async function entryNeedsByPod(
  client: Client,
  pods: readonly Pod[],
  unread: Set<string>,
): Promise<ReadonlyMap<Pod, EntryNeed[]>> {
  const needsOf = entryNeedsReader(client, (kind) =>
    unread.add(
      `${kind}s: this user may not read some that defer containers need: if they are missing, this is not reported`,
    ),
  );
  const able = pods.filter((pod) => pod.spec?.deferContainers !== undefined && isReady(pod));
  const found = await inTurns(able, async (pod) => [pod, await needsOf(pod)] as const);
  return new Map(found.filter(([, needs]) => needs.length > 0));
}

const controllerUid = (kind: string, object: KubeObject): string | undefined => {
  const controller = controllerOf(object);
  return controller?.kind === kind ? controller.uid : undefined;
};
const jobOf = (pod: Pod): string | undefined => controllerUid('Job', pod);
/** An object may name an owner in another namespace, which does not own it. */
const cronJobOf = (job: Job): string | undefined => {
  const uid = controllerUid('CronJob', job);
  return uid && `${job.metadata.namespace}/${uid}`;
};

/**
 * Resolves with the UIDs of complete Jobs, whose failed Pods are no trouble because other Pods have succeeded, and of the Jobs of CronJobs
 * after which another Job of the same CronJob has finished.
 */
async function settledJobs(
  client: Client,
  namespace: string | undefined,
  pods: readonly Pod[],
  unread: Set<string>,
): Promise<ReadonlySet<string>> {
  if (!pods.some((pod) => pod.status?.phase === 'Failed' && jobOf(pod) !== undefined)) return new Set();
  const { items } = await client
    .resource<Job>(JOBS)
    .list(namespace === undefined ? {} : { namespace })
    .catch((error: unknown) => {
      if (!isApiError(error, 'Forbidden')) throw error;
      unread.add(`Jobs: ${error.message}: failed Pods of complete Jobs count as unhealthy`);
      return { items: [] };
    });
  const isComplete = ({ status }: Job): boolean =>
    status?.conditions?.some((each) => each.type === 'Complete' && each.status === 'True') === true;
  const earlier = [...Map.groupBy(items, cronJobOf)].flatMap(([cronJob, jobs]) => {
    const last = lastFinished(jobs);
    return cronJob === undefined ? [] : jobs.filter((job) => job !== last && isJobFinished(job));
  });
  return new Set([...items.filter(isComplete), ...earlier].map(uidOf));
}

async function warningsOfPods(
  client: Client,
  namespace: string | undefined,
  unread: Set<string>,
): Promise<CoreV1Event[]> {
  const fieldSelector = 'involvedObject.kind=Pod,type=Warning';
  const { items } = await client
    .resource<CoreV1Event>(EVENTS)
    .list({ fieldSelector, ...(namespace === undefined ? {} : { namespace }) })
    .catch((error: unknown) => {
      if (!isApiError(error, 'Forbidden')) throw error;
      unread.add(`Events: ${error.message}: failed probes, volumes and sandboxes are reported later, or not at all`);
      return { items: [] };
    });
  return items;
}

/** Returns a function that reads the newest restart of the machine of a Pod, once for each node. */
function rebootReader(client: Client): (pod: Pod) => Promise<Millis | undefined> | undefined {
  const known = new Map<string, Promise<Millis | undefined>>();
  return (pod) => {
    const name = pod.spec?.nodeName;
    if (!name || !mayBeCut(pod)) return undefined;
    const read = known.get(name) ?? rebootOf(client, name);
    known.set(name, read);
    return read;
  };
}

/** Resolves with none if the server keeps no records. */
async function stepsOf(client: Client, pod: Pod, unread: Set<string>): Promise<Transition[]> {
  try {
    const life = await lifeOf(client, pod);
    if (life.isUnread === true) unread.add('PodRecords: this user may not read them: some causes are less exact');
    return transitionsOf(life.records);
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    return [];
  }
}
