/**
 * Derives the Events of a Pod (as the kubelet of v1.33 reports them) and the steps of its record: facts with keys, each reported once. A
 * new agent reports all steps that hold. The record drops a step whose key is already stored. In a key that ends with "@" and a time, the
 * time does not distinguish the step from an equal last step.
 *
 * Steps of the Pod: Created Scheduled VolumesMounted MountFailed SandboxReady SandboxFailed SandboxLost SandboxStopped ActionFailed
 * DeletionRequested TerminationBegan DeadlineSet (initially and at each move) AppsStopping Finished Removed (from the node) Gone (from the
 * API); NotScheduled (by a controller, for a Pod that ends without a node). Steps of a container, whose deadline is the next try or the
 * kill: Pulling Pulled PullFailed StartFailed Started Exited BackOff ProbePassing ProbeFailing (reason: the probe) HookBegan HookDone
 * HookFailed (reason: the hook) StopSignal DeferBegan DeferEnded DeferSkipped. Exited has the reason ContainerStatusUnknown for a lost run.
 */
import { GIVEN_UP, NO_GRACE } from '../api/core/v1/pod/status/deferred.ts';
import { isFinalPhase } from '../api/core/v1/pod/status/final-phase.ts';
import { pullMessage, quartersDone } from '../api/core/v1/pod/status/pull-progress.ts';
import { causeOfMove, recordedTermination } from '../api/core/v1/pod/status/termination.ts';
import { formatDuration, formatTime, parseTime } from '../machinery/time.ts';
import { deferredVerdict } from './conditions.ts';
import {
  isBackingOffForImage,
  LOOK_EVENTS,
  type Phase,
  phaseOf,
  podInFull,
  type Situation,
} from './container-phases.ts';
import { imageActions, imageFound, missingTarget } from './container-steps.ts';
import { type Plan, pullRetryAt } from './effects.ts';
import { type Facts, factsOf } from './keyed-facts.ts';
import { DEADLINE_EXCEEDED } from './status.ts';
import { isPostExit } from './termination-causes.ts';
import { type Action, actionKey, type ContainerState, type FailedAction, PROBE_KINDS, runKey } from './types.ts';
import { type ContainerView, END_UNKNOWN, isRunning } from './view.ts';

/**
 * Returns the Events and steps that hold now. The Events include those that were reported before; of such steps, only the keys are
 * returned, in `held`. `stopped`: no container and no sandbox of the Pod runs.
 */
export function reportOf(situation: Situation, plan: Plan, stopped: boolean): Pick<Facts, 'events' | 'steps' | 'held'> {
  const facts = factsOf({ ...situation, plan, events: new Map(), steps: new Map(), held: new Set() });
  const { step, view } = facts;
  const { pod, spec, observed, all, input } = view;
  const { conditions, phase, reason, message } = pod.status ?? {};
  const createdAt = parseTime(pod.metadata.creationTimestamp);
  if (createdAt !== undefined) step('Created', { at: createdAt });
  const scheduled = conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'True');
  const boundAt = parseTime(scheduled?.lastTransitionTime);
  if (scheduled !== undefined) step('Scheduled', { at: boundAt, message: `to node ${spec.nodeName}` });
  if (observed.volumes === 'mounted') step('VolumesMounted');
  failures(facts);
  ending(facts, stopped);
  sandboxes(facts);
  for (const container of all) containerFacts(facts, container);
  if (isFinalPhase(phase)) step('Finished', { reason: phase, message: [reason, message].filter(Boolean).join(': ') });
  const isLeft = observed.sandboxes.length > 0 || observed.containers.length > 0 || observed.volumes !== 'gone';
  if (stopped && !isLeft) step('Removed');
  if (input.removed) step('Gone');
  return facts;
}

const KILL_FAILED = ['ActionFailed', 'FailedKillPod', 'error killing pod: '] as const;

const FAILED: { [Kind in Action['kind']]?: readonly [step: string, reason: string, words: string] } = {
  createSandbox: ['SandboxFailed', 'FailedCreatePodSandBox', 'Failed to create pod sandbox: '],
  mountVolumes: ['MountFailed', 'FailedMount', ''],
  stopContainer: KILL_FAILED,
  stopSandbox: KILL_FAILED,
  removeContainer: KILL_FAILED,
  removeSandbox: KILL_FAILED,
};

