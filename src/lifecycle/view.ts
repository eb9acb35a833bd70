import { type AnyContainer, containersOf } from '../api/core/v1/pod/containers.ts';
import { recordedStatuses, shownId } from '../api/core/v1/pod/status/statuses.ts';
import type { Container, ContainerStatus, DeferContainer, Pod } from '../api/generated/types.ts';
import { defined } from '../machinery/drop-undefined.ts';
import { type Millis, parseTime } from '../machinery/time.ts';
import type { Action, ActionOf, ContainerKind, ContainerState, FailedAction, ImageState } from './types.ts';
import { actionKey, type Input, type Memory, PROBE_KINDS, runKey, type SandboxState } from './types.ts';

export interface ContainerView {
  spec: AnyContainer;
  name: string;
  kind: ContainerKind;
  sidecar: boolean; // An init container with restartPolicy Always.
  fieldPath: string; // Such as spec.initContainers{name}.
  image: string; // The reference for the next run; with imageFrom, the reference of the named container.
  imageState: ImageState | undefined; // Undefined: this agent has neither looked up nor pulled the image.
  runs: readonly ContainerState[]; // The newest first.
  latest: ContainerState | undefined;
  current: ContainerState | undefined; // The newest run, if it belongs to the current sandbox.
  nextAttempt: number; // Counted across sandboxes, including runs that the runtime has lost.
  starting: boolean; // A start is under way, and the run that it creates has not ended.
  isLost: boolean; // The runtime has lost a run that the status shows as running. Older runs may still be known.
  lostAttempt: number | undefined; // The last attempt, if the runtime has lost it and its end is not known. Not of defer containers.
  recorded: ContainerStatus | undefined;
}

/** probes, stops and signalledAt have entries for existing runs only. */
export interface PodView
  extends Pick<Input, 'pod' | 'observed' | 'now'>,
    Pick<Memory, 'probes' | 'stops' | 'signalledAt'> {
  input: Input;
  spec: NonNullable<Pod['spec']>;
  restartPolicy: 'Always' | 'OnFailure' | 'Never';
  graceMillis: Millis;
  init: readonly ContainerView[];
  apps: readonly ContainerView[];
  defers: readonly ContainerView[];
  ephemeral: readonly ContainerView[];
  all: readonly ContainerView[]; // In the order init, apps, defers, ephemeral.
  byName: ReadonlyMap<string, ContainerView>;
  kills: ReadonlyMap<string, readonly ActionOf<'stopContainer'>[]>; // The stopContainer actions under way, by ID of the run.
  sandbox: SandboxState | undefined; // The newest one, ready or not.
  initialized: boolean; // An app container was created in the sandbox, or all init containers had their turn in it.
  isUnderWay(key: string): boolean;
  failureOf(key: string): FailedAction | undefined;
  lastTryOf(key: string): FailedAction | undefined; // Like failureOf(), but includes tries with an unknown outcome.
}

export const isLive = (run?: ContainerState): run is ContainerState => run !== undefined && run.state !== 'exited';
/** A run in the state unknown may have processes. */
export const isRunning = (run?: ContainerState): run is ContainerState => isLive(run) && run.state !== 'created';
export const succeeded = (run?: ContainerState): boolean => run?.state === 'exited' && run.exitCode === 0;

export const underWay = <Kind extends Action['kind']>(view: Pick<PodView, 'observed'>, kind: Kind): ActionOf<Kind>[] =>
  view.observed.underWay.filter((action): action is ActionOf<Kind> => action.kind === kind);

export const isStarting = (view: PodView): boolean =>
  underWay(view, 'createSandbox').length > 0 || view.all.some(({ starting }) => starting);

export const isMain = (each?: ContainerView): boolean =>
  each?.kind === 'app' || (each?.kind === 'init' && !each.sidecar);

/**
 * Returns the sandboxes, newest first, that have ended since a container last started, in which no container started. Their ends count as
 * failed preparations.
 */
export function diedAtStart({ observed }: PodView): SandboxState[] {
  const used = new Set(observed.containers.flatMap((run) => (run.startedAt === undefined ? [] : [run.sandboxId])));
  const newestFirst = observed.sandboxes.toSorted((a, b) => b.attempt - a.attempt);
  const end = newestFirst.findIndex(({ id }) => used.has(id));
  return newestFirst.slice(0, end < 0 ? undefined : end).filter(({ ready }) => !ready);
}

