/**
 * What a Pod's record tells: each step of its life, as a fact with a key and a time. Each is given out once, when it becomes
 * true; an agent that starts anew gives out all that hold, and whoever keeps the record knows by the keys what it has.
 *
 * A key with an @ tells how something turned: what stands before the @ names it, and who turned as it had turned before
 * has not turned (isRepeated). So an agent that starts anew may tell again how all stands.
 *
 * Types, of the Pod: Created Scheduled VolumesMounted MountFailed SandboxReady SandboxFailed SandboxLost SandboxStopped
 * DeletionRequested TerminationBegan DeadlineSet (first and at each move) AppsStopping Finished Removed (all that the node
 * had of it) Gone (the object); NotScheduled (told by a controller, where the Pod goes without a node). Of a container: Pulling
 * Pulled PullFailed (deadline: the next try) StartFailed Started Exited BackOff (deadline: the next try) ProbePassing
 * ProbeFailing (reason: which) HookBegan HookDone HookFailed (reason: which) StopSignal (deadline: the kill) DeferBegan
 * DeferEnded DeferSkipped.
 */
import { type Millis, parseTime } from '../machinery/time.ts';
import { retryOf } from './ending.ts';
import { MINIMUM_GRACE_SECONDS } from './hooks.ts';
import { pullRetryAt, restartAfter, wantsRestart } from './restart.ts';
import type { StatusInput } from './status.ts';
import { actionKey, type ContainerState, type HookKind, runKey, type Transition } from './types.ts';
import type { ContainerView } from './view.ts';

type Details = { [Field in keyof Omit<Transition, 'key' | 'at' | 'type'>]: Transition[Field] | undefined };
type Tell = (key: string, at: Millis, type: string, details?: Details) => void;

/** All that hold now, by key. */
export function transitionsOf(given: StatusInput): Map<string, Transition> {
  const transitions = new Map<string, Transition>();
  const tell: Tell = (key, at, type, details = {}) => {
    const known = Object.entries(details).filter(([, value]) => value !== undefined && value !== '');
    transitions.set(key, { key, at, type, ...Object.fromEntries(known) });
  };
  beginning(given, tell);
  endBegins(given, tell);
  sandboxes(given, tell);
  for (const container of given.view.all) {
    const { kind, spec } = container;
    const tellOf: Tell = (key, at, type, details) =>
      tell(key, at, type, { container: spec.name, containerKind: kind, ...details });
    if (kind === 'defer') entryBegins(container, given, tellOf);
    images(container, given, tellOf);
    for (const run of [...container.runs].reverse()) {
      const tellRun: Tell = (key, at, type, details) => tellOf(key, at, type, { attempt: run.attempt, ...details });
      runs(container, run, given, tellRun);
      hooks(container, run, given, tellRun);
      probes(run, given, tellRun);
    }
    if (kind === 'defer') entryEnds(container, given, tellOf);
  }
  endIsReached(given, tell);
  return transitions;
}

/** Of a Pod of which nothing is left, on its node and in the API. Who saw the first may have died before it was written. */
export const lastSteps = (at: Millis): Transition[] =>
  ['Removed', 'Gone'].map((type): Transition => ({ key: type, at, type }));

/** What a key with an @ is about; undefined for keys without. */
export const subjectOf = ({ key }: Pick<Transition, 'key'>): string | undefined => {
  const end = key.lastIndexOf('@');
  return end < 0 ? undefined : key.slice(0, end);
};

/** It says of its subject what the last one said. */
export const isRepeated = (next: Transition, last: Transition | undefined): boolean =>
  last !== undefined && last.type === next.type && last.reason === next.reason && last.message === next.message;

function beginning({ input, view }: StatusInput, tell: Tell): void {
  const { metadata, spec, status } = input.pod;
  const createdAt = parseTime(metadata.creationTimestamp);
  if (createdAt !== undefined) tell('Created', createdAt, 'Created');
  const scheduled = status?.conditions?.find((each) => each.type === 'PodScheduled' && each.status === 'True');
  if (scheduled !== undefined)
    tell('Scheduled', parseTime(scheduled.lastTransitionTime) ?? input.now, 'Scheduled', {
      message: `to node ${spec?.nodeName}`,
    });
  if (view.observed.volumes === 'mounted') tell('VolumesMounted', input.now, 'VolumesMounted');
  for (const [key, failure] of Object.entries(view.observed.failures)) {
    const type = key.startsWith('createSandbox/')
      ? 'SandboxFailed'
      : key === 'mountVolumes'
        ? 'MountFailed'
        : undefined;
    if (type !== undefined) tell(`${key}@${failure.at}`, failure.at, type, { message: failure.message });
  }
}