function failures(facts: Facts): void {
  for (const failure of facts.view.observed.failures) {
    const { action, message, reason, at, count, image, unknown } = failure;
    const [type, event, words = ''] = FAILED[action.kind] ?? [];
    if (type === undefined || event === undefined || unknown) continue;
    // Failed stops of the same run are reported as one action, even if their deadlines differ.
    const name = action.kind === 'stopContainer' ? `stopContainer/${action.id}` : actionKey(action);
    const key = `${name}/${count}`;
    const deadline = image === undefined ? undefined : pullRetryAt(failure);
    facts.step(type, { key: `${name}${deadline === undefined ? '@' : '/Failed/'}${at}`, at, message, deadline });
    if (action.kind === 'mountVolumes' && reason !== event) facts.warning('Failed', `Error: ${reason}`, key);
    else facts.warning(event, words + message, key);
    pullBackOff(facts, failure, image, key);
  }
}

function sandboxes({ view: { sandbox, observed, all }, end, normal, step }: Facts): void {
  const lost = all.find(({ lostAttempt }) => lostAttempt !== undefined);
  // The runtime has lost the sandbox, too, for example after the restore of a backup.
  if (lost !== undefined && observed.sandboxes.length === 0)
    step('SandboxLost', { key: `Sandbox/${lost.name}/${lost.lostAttempt}/Lost` });
  if (sandbox?.ready === false && end === undefined)
    normal('SandboxChanged', 'Pod sandbox changed, it will be killed and re-created.', sandbox.id);
  for (const { id, attempt, ready, stopped, ips, createdAt } of observed.sandboxes) {
    const key = `Sandbox/${attempt}/${id.slice(0, 12)}`;
    step('SandboxReady', { key: `${key}/Ready`, at: createdAt, attempt, message: ips[0] });
    const state = stopped || end !== undefined ? 'Stopped' : 'Lost';
    if (!ready) step(`Sandbox${state}`, { key: `${key}/${state}`, attempt });
  }
}

function ending(facts: Facts, stopped: boolean): void {
  const { view, end, plan, normal, step } = facts;
  const { deletionTimestamp, deletionGracePeriodSeconds: seconds } = view.pod.metadata;
  if (deletionTimestamp !== undefined) step('DeletionRequested', { message: `grace period ${seconds} s` });
  if (end === undefined) return;
  const { reason, startedAt, deadline, preExitDeadline, extendedSeconds, requested } = end.termination;
  if (reason === 'DeadlineExceeded' && !requested) normal(reason, DEADLINE_EXCEEDED);
  step('TerminationBegan', { at: startedAt, reason, deadline });
  // The deadline of a stopped Pod is reported only if an earlier decision reported it.
  const key = `DeadlineSet/${deadline}`;
  const message = causeOfMove(view.input.memory.termination ?? recordedTermination(view.pod), end.termination);
  if (!stopped || view.input.memory.recorded.has(key)) step('DeadlineSet', { key, deadline, message });
  const signals = view.apps.flatMap(({ runs }) => runs.flatMap(({ id }) => plan.signalledAt[id] ?? []));
  if (signals.length > 0) step('AppsStopping', { at: Math.min(...signals) });
  const { entries = [], open, turn } = end.list ?? {};
  // A run that was only created, or failed to start, has no startedAt.
  const ran = entries.some(({ container }) => container.runs.some(({ startedAt }) => startedAt !== undefined));
  if (ran) normal('DeferStarted', `The Pod ends (${reason}): defer containers run until ${formatTime(deadline)}`);
  const until = formatTime(turn === undefined || isPostExit(turn.spec) ? deadline : preExitDeadline);
  const extended = `defer containers are still due: the grace period is extended until ${until}`;
  if (extendedSeconds !== undefined && end.list !== undefined)
    normal('ExtendGracePeriod', extended, extendedSeconds, turn?.container.fieldPath);
  const verdict = deferredVerdict(facts);
  if (!ran || open || verdict === undefined) return;
  const add = verdict.status === 'True' ? normal : facts.warning;
  add('DeferCompleted', verdict.message ?? 'All defer containers succeeded');
}

function containerFacts(facts: Facts, container: ContainerView): void {
  const { name, kind, nextAttempt, runs, latest, lostAttempt } = container;
  const own = factsOf(facts, container);
  const phase = phaseOf(container, facts);
  if (kind === 'defer') entryBegins(own, container);
  for (const attempt of [nextAttempt - 1, nextAttempt]) image(factsOf(facts, container, attempt), container, attempt);
  if (lostAttempt !== undefined)
    factsOf(facts, container, lostAttempt).step('Exited', { exitCode: 137, reason: END_UNKNOWN });
  for (const run of [...runs].reverse()) {
    const ofRun = factsOf(facts, container, run.attempt);
    oneRun(ofRun, container, run, phase);
    hooks(ofRun, container, run);
    probes(ofRun, run);
  }
  const backOff = `Back-off restarting failed container ${name} in pod ${podInFull(facts.view)}`;
  if (phase.is === 'BackingOff') own.warning('BackOff', backOff, latest?.id);
  if (phase.is === 'Waiting' && phase.message !== undefined && phase.message === missingTarget(facts.view, container))
    own.warning('Failed', `Error: ${phase.message}`);
  if (kind === 'defer') entryEnds(own, container);
}

