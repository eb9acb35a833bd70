/**
 * Composes the lines of a session about its Pods and workloads. Prints each line once for each of them, because a container may fail again
 * and again.
 */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { CoreV1Event, Job, Node, Pod } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { onlyFinalizersLeft } from '../end-pods.ts';
import type { Hints } from '../hints.ts';
import { imageOf, lacksImage, podContainers, wantedImage } from '../pod-containers.ts';
import { lifeOf, transitionsOf } from '../records.ts';
import { periodOf } from '../status/pod-troubles.ts';
import { explainEnding } from '../why/ending.ts';
import { endOfEntry, isUndone, remainingWork, undoneText } from '../why/entries.ts';
import { actionsText, imageHint, lackOfImage } from '../why/images.ts';
import { explainReadinessGates, explainUnready, readyingProbe } from '../why/running.ts';
import { explainScheduling } from '../why/scheduling.ts';
import { controllerOf, eventOf, lastTime, type Shown, shownContainers } from '../why/subject.ts';
import { idlenessOf } from '../workloads/idle-workloads.ts';
import { hasJobFailed, type Refusal } from '../workloads/refused-pods.ts';
import type { Root } from '../workloads/root-owner.ts';
import { type ContainerRuns, crashLoops } from './container-runs.ts';
import type { Interrupts } from './interrupts.ts';
import { titleOf } from './plan.ts';
import type { SessionLogs } from './session-logs.ts';
import { type Failure, failureOf, jobFailureOf, type Seen, subjectOf } from './session-state.ts';

interface EntryNotice {
  name: string;
  text: string;
  hint: string;
  isPending: boolean;
}

/**
 * Returns lines about defer containers that cannot get their images, and about defer containers that were due and did not run or failed.
 * Pure.
 */
export function entryNotices(pod: Pod, hints: Hints, node: Node | undefined): EntryNotice[] {
  const advised = { pod, hints, node };
  const title = `pod/${pod.metadata.name}`;
  const waited = new Set(
    podContainers(pod)
      .filter(({ kind, status }) => kind !== 'defer' && status !== undefined && lacksImage(status))
      .map((each) => wantedImage(pod, each).reference),
  );
  return podContainers(pod).flatMap(({ kind, name, status }): EntryNotice[] => {
    if (kind !== 'defer' || status === undefined) return [];
    const image = `the image ${imageOf(pod, { name })}`;
    if (lacksImage(status) && !hasEnded(pod)) {
      // Another container cannot start without the same image. The session reports that container instead.
      if (waited.has(imageOf(pod, { name }))) return [];
      const text = `${title}: ${image} of its defer container ${name} ${lackOfImage(status)}`;
      return [{ name, text, hint: imageHint(advised, { kind, name, status }), isPending: true }];
    }
    const end = endOfEntry(pod, status, []);
    if (end === undefined || !isUndone(end)) return [];
    const [, ...ofImage] = remainingWork(advised, [end]);
    return [{ name, text: `${title}: ${undoneText(end)}`, hint: actionsText(ofImage), isPending: false }];
  });
}

/** A failed startup or readiness probe of a container that is not ready. */
interface UnreadyProbe {
  shown: Shown;
  kind: 'startup' | 'readiness';
  /** How long the probe takes to fail. */
  limit: Millis;
}

/**
 * Returns the probe whose failure `event` reports, if the container is not ready because of it; undefined otherwise, for example if the
 * Pod is ending. Pure.
 */
function unreadyProbe(pod: Pod, event: CoreV1Event): UnreadyProbe | undefined {
  if (pod.metadata.deletionTimestamp !== undefined || pod.status?.termination !== undefined) return undefined;
  const shown = shownContainers({ pod }).find(({ name }) => eventOf({ events: [event] }, ['Unhealthy'], name));
  const started = parseTime(shown?.status.state?.running?.startedAt);
  // The Event may be about the run before.
  if (shown === undefined || started === undefined || shown.status.ready || lastTime(event) < started) return undefined;
  const { kind, probe } = readyingProbe(pod, shown);
  const isReported = event.message?.toLowerCase().startsWith(`${kind} probe`) === true;
  return isReported ? { shown, kind, limit: periodOf(probe) } : undefined;
}

/**
 * Returns the sentence with which a session gives up. `start` is the command that starts an engine, if the session may stop the engine
 * that the commands in the sentence need; undefined if another user of the engine keeps it running.
 */
