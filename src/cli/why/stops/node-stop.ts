/** Explains why the node stopped a run of a container, or is stopping it, although the Pod is not ending. Pure. */
import type { Pod } from '../../../api/generated/types.ts';
import type { Transition } from '../../../lifecycle/types.ts';
import { podContainers } from '../../pod-containers.ts';
import { isOfLostSandbox } from '../../timeline/sandbox-ends.ts';
import { missingPort } from '../needs/port-names.ts';
import {
  type Action,
  ago,
  called,
  eventOf,
  type Living,
  lastStep,
  oneLine,
  type Shown,
  type Subject,
} from '../subject.ts';
import { failureClause, failureEvent, failureText } from './probe-failure.ts';
import { isRunning } from './reboot.ts';

/** Why the node stopped a run that has ended or is ending. */
export interface NodeStop {
  step: Transition;
  /** Why the node stops the run, in the words of the step; the same for each run that it stops for this reason. */
  message: string;
  cause: string;
  action: Action;
  /** Present if the node stopped the run because the sandbox was lost. */
  isLoss?: true;
}

type Named = Pick<Shown, 'kind' | 'name' | 'isSidecar'>;

/**
 * Returns why the node stopped the newest run of the container, or the run of `exit`, although the Pod was not ending; undefined if the
 * node did not stop that run.
 */
export function stopOf(
  subject: Pick<Subject, 'pod' | 'events' | 'transitions'>,
  shown: Named,
  exit?: Pick<Transition, 'attempt'>,
): NodeStop | undefined {
  const step = subject.transitions.findLast((each) => each.type === 'StopSignal' && isOfRun(each, shown, exit));
  if (step === undefined) return undefined;
  return step.message === undefined ? stopForLoss(subject, step) : stopFor(subject, shown, step, step.message);
}

/**
 * Returns why the node stopped the run, if `step` belongs to the stop of a run whose sandbox was lost. The run outlived the sandbox, so the
 * machine had not stopped.
 */
function stopForLoss({ transitions }: Pick<Subject, 'transitions'>, step: Transition): NodeStop | undefined {
  if (!isOfLostSandbox(step, transitions)) return undefined;
  const message = 'its sandbox was lost';
  return {
    step,
    message,
    cause: `${message}, probably because the pause process of the sandbox was killed`,
    action: {
      description: "find out what killed the pause process: a user, or the kernel if memory ran out (see 'dmesg')",
    },
    isLoss: true,
  };
}

const isOfRun = (step: Transition, { name }: Named, run?: Pick<Transition, 'attempt'>): boolean =>
  step.container === name && (run?.attempt === undefined || step.attempt === undefined || step.attempt === run.attempt);

/** Explains a stop. `step`: a step of the run that shows the stop. `why`: the reason as in a StopSignal or in the Event Killing. */
function stopFor(
  subject: Pick<Subject, 'pod' | 'events' | 'transitions'>,
  shown: Named,
  step: Transition,
  why: string,
): NodeStop {
  const { name } = shown;
  const ofRun = (each: Transition): boolean => isOfRun(each, shown, step);
  const probe = /failed (startup|liveness) probe/.exec(why)?.[1] as 'startup' | 'liveness' | undefined;
  if (probe !== undefined) {
    const failing = subject.transitions.findLast(
      (each) => each.type === 'ProbeFailing' && each.reason === probe && ofRun(each),
    );
    const event = failureEvent(subject, probe, name, { until: step.at });
    const text = failing?.message ?? (event && failureText(event));
    return {
      step,
      message: why,
      cause: failureClause(probe, shown, 'failed', text && oneLine(text)),
      action: {
        description: `fix what its ${probe} probe checks, or give the probe more time (timeoutSeconds, failureThreshold)`,
      },
    };
  }
  if (why === 'FailedPostStartHook') {
    const failed = subject.transitions.findLast(
      (each) => each.type === 'HookFailed' && each.reason === 'postStart' && ofRun(each),
    );
    return {
      step,
      message: why,
      cause: hookCause(subject.pod, shown, failed?.message),
      action: { description: 'fix its postStart hook, or what the hook needs; to change the Pod, recreate it' },
    };
  }
  // Only a new image changes the definition of a container that runs.
  const isNewImage = why.includes('definition changed');
  const cause = isNewImage ? `the image of ${called(shown)} was changed` : `its node stopped ${called(shown)}, ${why}`;
  return { step, message: why, cause, action: { description: 'wait: it starts again' } };
}