export const containerOf = ({ byName }: PodView, run: ContainerState) => byName.get(run.name);

const fieldOf = (kind: ContainerKind) => (kind === 'app' ? 'containers' : (`${kind}Containers` as const));

/** With these waiting reasons, a defer container is not about to start. */
const NOT_STARTING: ReadonlySet<string> = new Set(['PodRunning', 'PendingDefer', 'CrashLoopBackOff']);

/** Returns the attempt that a defer container's status announces; undefined if it announces none. */
export function announcedAttempt({ status }: Pod, recorded: ContainerStatus | undefined): number | undefined {
  const reason = recorded?.state?.waiting?.reason;
  if (status?.termination === undefined || reason === undefined) return undefined;
  return NOT_STARTING.has(reason) ? undefined : recorded?.restartCount;
}

/** If containerd died before it stored the exit, the runtime reports `Unknown`. Then the end in the status replaces the end of the run. */
function asRecorded(run: ContainerState, recorded: ContainerStatus | undefined): ContainerState {
  if (run.state !== 'exited' || run.reason !== 'Unknown') return run;
  const ends = [recorded?.state?.terminated, recorded?.lastState?.terminated];
  const end = ends.find((each) => shownId(each) === run.id);
  // The exit code of a skipped entry is not the exit code of its run.
  if (end === undefined || end.reason === 'Skipped') return run;
  const { exitCode, reason = '', message = '' } = end;
  const at = parseTime(end.finishedAt) ?? run.createdAt;
  // The status has whole seconds only, so a time of the runtime in the same second is kept.
  const finishedAt = Math.trunc((run.finishedAt ?? 0) / 1000) * 1000 === at ? run.finishedAt : at;
  return { ...run, exitCode, reason, message, finishedAt };
}

/** The reason of a run whose end is not known, because the runtime has lost its container. Source: the kubelet of v1.33. */
export const END_UNKNOWN = 'ContainerStatusUnknown';

/** Builds a defer container's lost last run from the status, because it counts as an attempt; undefined if the status lacks its ID. */
function lostRun(status: ContainerStatus, attempt: number, sandboxId: string, now: Millis): ContainerState | undefined {
  const { name, image, imageID: imageId, containerID, state, lastState } = status;
  const lost = { exitCode: 137, reason: END_UNKNOWN, message: 'the runtime has lost the container' };
  const end: NonNullable<ContainerStatus['state']>['terminated'] = state?.running
    ? defined({ ...lost, startedAt: state.running.startedAt, containerID })
    : lastState?.terminated;
  const id = shownId(end);
  if (end === undefined || id === undefined) return undefined;
  const { exitCode, reason = 'Error', message = '', startedAt, finishedAt } = end;
  return {
    id,
    sandboxId,
    name,
    kind: 'defer',
    attempt,
    image,
    imageId,
    backoffSeconds: 0,
    state: 'exited',
    lost: true,
    createdAt: parseTime(startedAt) ?? now,
    finishedAt: parseTime(finishedAt) ?? now,
    exitCode,
    reason,
    message,
  };
}

/** Indexed by container name, because a Pod may have thousands of containers. */
const knownOf = ({ pod, observed }: Input) => ({
  statuses: new Map(recordedStatuses(pod).map((status) => [status.name, status])),
  specs: new Map(containersOf(pod).map((spec) => [spec.name, spec])),
  runs: Map.groupBy(observed.containers, ({ name }) => name),
  starts: Map.groupBy(underWay({ observed }, 'startContainer'), ({ container }) => container),
});
type Known = ReturnType<typeof knownOf>;

