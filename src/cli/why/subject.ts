/** Defines the input of the explanations, and functions that query the input and describe its parts. Pure. */
import type {
  ContainerStatus,
  CoreV1Event,
  Node,
  OwnerReference,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodCondition,
  Secret,
  StorageClass,
} from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import type { Hints } from '../hints.ts';
import { type ContainerKind, type PodContainer, podContainers } from '../pod-containers.ts';
import type { UnreportedNode } from '../service/engine-start.ts';
import { shortDuration } from '../timeline/scale.ts';

export interface Subject {
  name: string;
  namespace: string;
  /** The Pod; undefined if it no longer exists. */
  pod: Pod | undefined;
  events: readonly CoreV1Event[];
  /** The node to which the Pod is or was bound; undefined if the Pod is not bound, or if the node cannot be read. */
  node?: Node | undefined;
  /** The node of the Pod, empty if it does not exist; all nodes if the Pod has no node. Undefined if Nodes cannot be read. */
  nodes?: readonly Node[] | undefined;
  /** Other Pods, as far as they are known, if the Pod waits for a host port or for room on its nominated node. */
  otherPods?: readonly Pod[] | undefined;
  /** The claims of the Pod that are not bound; undefined if the Pod does not wait for claims, or if they were not read. */
  unboundClaims?: readonly UnboundClaim[] | undefined;
  /** The PersistentVolumes of the Pod, if one of them keeps it from a node; undefined if none does, or if they cannot be read. */
  boundVolumes?: readonly PersistentVolume[] | undefined;
  /** The objects and keys that the environment of the defer containers needs and that do not exist; undefined if they were not read. */
  entryNeeds?: readonly EntryNeed[] | undefined;
  /** Undefined if the node has reported its state since its engine started, or if this is not known. */
  unreported?: UnreportedNode | undefined;
  /** The start of the node's engine; undefined if it is not recent or not known. */
  engineStartedAt?: Millis | undefined;
  /** When the node reported a restart of its machine; undefined if it did not, or if its Events were not read. */
  rebootedAt?: Millis | undefined;
  /** The imagePullSecrets of the Pod that exist; undefined if they are not known. */
  pullSecrets?: readonly Secret[] | undefined;
  /** The path of the manifest of a static Pod; undefined if the Pod is not static, or if the path is not known. */
  manifest?: string | undefined;
  /** The workload about which the user has asked; undefined if the user has asked about the Pod. */
  workload?: WorkloadRef | undefined;
  transitions: readonly Transition[];
  /** The last lines of the log of a container's last ended run, by container name, for runs that failed without a termination message. */
  lastLines: Readonly<Record<string, readonly string[]>>;
  hints: Hints;
  now: Millis;
}

export interface WorkloadRef {
  kind: string;
  /** As in commands, such as deployment/web. */
  title: string;
}

export interface UnboundClaim {
  claim: PersistentVolumeClaim;
  /** The Events about the claim; none if the user may not read them. */
  events: readonly CoreV1Event[];
  /** The class of the claim; undefined if it has none, or if the class does not exist or cannot be read. */
  storageClass?: StorageClass | undefined;
  /** All PersistentVolumes; undefined if the class creates volumes, or if the user may not read them. */
  volumes?: readonly PersistentVolume[] | undefined;
}

export interface EntryNeed {
  /** The name of the defer container. */
  entry: string;
  kind: 'ConfigMap' | 'Secret';
  /** The name of the object. */
  name: string;
  /** The key that the object lacks; absent if the object does not exist. */
  key?: string;
}

export interface Action {
  description: string;
  command?: string;
}

export interface Explanation {
  sentence: string;
  evidence: string[];
  /** The advice to the user, most useful first; empty if there is nothing to do. */
  actions: Action[];
}

export interface Living extends Subject {
  pod: Pod;
}

export type Advice = (subject: Living) => Action;

export const conditionOf = ({ pod }: Living, type: string): PodCondition | undefined =>
  pod.status?.conditions?.find((each) => each.type === type);

/** Returns whether an orderly shutdown of the node ended the Pod. */
export const endedWithNode = (subject: Living): boolean =>
  subject.pod.status?.reason === 'Terminated' &&
  conditionOf(subject, 'DisruptionTarget')?.reason === 'TerminationByKubelet';

export const controllerOf = ({ metadata }: KubeObject): OwnerReference | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller === true);

export interface Shown {
  kind: ContainerKind;
  name: string;
  isSidecar?: true;
  status: ContainerStatus;
}

export const shownContainers = ({ pod }: Pick<Living, 'pod'>): Shown[] =>
  podContainers(pod).flatMap((each: PodContainer) =>
    each.status === undefined ? [] : [{ ...each, status: each.status }],
  );

export const sidecarsOf = ({ spec }: Pod): ReadonlySet<string> =>
  new Set((spec?.initContainers ?? []).flatMap((each) => (each.restartPolicy === 'Always' ? [each.name] : [])));

export const called = ({ kind, name, isSidecar }: Pick<PodContainer, 'kind' | 'name' | 'isSidecar'>): string =>
  kind === 'app' ? `container ${name}` : `${isSidecar ? 'sidecar' : kind} container ${name}`;

export const lastTime = ({ series, lastTimestamp, eventTime, metadata }: CoreV1Event): Millis =>
  [series?.lastObservedTime, lastTimestamp, eventTime, metadata.creationTimestamp]
    .map(parseTime)
    .find((time) => time !== undefined) ?? 0;