/** Returns the last step of the container if it shows that the node is stopping its run. */
function lastStopStep({ transitions }: Living, { name }: Named): Transition | undefined {
  const last = transitions.findLast(
    (step) => step.container === name && (step.type === 'Started' || step.type === 'Exited' || isStopStep(step)),
  );
  return last !== undefined && isStopStep(last) ? last : undefined;
}

/** Whether the node is stopping the current run of the container, for whatever reason. */
export const isStopping = (subject: Living, { kind, name, status }: Shown): boolean =>
  kind !== 'defer' && isRunning(subject, status) && lastStopStep(subject, { kind, name }) !== undefined;

/** The node stops a run after it has recorded that a startup or liveness probe fails. A preStop hook runs before the stop signal. */
const isStopStep = (step: Transition): boolean =>
  step.type === 'StopSignal' || isProbeStop(step) || (step.type === 'HookBegan' && step.reason === 'preStop');

const isProbeStop = ({ type, reason }: Transition): boolean =>
  type === 'ProbeFailing' && (reason === 'startup' || reason === 'liveness');

/**
 * Returns why the node is stopping the current run of the container, although the Pod is not ending; undefined if the node does not stop
 * it, or if neither the record nor an Event says why.
 */
export function currentStop(subject: Living, shown: Named): NodeStop | undefined {
  const last = lastStopStep(subject, shown);
  if (last === undefined) return undefined;
  const signalled = stopOf(subject, shown, last);
  if (signalled !== undefined || last.type === 'StopSignal') return signalled;
  const failing = subject.transitions.findLast((step) => isProbeStop(step) && isOfRun(step, shown, last));
  if (failing !== undefined) return stopFor(subject, shown, failing, `failed ${failing.reason} probe`);
  const loss = stopForLoss(subject, last);
  if (loss !== undefined) return loss;
  const killing = oneLine(eventOf(subject, ['Killing'], shown.name)?.message);
  return killing === '' || killing === `Stopping container ${shown.name}`
    ? undefined
    : stopFor(subject, shown, last, killing);
}

export function hookCause(pod: Pod | undefined, shown: Named, message: string | undefined): string {
  return `the postStart hook of ${called(shown)} ${hookFailure(pod, shown, message)}`;
}

/** Returns a verb phrase such as `failed with exit code 3, OUTPUT`, from the message about the failure of the postStart hook. */
export function hookFailure(pod: Pod | undefined, shown: Named, message: string | undefined): string {
  const lack = missingPort(pod, shown, 'postStart');
  if (lack !== undefined) return `failed, because ${lack}`;
  const text = message ?? '';
  // Source: the messages in src/node/handlers, which are upstream's.
  const exec = /exited with (\d+).*, message: ("(?:[^"\\]|\\.)*")$/s.exec(text);
  if (exec !== null) {
    const output = oneLine(unquoted(exec[2] ?? ''));
    return `failed with exit code ${exec[1]}${output && `, ${output}`}`;
  }
  const error = oneLine(text.replace(/^.* failed - error: /s, '').replace(/, message: "[^"]*"$/, ''));
  return `failed${error && `, ${error}`}`;
}

function unquoted(text: string): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    return text.slice(1, -1);
  }
}

/** Returns a line for each container whose preStop hook has failed, unless the container has been started since. */
export const failedStopHooks = ({ pod, transitions, now }: Pick<Living, 'pod' | 'transitions' | 'now'>): string[] =>
  podContainers(pod).flatMap((each) => {
    const step = lastStep({ transitions }, ['Started', 'HookFailed'], each.name);
    if (step?.type !== 'HookFailed' || step.reason !== 'preStop') return [];
    const cause = missingPort(pod, each, 'preStop') ?? oneLine(step.message);
    return [`the preStop hook of ${called(each)} failed ${ago(step.at, now)}${cause && `: ${cause}`}`];
  });