function image(facts: Facts, container: ContainerView, attempt: number): void {
  const { view, plan, normal, step } = facts;
  const { name, image: reference, runs } = container;
  const { pull, check } = imageActions(container, attempt);
  const [key, start] = [actionKey(pull), `startContainer/${name}/${attempt}`];
  const failure = view.failureOf(key);
  const found = imageFound(container, attempt);
  const isThere = found?.state === 'present';
  if (plan.pending(key)) {
    const progress = view.observed.pulls?.[key];
    const id = `${key}/${failure?.count ?? 0}`;
    normal('Pulling', `Pulling image "${reference}"`, id);
    for (let quarter = 1; quarter <= quartersDone(progress); quarter++)
      normal('Pulling', pullMessage(reference, progress) ?? '', `${id}/${quarter}`);
    // A pull that has just ended may count as under way for one more decision.
    if (!isThere && failure?.at !== view.now)
      step('Pulling', { key: `${key}/Pulling/${failure?.at ?? 0}`, message: reference });
  }
  if (isThere && found.pulled !== undefined) {
    const { millis, withWaitingMillis = millis, sizeBytes } = found.pulled;
    const [alone, inAll] = [millis, withWaitingMillis].map((each) => formatDuration(Math.trunc(each)));
    const figures = `${alone} (${inAll} including waiting). Image size: ${sizeBytes} bytes.`;
    normal('Pulled', `Successfully pulled image "${reference}" in ${figures}`, attempt);
    step('Pulled', { key: `${key}/Pulled`, message: `${reference}: ${Math.round(millis)} ms, ${sizeBytes} bytes` });
    // An image that was looked up in advance is reported when the container starts.
  } else if (isThere && (plan.pending(start) || runs.some((run) => run.attempt === attempt)))
    normal('Pulled', `Container image "${reference}" already present on machine`, attempt);
  for (const tried of [key, actionKey(check), start]) startFailed(facts, reference, tried);
}

function startFailed(facts: Facts, reference: string, tried: string): void {
  const { view, warning, step } = facts;
  const failure = view.failureOf(tried);
  if (failure === undefined) return;
  const { reason, message, at, count } = failure;
  const key = `${tried}/${count}`;
  const [look, isPull] = [LOOK_EVENTS[reason], failure.action.kind === 'pullImage'];
  if (isPull) step('PullFailed', { key: `${tried}/Failed/${at}`, at, reason, message, deadline: pullRetryAt(failure) });
  else step('StartFailed', { key: `${tried}@${at}`, at, reason, message });
  if (look !== undefined) warning(look, message, key);
  else if (isPull) warning('Failed', `Failed to pull image "${reference}": ${message}`, `pull/${key}`);
  warning('Failed', `Error: ${look === undefined && !isPull ? message : reason}`, key);
  pullBackOff(facts, failure, reference, key);
}

function pullBackOff(facts: Facts, failure: FailedAction, reference = '', key: string): void {
  const { view, plan, normal, warning } = facts;
  if (plan.pending(actionKey(failure.action)) || !isBackingOffForImage(failure, view)) return;
  normal('BackOff', `Back-off pulling image "${reference}"`, key);
  warning('Failed', 'Error: ImagePullBackOff', `backOff/${key}`);
}