function sandboxes({ view, termination, now, stopped }: StatusInput, tell: Tell): void {
  const ending = termination !== undefined || stopped;
  for (const sandbox of view.observed.sandboxes) {
    const name = `Sandbox/${sandbox.attempt}/${sandbox.id.slice(0, 12)}`;
    const { attempt } = sandbox;
    tell(`${name}/Ready`, sandbox.createdAt, 'SandboxReady', { attempt, message: sandbox.ips[0] });
    if (sandbox.ready) continue;
    if (!sandbox.stopped && !ending) tell(`${name}/Lost`, now, 'SandboxLost', { attempt });
    else tell(`${name}/Stopped`, now, 'SandboxStopped', { attempt });
  }
}

/** Of the newest run and of the one to come. */
function images(container: ContainerView, { input, plan, now }: StatusInput, tell: Tell): void {
  const { name, image = '' } = container.spec;
  const { failures, images: known } = input.observed;
  for (const attempt of [container.nextAttempt - 1, container.nextAttempt]) {
    const about = { container: name, attempt, image };
    const pullKey = actionKey({ kind: 'pullImage', ...about });
    const failure = failures[pullKey];
    const pulling = `${pullKey}/Pulling/${failure?.at ?? 0}`;
    const state = known[name];
    const isThere = state?.state === 'present' && state.attempt === attempt && state.image === image;
    // What has just ended may count as under way for one more decision.
    if (plan.pending(pullKey) && !isThere && failure?.at !== now)
      tell(pulling, now, 'Pulling', { attempt, message: image });
    if (isThere && state.pulled !== undefined)
      tell(`${pullKey}/Pulled`, now, 'Pulled', {
        attempt,
        message: `${image}: ${Math.round(state.pulled.millis)} ms, ${state.pulled.sizeBytes} bytes`,
      });
    if (failure !== undefined)
      tell(`${pullKey}/Failed/${failure.at}`, failure.at, 'PullFailed', {
        ...{ attempt, reason: failure.reason, message: failure.message, deadline: pullRetryAt(failure) },
      });
    const checkKey = actionKey({ kind: 'checkImage', ...about, mustExist: false });
    for (const key of [checkKey, `startContainer/${name}/${attempt}`]) {
      const failed = failures[key];
      if (failed !== undefined)
        tell(`${key}@${failed.at}`, failed.at, 'StartFailed', {
          ...{ attempt, reason: failed.reason, message: failed.message },
        });
    }
  }
}

const nameOf = (run: ContainerState): string => `${run.name}/${run.attempt}`;

function runs(container: ContainerView, run: ContainerState, given: StatusInput, tell: Tell): void {
  const { stops, termination, signalledAt } = given;
  if (run.startedAt !== undefined) tell(`Started/${nameOf(run)}`, run.startedAt, 'Started');
  const stop = stops[run.id];
  const signalled = signalledAt[run.id];
  if (signalled !== undefined) {
    const deadline = Math.min(
      stop?.deadline ?? Number.POSITIVE_INFINITY,
      termination?.deadline ?? Number.POSITIVE_INFINITY,
    );
    tell(`StopSignal/${nameOf(run)}`, signalled, 'StopSignal', {
      message: stop?.message,
      deadline: Number.isFinite(deadline) ? Math.max(deadline, signalled + MINIMUM_GRACE_SECONDS * 1000) : undefined,
    });
  }
  if (run.state !== 'exited') return;
  // Of a run that ends at once the runtime may tell an end before its start.
  const exitedAt = Math.max(run.finishedAt ?? run.createdAt, run.startedAt ?? 0);
  const exitCode = run.exitCode ?? 137;
  tell(`Exited/${nameOf(run)}`, exitedAt, 'Exited', {
    exitCode,
    reason: run.reason || (exitCode === 0 ? 'Completed' : 'Error'),
    message: run.message,
  });
  const at = nextRunAt(container, run, given);
  if (at !== undefined && at > exitedAt) tell(`BackOff/${nameOf(run)}`, exitedAt, 'BackOff', { deadline: at });
}

/** When the container runs again after this run; undefined: never, or it is not waiting for that. */
function nextRunAt(container: ContainerView, run: ContainerState, given: StatusInput): Millis | undefined {
  const { stops, termination, view, list, progress } = given;
  if (run !== container.current) return undefined;
  if (container.kind === 'defer') {
    const isTurn = list?.turn?.container === container && !list.over;
    return isTurn ? retryOf(given, container, run).at : undefined;
  }
  if (termination !== undefined || progress.stage === 'finished') return undefined;
  return wantsRestart(container, view.restartPolicy, run, stops) ? restartAfter(run, stops).at : undefined;
}

