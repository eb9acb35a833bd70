/**
 * What a Pod's status and Events say of its defer containers.
 * Source: the specification of defer containers, "Status and events".
 */
import type { ContainerStatus, PodCondition, PodTermination } from '../api/generated/types.ts';
import { formatMicroTime, formatTime } from '../machinery/time.ts';
import { attemptOf, type Entry, type EntryEnd, failureOf, recordedEntry } from './defer.ts';
import { retryOf } from './ending.ts';
import type { Facts } from './facts.ts';
import { backOffMessage, crashLoopMessage, type StatusInput, terminatedState } from './status.ts';
import type { PodEvent, SandboxState } from './types.ts';
import { type ContainerView, isRunning } from './view.ts';

type State = NonNullable<ContainerStatus['state']>;

/** undefined: the Pod has no defer containers. */
export function deferStatuses(given: StatusInput): ContainerStatus[] | undefined {
  const { view, list } = given;
  if (view.defers.length === 0) return undefined;
  return view.defers.map((container, index) => {
    const entry = list?.entries[index];
    if (entry !== undefined) return entryStatus(entry, given);
    const recorded = recordedEntry(view, container);
    if (recorded?.state?.terminated !== undefined) return recorded;
    return { ...common(container), state: { waiting: { reason: 'PodRunning' } } };
  });
}

const common = ({ spec, latest }: ContainerView): ContainerStatus => ({
  name: spec.name,
  state: {},
  lastState: {},
  ready: false,
  restartCount: 0,
  image: latest?.image ?? spec.image ?? '',
  imageID: latest?.imageId ?? '',
  started: false,
});

function entryStatus(entry: Entry, given: StatusInput): ContainerStatus {
  const { container, end } = entry;
  if (end?.recorded !== undefined) return end.recorded;
  const { runtimeName } = given.input.node;
  const { latest, runs } = container;
  const before = (run = runs[1]): State =>
    run?.state === 'exited' ? { terminated: terminatedState(run, runtimeName) } : {};
  const status = { ...common(container), restartCount: latest?.attempt ?? 0 };
  const withId = latest === undefined ? status : { ...status, containerID: `${runtimeName}://${latest.id}` };
  if (end !== undefined) return { ...withId, state: endedState(end, runtimeName), lastState: before() };
  if (isRunning(latest)) {
    const { startedAt, createdAt } = latest;
    const state = { running: { startedAt: formatTime(startedAt ?? createdAt) } };
    return { ...withId, state, lastState: before(), started: true };
  }
  if (given.list?.turn !== entry || !isTurn(given, entry))
    return { ...withId, state: { waiting: { reason: 'PendingDefer' } }, lastState: before(latest) };
  const waiting = waitingState(entry, given);
  if (waiting.reason === 'CrashLoopBackOff') return { ...withId, state: { waiting }, lastState: before(latest) };
  const restartCount = attemptOf(container);
  return { ...withId, restartCount, state: { waiting }, lastState: before(latest) };
}

/** PostExit entries wait for the apps. */
const isTurn = ({ view }: StatusInput, { spec }: Entry): boolean =>
  spec.trigger !== 'PostExit' ||
  ![...view.apps, ...view.init].some(({ sidecar, latest }) => !sidecar && isRunning(latest));

/** Why the next attempt of the entry whose turn it is has not begun. */
function waitingState(entry: Entry, given: StatusInput): { reason: string; message?: string } {
  const { container } = entry;
  const { current } = container;
  if (current?.state === 'exited' && retryOf(given, container, current).at > given.now)
    return { reason: 'CrashLoopBackOff', message: crashLoopMessage(container, current, given) };
  const failure = failureOf(given, entry);
  if (failure !== undefined) return { reason: failure.reason, message: failure.message };
  return { reason: 'ContainerCreating' };
}

function endedState({ run, reason, exitCode, message, at }: EntryEnd, runtimeName: string): State {
  if (run !== undefined) return { terminated: { ...terminatedState(run, runtimeName), reason, exitCode } };
  return {
    terminated: { exitCode, reason, ...(message === undefined ? {} : { message }), finishedAt: formatTime(at) },
  };
}

/** As it is to be written: with the deadline moved, where it is to be moved. */
export function terminationStatus({ termination, list }: StatusInput): PodTermination | undefined {
  if (termination === undefined || list === undefined) return undefined;
  const { reason, startedAt, deadline, extendedSeconds } = list.proposed ?? termination;
  return {
    reason,
    startedAt: formatMicroTime(startedAt),
    deadline: formatMicroTime(deadline),
    ...(extendedSeconds === undefined ? {} : { extendedSeconds }),
  };
}