export const givenUp = (because: string, start: string | undefined): string =>
  start !== undefined && /\b(?:lifepod|kubectl) [a-z]/.test(because)
    ? `${because}; if the engine has stopped with this session, first start one: ${start}`
    : because;

/**
 * Returns a function that prints why a deleted Pod has not ended yet, in the words of `lifepod why`, and how to end it at once. It prints
 * nothing before the first interruption of the session and after the second one, which ends the Pods at once.
 */
export const createSlowReports =
  ({ client, hints, say }: Pick<NoticeOptions, 'client' | 'hints' | 'say'>, { stop, hurry }: Interrupts) =>
  async (pod: Pod): Promise<void> => {
    // The session does not wait for a Pod that only finalizers keep, and Ctrl+C would not end it.
    if (!stop.aborted || onlyFinalizersLeft(pod)) return;
    const subject = { ...subjectOf(pod, { hints }, Date.now()), transitions: await stepsOf(client, pod) };
    const ending = explainEnding({ ...subject, name: titleOf('Pod', pod.metadata) });
    if (ending !== undefined && !hurry.aborted)
      say(`${ending.sentence.replace(/\.$/, '')}; Ctrl+C again ends it at once`);
  };

interface NoticeOptions {
  client: Client;
  logs: Pick<SessionLogs, 'follow'>;
  say(line: string): void;
  hints: Hints;
  failed(failure: Failure): void;
}

export interface Notices {
  /** Prints why a Pod waits or fails, once for each `cause` and Pod. */
  trouble(pod: Pod, cause: string, text: string): void;
  /** Prints which defer containers of the Pod cannot get their images, or were due and did not run or failed. */
  entries(pod: Pod, node: Node | undefined): void;
  /** Prints once which scheduling gates or readiness gates the Pod waits for. Only other programs or the user can change them. */
  gates(pod: Pod): void;
  /** Prints once why a workload of the manifests creates no Pods, if only the user can change that. */
  idle(kind: string | undefined, object: KubeObject): void;
  /** Prints once, if `event` reports that a probe of the Pod has failed for too long, why the Pod is not ready. */
  unready(pod: Pod, event: CoreV1Event): void;
  crashLoops(pod: Pod, runs: ContainerRuns): Promise<void>;
  /** Reports, once, that the Pod has failed by itself, after its logs are printed. Does nothing for other Pods. */
  failure(seen: Seen<Pod>): Promise<void>;
  /**
   * Reports, once, that the Job has failed, after the logs of its `pods` are printed. Does nothing for a Job that has not failed or is
   * being deleted.
   */
  jobFailure(job: Job, pods: readonly Pod[]): Promise<void>;
  /**
   * Prints why a workload of the session, or an object that it owns, cannot create Pods, once for each cause. Does nothing for a cause that
   * usually passes soon.
   */
  refusal(workload: Root, namespace: string, refusal: Refusal): void;
}

/** Returns whether the failure of the Pod is to be reported: a controller replaces a failed Pod, and a deleted Pod is expected to end. */
const failsByItself = ({ object, isGone }: Seen<Pod>): boolean =>
  !isGone &&
  object.status?.phase === 'Failed' &&
  object.metadata.deletionTimestamp === undefined &&
  controllerOf(object) === undefined;

const stepsOf = (client: Client, pod: Pod): Promise<Transition[]> =>
  lifeOf(client, pod).then(
    ({ records }) => transitionsOf(records),
    () => [],
  );

/** What may differ in the messages of repeated attempts: the IDs of containers, and the numbers of temporary folders. */
const VARYING = /\b[0-9a-f]{64}\b|\d{6,}/g;