/** Returns the newest Event with one of the reasons; only about the container, if `container` is set. */
export function eventOf(
  { events }: Pick<Subject, 'events'>,
  reasons: readonly string[],
  container?: string,
): CoreV1Event | undefined {
  return events
    .filter(({ reason, involvedObject }) => {
      const about = /\{(.+)\}$/.exec(involvedObject.fieldPath ?? '')?.[1];
      return reasons.includes(reason ?? '') && (container === undefined || about === container);
    })
    .sort((a, b) => lastTime(b) - lastTime(a))[0];
}

export function eventLine(event: CoreV1Event | undefined, { now }: Subject): string[] {
  if (event === undefined) return [];
  const times = (event.count ?? 1) > 1 ? ` (${event.count}×)` : '';
  return [`Event ${event.reason}, ${ago(lastTime(event), now)}${times}: ${oneLine(event.message)}`];
}

export const conditionLine = (condition: PodCondition | undefined): string[] =>
  condition === undefined
    ? []
    : [
        `condition ${condition.type} is ${condition.status}${condition.reason ? ` (${condition.reason})` : ''}${condition.message ? `: ${oneLine(condition.message)}` : ''}`,
      ];

export const lastStep = (
  { transitions }: Pick<Subject, 'transitions'>,
  types: readonly string[],
  container?: string,
): Transition | undefined =>
  transitions
    .filter((step) => types.includes(step.type) && (container === undefined || step.container === container))
    .sort((a, b) => a.at - b.at)
    .at(-1);

/** Returns the step with which the last hook of the container began; undefined if it has ended, or if it is another kind of hook. */
export function runningHook(
  subject: Pick<Subject, 'transitions'>,
  container: string,
  hook: 'postStart' | 'preStop',
): Transition | undefined {
  const step = lastStep(subject, ['HookBegan', 'HookDone', 'HookFailed', 'StopSignal', 'Exited'], container);
  return step?.type === 'HookBegan' && step.reason === hook ? step : undefined;
}

export const forTime = (since: Millis, now: Millis): string => shortDuration(Math.max(0, now - since));

export const ago = (at: Millis, now: Millis): string => `${forTime(at, now)} ago`;

export const inTime = (at: Millis, now: Millis): string => (at <= now ? 'now' : `in ${shortDuration(at - now)}`);

export const clock = (at: Millis): string => `${new Date(at).toISOString().slice(11, 19)} UTC`;

/** Times in the API are whole seconds, so what was due less than this long ago is not called overdue. */
const RESOLUTION_MILLIS: Millis = 1000;

/** Returns a time at which something is due, such as `12:00:22 UTC (in 22.0s)` or `12:00:22 UTC (overdue for 2m00s)`. */
export const clockIn = (at: Millis, now: Millis): string =>
  `${clock(at)} (${now - at < RESOLUTION_MILLIS ? inTime(at, now) : `overdue for ${forTime(at, now)}`})`;

/** The time at which the node stops trying. */
export interface Bound {
  /** Undefined if there is no such time, or if it is not known. */
  at: Millis | undefined;
  /** A clause such as `its timeoutSeconds end`. */
  text: string;
}

/** Returns a phrase that says why an attempt that is due at `next` never begins; undefined if it may begin. */
export const withoutAttempt = (next: Millis | undefined, { at, text }: Bound, now: Millis): string | undefined =>
  next === undefined || at === undefined || next < at
    ? undefined
    : `because ${text} at ${clockIn(at, now)}, before the next attempt`;

/** Returns the end of the Pod's activeDeadlineSeconds, which bounds all containers except defer containers. */
export function activeBound({ spec, status }: Pod): Bound {
  const [started, seconds] = [parseTime(status?.startTime), spec?.activeDeadlineSeconds];
  const at = started === undefined || seconds === undefined ? undefined : started + seconds * 1000;
  return { at, text: 'the activeDeadlineSeconds of the Pod end' };
}

export const oneLine = (text: string | undefined): string => (text ?? '').replaceAll(/\s+/g, ' ').trim();

/** `option` is an option of `lifepod logs`, such as --previous. */
export const seeOutput = ({ name, namespace, hints }: Subject, container: string, option = ''): Action => ({
  description: `see its ${option === '--previous' ? 'previous ' : ''}output`,
  command: hints.lifepod(`logs ${name} -n ${namespace} -c ${container}${option && ` ${option}`}`),
});

export const seeTimeline = ({ name, namespace, hints }: Subject, options = ''): Action => ({
  description: 'see its life',
  command: hints.lifepod(`timeline ${name} -n ${namespace}${options && ` ${options}`}`),
});

export const seeStatus = ({ hints }: Subject, description: string): Action => ({
  description,
  command: hints.engine('status'),
});

export function lastWords({ lastLines }: Subject, name: string, message: string | undefined): string[] {
  if (message !== undefined && oneLine(message) !== '') return [`its last message: ${oneLine(message)}`];
  return (lastLines[name] ?? []).map((line) => `its log: ${line}`);
}

/** The probable cause of the loss of a sandbox, and of a run whose end is not known. Other causes leave the same traces. */
export const PROBABLE_LOSS = 'probably because the machine or the container runtime stopped without a shutdown';

export const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;

export const loadImage = (
  { hints }: Pick<Subject, 'hints'>,
  description = 'load it from an archive, without a registry',
): Action => ({
  description,
  command: hints.engine('image load FILE'),
});

/** Returns the name of the only node, or a placeholder for a command. */
export const nodeName = ({ nodes = [] }: Subject): string =>
  nodes.length === 1 ? (nodes[0]?.metadata.name ?? '') : 'NODE';

export const say =
  (description: string): Advice =>
  () => ({ description });