/** The list is due or runs. */
export const isDeferring = ({ list }: Pick<StatusInput, 'list'>): boolean => list?.turn !== undefined;

/** The condition Deferred: none before the termination; once it is decided, it stays. */
export function deferredVerdict(
  given: StatusInput,
): { status: 'True' | 'False'; reason: string; message?: string } | undefined {
  const { list, view } = given;
  const before = view.pod.status?.conditions?.find(({ type }) => type === 'Deferred');
  if (list === undefined) return undefined;
  if (list.turn !== undefined) return { status: 'False', reason: 'DeferContainersRunning' };
  if (before?.reason !== undefined && before.reason !== 'DeferContainersRunning') return asVerdict(before);
  if (list.skipped !== undefined) return { status: 'False', reason: 'DeferContainersSkipped', message: list.skipped };
  const names = (...reasons: string[]): string[] =>
    list.entries.filter(({ end }) => reasons.includes(end?.reason ?? '')).map(({ spec }) => spec.name);
  const unfinished = list.over ? names('Skipped', 'DeadlineExceeded', 'Error', 'OOMKilled') : [];
  if (unfinished.length > 0)
    return {
      status: 'False',
      reason: isLost(view.sandbox) ? 'NodeLost' : 'GracePeriodExceeded',
      message: `defer containers that did not complete: [${unfinished.join(' ')}]`,
    };
  const failed = names('DeadlineExceeded', 'Error', 'OOMKilled');
  if (failed.length > 0)
    return {
      status: 'False',
      reason: 'DeferContainersFailed',
      message: `defer containers that failed: [${failed.join(' ')}]`,
    };
  return { status: 'True', reason: 'DeferContainersSucceeded' };
}

const isLost = (sandbox: SandboxState | undefined): boolean =>
  sandbox === undefined || (!sandbox.ready && !sandbox.stopped);

const asVerdict = ({ status, reason = '', message }: PodCondition) => ({
  status: status as 'True' | 'False',
  reason,
  ...(message === undefined ? {} : { message }),
});

export function deferFacts(given: StatusInput, facts: Facts): void {
  const { list, termination, view } = given;
  if (list === undefined || termination === undefined) return;
  const { extendedSeconds, deadline, reason } = termination;
  const until = formatTime(deadline);
  if (list.skipped === undefined && view.pod.status?.termination !== undefined)
    facts.set('deferStarted', normal('DeferStarted', `The Pod ends (${reason}): defer containers run until ${until}`));
  if (extendedSeconds !== undefined)
    facts.set(`extended/${extendedSeconds}`, {
      ...normal('ExtendGracePeriod', `defer containers are still due: the grace period is extended until ${until}`),
      ...(list.turn === undefined ? {} : { fieldPath: list.turn.container.fieldPath }),
    });
  for (const entry of list.entries) entryFacts(entry, given, facts);
  const verdict = deferredVerdict(given);
  if (list.turn === undefined && list.skipped === undefined && verdict !== undefined)
    facts.set('deferCompleted', {
      type: verdict.status === 'True' ? 'Normal' : 'Warning',
      reason: 'DeferCompleted',
      message: verdict.message ?? 'All defer containers succeeded',
    });
}

function entryFacts(entry: Entry, given: StatusInput, facts: Facts): void {
  const { container, spec, end } = entry;
  const { fieldPath } = container;
  if (end?.reason === 'Skipped') {
    const message = `Defer container ${spec.name} does not run: ${end.message}`;
    facts.set(`deferSkipped/${spec.name}`, { ...warning('DeferContainerSkipped', message), fieldPath });
  } else if (end !== undefined && end.reason !== 'Completed') {
    const cause = end.message === undefined ? `exit code ${end.exitCode}` : end.message.trimEnd();
    const message = `Defer container ${spec.name} failed: ${end.reason}: ${cause}`;
    facts.set(`deferFailed/${spec.name}`, { ...warning('DeferContainerFailed', message), fieldPath });
  }
  if (end === undefined && given.list?.turn === entry && waitingState(entry, given).reason === 'CrashLoopBackOff')
    facts.set(`crashLoop/${container.latest?.id}`, {
      ...warning('BackOff', backOffMessage(container, given)),
      fieldPath,
    });
}

const normal = (reason: string, message: string): PodEvent => ({ type: 'Normal', reason, message });
const warning = (reason: string, message: string): PodEvent => ({ type: 'Warning', reason, message });