function waitNotices(
  { say, hints }: Pick<NoticeOptions, 'say' | 'hints'>,
  isFirst: (uid: string, cause: string) => boolean,
  see: (name: string, namespace: string | undefined) => string,
): Pick<Notices, 'gates' | 'idle'> {
  return {
    gates(pod) {
      if (hasEnded(pod) || pod.metadata.deletionTimestamp !== undefined) return;
      const subject = subjectOf(pod, { hints });
      const isGated = (pod.spec?.schedulingGates ?? []).length > 0;
      const found = isGated ? explainScheduling(subject) : explainReadinessGates(subject);
      if (found === undefined || !isFirst(uidOf(pod), isGated ? 'scheduling gates' : 'readiness gates')) return;
      const sentence = found.sentence.replace(/\.$/, '');
      say(`pod/${sentence}; ${actionsText(found.actions)}; ${see(subject.name, subject.namespace)}`);
    },
    idle(kind = '', object) {
      const found = idlenessOf(kind, object, hints);
      if (found === undefined || !isFirst(uidOf(object), found.cause)) return;
      const title = titleOf(kind, object.metadata);
      const advice = actionsText([found.action]);
      say(`${title} creates no Pods: ${found.cause}; ${advice}; ${see(title, object.metadata.namespace)}`);
    },
  };
}

export function createNotices({ client, logs, say, hints, failed }: NoticeOptions): Notices {
  const said = new Set<string>();
  /** When the first failure of a probe was reported, by the run of its container. */
  const failingSince = new Map<string, Millis>();
  const isNew = (pod: Pod | Job, cause: string): boolean => isFirst(uidOf(pod), cause);
  const isFirst = (uid: string, cause: string): boolean => {
    const key = `${uid} ${cause.replaceAll(VARYING, 'N')}`;
    if (said.has(key)) return false;
    said.add(key);
    return true;
  };
  // The command is for another terminal, because the session occupies this one.
  const seeObject = (name: string, namespace: string | undefined): string =>
    `see '${hints.lifepod(`why ${name} -n ${namespace}`)}' in another terminal`;
  const see = ({ metadata: { name, namespace } }: Pod): string => seeObject(name, namespace);
  return {
    trouble(pod, cause, text) {
      if (isNew(pod, cause)) say(`${text}; ${see(pod)}`);
    },
    entries(pod, node) {
      for (const { name, text, hint, isPending } of entryNotices(pod, hints, node)) {
        // The text in parentheses, such as the reason of a failed pull, may differ each time.
        if (!isNew(pod, isPending ? text.replace(/ \(.*$/s, '') : text)) continue;
        // The line about the missing image may already have contained the hint.
        const advice = hint !== '' && isNew(pod, `hint for ${name}`) ? `; ${hint}` : '';
        say(`${text}${advice}${isPending ? `; ${see(pod)}` : ''}`);
      }
    },
    ...waitNotices({ say, hints }, isFirst, seeObject),
    unready(pod, event) {
      const found = unreadyProbe(pod, event);
      if (found === undefined) return;
      const { shown, kind, limit } = found;
      const run = `${uidOf(pod)} ${kind} ${shown.status.containerID}`;
      const now = lastTime(event);
      const since = failingSince.get(run) ?? now;
      failingSince.set(run, since);
      // A container may fail probes while it starts.
      if (now - since < limit || !isNew(pod, `unready ${kind} ${shown.name}`)) return;
      const subject = { ...subjectOf(pod, { hints }, now), name: titleOf('Pod', pod.metadata), events: [event] };
      say(`${explainUnready(subject, shown).sentence.replace(/\.$/, '')}; ${see(pod)}`);
    },
    async crashLoops(pod, runs) {
      const ended = crashLoops(pod, runs, []).filter(({ run, cause }) => isNew(pod, `${run} ${cause}`));
      if (ended.length === 0) return;
      for (const { text, cause } of crashLoops(pod, runs, await stepsOf(client, pod)))
        if (isNew(pod, cause)) say(`pod/${pod.metadata.name}: ${text}; ${see(pod)}`);
    },
    async failure(seen) {
      const pod = seen.object;
      if (!failsByItself(seen) || !isNew(pod, 'failure')) return;
      await logs.follow(pod);
      failed(failureOf(seen, await stepsOf(client, pod)));
    },
    async jobFailure(job, pods) {
      if (!hasJobFailed(job) || job.metadata.deletionTimestamp !== undefined || !isNew(job, 'failure')) return;
      await Promise.all(pods.map(logs.follow));
      failed(jobFailureOf(job));
    },
    refusal({ uid, kind, name }, namespace, { text, cause, hint, isPassing }) {
      if (isPassing || !isFirst(uid, cause)) return;
      const title = titleOf(kind, { name });
      const advice = hint === undefined ? '' : `; ${actionsText([hint])}`;
      say(`${title} cannot create Pods: ${text}${advice}; ${seeObject(title, namespace)}`);
    },
  };
}