function containerView(input: Input, known: Known, kind: ContainerKind, spec: AnyContainer, sandbox?: SandboxState) {
  const { pod, observed, now } = input;
  const { name } = spec;
  const recorded = known.statuses.get(name);
  const runs = (known.runs.get(name) ?? [])
    .map((run) => asRecorded(run, recorded))
    .sort((a, b) => b.attempt - a.attempt);
  const hasRun = recorded?.containerID !== undefined || recorded?.lastState?.terminated !== undefined;
  const announced = kind === 'defer' && announcedAttempt(pod, recorded) !== undefined ? 1 : 0;
  const shownAttempt = recorded !== undefined && hasRun ? recorded.restartCount - announced : -1;
  const lastAttempt = runs[0]?.attempt ?? -1;
  const isLost = lastAttempt < shownAttempt;
  // In a Pod without a sandbox, the lost run of a defer container is not rebuilt from the status.
  const lost =
    isLost && kind === 'defer' && recorded && sandbox ? lostRun(recorded, shownAttempt, sandbox.id, now) : undefined;
  if (lost !== undefined) runs.unshift(lost);
  const latest = runs[0];
  const { running, terminated } = recorded?.state ?? {};
  // If the Pod ends during the back-off after a run, the status shows an unknown end, and the end of the run in lastState.
  const ends = [terminated, recorded?.lastState?.terminated].filter((end) => end !== undefined);
  // The node itself removes the containers of a deleted Pod, also one that was created, but could not be started.
  const isShownUnknown =
    pod.metadata.deletionTimestamp === undefined &&
    ends.length > 0 &&
    ends.every(({ reason }) => reason === END_UNKNOWN);
  const isEndUnknown = kind !== 'defer' && (running !== undefined || isShownUnknown);
  const source = known.specs.get((spec as DeferContainer).imageFrom ?? '') ?? spec;
  const hasEnded = (attempt: number): boolean => runs.some((run) => run.attempt === attempt && run.state === 'exited');
  return {
    spec,
    name,
    kind,
    runs,
    latest,
    recorded,
    isLost: isLost && running !== undefined,
    lostAttempt: isLost && isEndUnknown ? shownAttempt : undefined,
    sidecar: kind === 'init' && (spec as Container).restartPolicy === 'Always',
    fieldPath: `spec.${fieldOf(kind)}{${name}}`,
    image: source.image ?? '',
    imageState: observed.images[name],
    current: latest !== undefined && latest.sandboxId === sandbox?.id ? latest : undefined,
    nextAttempt: Math.max(lastAttempt, shownAttempt) + 1,
    starting: (known.starts.get(name) ?? []).some(({ attempt }) => !hasEnded(attempt)),
  };
}

/** Throws TypeError if the Pod has no spec. */
export function viewOf(input: Input): PodView {
  const { pod, observed, memory, now } = input;
  const { spec } = pod;
  if (spec === undefined) throw new TypeError(`the Pod ${pod.metadata.name} has no spec`);
  const sandbox = observed.sandboxes.toSorted((a, b) => b.attempt - a.attempt)[0];
  const about = knownOf(input);
  const viewsOf = (kind: ContainerKind): ContainerView[] =>
    (spec[fieldOf(kind)] ?? []).map((each) => containerView(input, about, kind, each, sandbox));
  const [init, apps, defers, ephemeral] = [viewsOf('init'), viewsOf('app'), viewsOf('defer'), viewsOf('ephemeral')];
  const known = new Set(observed.containers.flatMap(({ id }) => [id, ...PROBE_KINDS.map((kind) => runKey(id, kind))]));
  const ofKnown = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(record).filter(([key]) => known.has(key)));
  const keys = new Set(observed.underWay.map(actionKey));
  const failures = new Map(observed.failures.map((failure) => [actionKey(failure.action), failure]));
  const all = [...init, ...apps, ...defers, ...ephemeral];
  return {
    input,
    now,
    pod,
    spec,
    observed,
    init,
    apps,
    defers,
    ephemeral,
    all,
    sandbox,
    byName: new Map(all.map((each) => [each.name, each])),
    kills: Map.groupBy(underWay(input, 'stopContainer'), ({ id }) => id),
    restartPolicy: (spec.restartPolicy ?? 'Always') as PodView['restartPolicy'],
    graceMillis: (spec.terminationGracePeriodSeconds ?? 30) * 1000,
    initialized:
      sandbox !== undefined &&
      (memory.initializedInSandbox === sandbox.attempt || apps.some(({ current }) => current !== undefined)),
    probes: ofKnown(memory.probes),
    stops: ofKnown(memory.stops),
    signalledAt: ofKnown(memory.signalledAt),
    isUnderWay: (key) => keys.has(key),
    failureOf: (key) => (failures.get(key)?.unknown ? undefined : failures.get(key)),
    lastTryOf: (key) => failures.get(key),
  };
}