function oneRun(facts: Facts, { name, current }: ContainerView, run: ContainerState, phase: Phase): void {
  const { end, plan, normal, step } = facts;
  const { id, startedAt, finishedAt = run.createdAt, exitCode = 137, reason, message } = run;
  const [stop, signal] = [plan.stops[id], plan.signalledAt[id]];
  if (!run.lost) normal('Created', `Created container: ${name}`, id);
  if (startedAt !== undefined) {
    normal('Started', `Started container ${name}`, id);
    step('Started', { at: startedAt });
  }
  // The containers of a Pod with defer containers stop in turn, so the Event waits for the stop signal.
  const isEnding = isRunning(run) && end !== undefined && (end.list === undefined || signal !== undefined);
  if (stop !== undefined || isEnding) normal('Killing', stop?.message ?? `Stopping container ${name}`, id);
  if (signal !== undefined) step('StopSignal', { at: signal, message: stop?.message, deadline: plan.killedAt.get(id) });
  if (run.state !== 'exited') return;
  // For a short run, the runtime may report an end that is earlier than the start.
  const at = Math.max(finishedAt, startedAt ?? 0);
  step('Exited', { at, exitCode, reason: reason || (exitCode === 0 ? 'Completed' : 'Error'), message });
  if (phase.is === 'BackingOff' && run === current && phase.until > at) step('BackOff', { at, deadline: phase.until });
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function hooks({ view, plan, warning, step }: Facts, { spec }: ContainerView, run: ContainerState): void {
  const { id, name, attempt } = run;
  for (const hook of ['postStart', 'preStop'] as const) {
    const result = view.observed.hooks[runKey(id, hook)];
    const title = `${capitalized(hook)}Hook`;
    if (result?.failure !== undefined) warning(`Failed${title}`, `${title} failed`, id); // As upstream, without the failure.
    if (spec.lifecycle?.[hook] === undefined) continue;
    const key = `Hook/${hook}/${name}/${attempt}`;
    const isPending = plan.pending(actionKey({ kind: 'runHook', container: name, id, hook }));
    if (isPending || view.input.memory.recorded.has(`${key}/Began`))
      step('HookBegan', { key: `${key}/Began`, reason: hook });
    if (result === undefined) continue;
    const type = result.failure === undefined ? 'HookDone' : 'HookFailed';
    step(type, { key: `${key}/Ended`, reason: hook, message: result.failure });
  }
}

const PROBE_RESULTS = { Failure: 'failed', Warning: 'warning', Unknown: 'errored and resulted in unknown state' };

function probes({ view, plan, warning, step }: Facts, run: ContainerState): void {
  const { memory } = view.input;
  for (const probe of PROBE_KINDS) {
    const id = runKey(run.id, probe);
    const seen = view.observed.probes[id];
    if (seen !== undefined && seen.result !== 'Success') {
      const message = `${capitalized(probe)} probe ${PROBE_RESULTS[seen.result]}: ${seen.message}`;
      warning(seen.result === 'Warning' ? 'ProbeWarning' : 'Unhealthy', message, `${id}/${seen.serial}`);
    }
    const passing = plan.probes[id]?.passing;
    if (passing === undefined || (passing === memory.probes[id]?.passing && memory.recorded.size > 0)) continue;
    const key = `Probe/${probe}/${run.name}/${run.attempt}@${view.now}`;
    step(passing ? 'ProbePassing' : 'ProbeFailing', { key, reason: probe, message: passing ? '' : seen?.message });
  }
}

/** The turn of a defer container begins with the pull of its image or with its first run. */
function entryBegins({ view, end, plan, step }: Facts, container: ContainerView): void {
  const key = `Defer/${container.name}/Began`;
  const first = container.runs.at(-1);
  const actions = [`startContainer/${container.name}/0`, actionKey(imageActions(container, 0).pull)];
  const isDue = end?.list?.turn?.container === container && actions.some(plan.pending);
  if (first !== undefined || isDue || view.input.memory.recorded.has(key))
    step('DeferBegan', { key, at: Math.min(view.now, first?.startedAt ?? first?.createdAt ?? view.now) });
}

/** The step waits until the status has the end, because the end is final only then. */
function entryEnds({ view, end: podEnd, warning, step }: Facts, container: ContainerView): void {
  const { name, latest, recorded } = container;
  const end = podEnd?.list?.byContainer.get(container)?.end;
  const skipped = { key: `Defer/${name}/Skipped`, reason: 'Skipped' };
  const skip = view.pod.status?.termination?.skip;
  if (view.input.removed && latest === undefined && recorded?.state?.terminated === undefined)
    step('DeferSkipped', { ...skipped, message: skip?.includes(name) ? GIVEN_UP : NO_GRACE });
  if (end === undefined) return;
  const { reason, message, exitCode } = end;
  const cause = message === undefined ? `exit code ${exitCode}` : message.trimEnd();
  const how = latest?.startedAt === undefined ? 'does not run' : 'was cut off';
  if (reason === 'Skipped') warning('DeferContainerSkipped', `Defer container ${name} ${how}: ${message}`);
  else if (reason !== 'Completed')
    warning('DeferContainerFailed', `Defer container ${name} failed: ${reason}: ${cause}`);
  if (end.recorded === undefined) return;
  const at = Math.max(end.at, latest?.startedAt ?? 0);
  if (reason === 'Skipped') step('DeferSkipped', { ...skipped, message });
  else step('DeferEnded', { key: `Defer/${name}/Ended`, at, exitCode, reason, message });
}