/** What a hook answered may not be for everyone: that it failed is told, as in Events. */
function hooks({ spec }: ContainerView, run: ContainerState, given: StatusInput, tell: Tell): void {
  for (const hook of ['postStart', 'preStop'] satisfies HookKind[]) {
    if (spec.lifecycle?.[hook] === undefined) continue;
    const name = `Hook/${hook}/${nameOf(run)}`;
    const began = `${name}/Began`;
    const pending = given.plan.pending(actionKey({ kind: 'runHook', container: run.name, id: run.id, hook }));
    if (pending || given.input.memory.recorded.has(began)) tell(began, given.now, 'HookBegan', { reason: hook });
    const result = given.input.observed.hooks[runKey(run.id, hook)];
    if (result !== undefined)
      tell(`${name}/Ended`, given.now, result.failure === undefined ? 'HookDone' : 'HookFailed', { reason: hook });
  }
}

/** A new agent takes over what the Pod's status shows, and tells it. */
function probes(run: ContainerState, given: StatusInput, tell: Tell): void {
  const { memory, observed } = given.input;
  const isNew = memory.recorded.size === 0;
  for (const kind of ['startup', 'liveness', 'readiness'] as const) {
    const key = runKey(run.id, kind);
    const passing = given.probes[key]?.passing;
    if (passing === undefined || (passing === memory.probes[key]?.passing && !isNew)) continue;
    tell(`Probe/${kind}/${nameOf(run)}@${given.now}`, given.now, passing ? 'ProbePassing' : 'ProbeFailing', {
      reason: kind,
      message: passing ? undefined : observed.probes[key]?.message,
    });
  }
}

/** The turn of an entry of the list of defer containers: with its pull or its first run. */
function entryBegins(container: ContainerView, given: StatusInput, tell: Tell): void {
  const { name, image = '' } = container.spec;
  const { plan, now, input, list } = given;
  const began = `Defer/${name}/Began`;
  const first = container.runs.at(-1);
  const own = list?.entries.find((each) => each.container === container);
  const attempts = [`startContainer/${name}/0`, actionKey({ kind: 'pullImage', container: name, attempt: 0, image })];
  const due = own !== undefined && list?.turn === own && attempts.some((key) => plan.pending(key));
  if (first !== undefined || due || input.memory.recorded.has(began))
    tell(began, Math.min(now, first?.startedAt ?? first?.createdAt ?? now), 'DeferBegan');
}

/** With all its attempts; its end is final once the Pod's status tells it. */
function entryEnds(container: ContainerView, { list, now }: StatusInput, tell: Tell): void {
  const { name } = container.spec;
  const own = list?.entries.find((each) => each.container === container);
  if (own?.end?.recorded === undefined) return;
  const { at, reason, message, exitCode } = own.end;
  if (reason === 'Skipped') tell(`Defer/${name}/Skipped`, now, 'DeferSkipped', { reason, message });
  else
    tell(`Defer/${name}/Ended`, Math.max(at, container.latest?.startedAt ?? 0), 'DeferEnded', {
      exitCode,
      reason,
      message,
    });
}

function endBegins({ input, view, termination, stopped, signalledAt, now }: StatusInput, tell: Tell): void {
  const { deletionTimestamp, deletionGracePeriodSeconds } = input.pod.metadata;
  if (deletionTimestamp !== undefined)
    tell('DeletionRequested', now, 'DeletionRequested', { message: `grace period ${deletionGracePeriodSeconds} s` });
  if (termination !== undefined) {
    const { reason, startedAt, deadline } = termination;
    tell('TerminationBegan', startedAt, 'TerminationBegan', { reason, deadline });
    // Of a Pod that is over no deadline counts any more, and each agent reckons another one.
    const key = `DeadlineSet/${deadline}`;
    if (!stopped || input.memory.recorded.has(key)) tell(key, now, 'DeadlineSet', { deadline });
    const told = view.apps.flatMap(({ runs: all }) => all.flatMap(({ id }) => signalledAt[id] ?? []));
    if (told.length > 0) tell('AppsStopping', Math.min(...told), 'AppsStopping');
  }
}

function endIsReached({ input, view, stopped, now }: StatusInput, tell: Tell): void {
  const { phase, reason, message } = input.pod.status ?? {};
  if (phase === 'Succeeded' || phase === 'Failed')
    tell('Finished', now, 'Finished', { reason: phase, message: [reason, message].filter(Boolean).join(': ') });
  const { sandboxes: left, containers, volumes } = view.observed;
  if (stopped && left.length === 0 && containers.length === 0 && volumes === 'gone') tell('Removed', now, 'Removed');
  if (input.removed) tell('Gone', now, 'Gone');
}
