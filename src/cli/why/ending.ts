/** Explains why a deleted Pod still exists, and why a completing Pod has not ended. Pure. */
import type { CoreV1Event } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import type { Millis } from '../../machinery/time.ts';
import {
  begun,
  deadlineOf,
  hurry,
  isEnding,
  killTimeOf,
  preExitDeadlineOf,
  still,
  untilText,
} from './ending-phrases.ts';
import { endedEntries, explainTurn } from './entry-turn.ts';
import { downRuntime, runtimeActions } from './node-troubles.ts';
import { firstProcess, hearSignals, isDeaf, needsTime, processEvidence } from './stops/pid-one.ts';
import { isGhost, isRunning } from './stops/reboot.ts';
import {
  ago,
  called,
  clockIn,
  type Explanation,
  eventOf,
  forTime,
  type Living,
  lastStep,
  lastTime,
  listed,
  oneLine,
  runningHook,
  type Shown,
  seeOutput,
  seeStatus,
  shownContainers,
  sidecarsOf,
} from './subject.ts';

/** Most processes that handle their stop signal end within this time. */
const QUICK_MILLIS = 1000;
/** Event timestamps are whole seconds, so the time of an Event may be this much later than its timestamp. */
const EVENT_TIME_MILLIS = 1000;

export function explainEnding(subject: Living): Explanation | undefined {
  const { pod } = subject;
  if (!isEnding(subject)) return undefined;
  const running = shownContainers(subject).filter(({ status }) => isRunning(subject, status));
  const finalizers = pod.metadata.finalizers ?? [];
  const nothingLeft = lastStep(subject, ['Removed']) !== undefined || pod.metadata.deletionGracePeriodSeconds === 0;
  if (finalizers.length > 0 && running.length === 0 && nothingLeft) return finalizersOf(subject, finalizers);
  return (
    silentRuntime(subject) ??
    explainTurn(subject) ??
    fruitless(subject) ??
    hookOf(subject, running) ??
    unstoppedOf(subject, running) ??
    cutByReboot(subject) ?? {
      sentence: `${still(subject)}: its node is removing what is left of it.`,
      evidence: [...begun(subject), ...endedEntries(subject)],
      actions: [{ description: 'wait a moment' }, seeStatus(subject, 'see whether containerd is healthy')],
    }
  );
}

/** Explains a termination whose containers ended at a restart of the machine, while their status still shows them as running. */
function cutByReboot(subject: Living): Explanation | undefined {
  const { rebootedAt, now } = subject;
  if (rebootedAt === undefined || !shownContainers(subject).some(({ status }) => isGhost(subject, status)))
    return undefined;
  return {
    sentence: `${still(subject)}: its containers ended when its machine was restarted, and its node continues its termination.`,
    evidence: [
      ...begun(subject),
      ...endedEntries(subject),
      `its node reported the restart of the machine ${ago(rebootedAt, now)}`,
    ],
    actions: [{ description: 'wait a moment' }],
  };
}

function finalizersOf(subject: Living, finalizers: readonly string[]): Explanation {
  const { name, namespace, hints } = subject;
  const some = finalizers.length > 1 ? 'the finalizers' : 'the finalizer';
  return {
    sentence: `${name} is not gone yet: none of its containers run any more, but ${some} ${listed(finalizers)} ${finalizers.length > 1 ? 'keep' : 'keeps'} its object.`,
    evidence: [`metadata.finalizers: ${finalizers.join(', ')}`, ...begun(subject)],
    actions: [
      { description: 'wait: the client that set them removes them when it is done' },
      {
        description: 'remove them by hand',
        command: hints.kubectl(`patch pod ${name} -n ${namespace} --type=merge -p '{"metadata":{"finalizers":null}}'`),
      },
    ],
  };
}

function silentRuntime(subject: Living): Explanation | undefined {
  const down = downRuntime(subject.node);
  if (down === undefined) return undefined;
  const { name, message, since } = down;
  const time = since === undefined ? 'does not answer' : `has not answered for ${forTime(since, subject.now)}`;
  const actions = runtimeActions(subject);
  return {
    sentence: `${still(subject)}: the container runtime of its node ${name} ${time}.`,
    evidence: [
      ...begun(subject),
      `the node is not ready: ${message}`,
      'its termination continues when the runtime answers; until then its grace period does not count',
    ],
    actions: [
      ...actions,
      seeStatus(subject, 'see what runs'),
      ...(actions.length > 0 ? [] : [{ description: 'read the log of containerd, which says why it does not answer' }]),
    ],
  };
}

const NO_EFFECT = /had no effect/;

/**
 * Explains a termination in which an action of the node had no effect; undefined if there was no such action, or if another step has been
 * recorded since.
 */
function fruitless(subject: Living): Explanation | undefined {
  const event = eventOf(subject, ['FailedKillPod']);
  const step = subject.transitions.findLast(({ message }) => NO_EFFECT.test(message ?? ''));
  const at = Math.max(timeOf(event), step?.at ?? 0);
  if (at === 0) return undefined;
  const isStale = subject.transitions.some(
    (other) => other.at > at + EVENT_TIME_MILLIS && !NO_EFFECT.test(other.message ?? ''),
  );
  if (isStale) return undefined;
  const isEvent = timeOf(event) >= (step?.at ?? 0) - EVENT_TIME_MILLIS;
  const action = oneLine(isEvent ? event?.message : step?.message).replace(/^error killing pod: /, '');
  return {
    sentence: `${still(subject)}: its node is trying to terminate it, so far without effect: ${action}.`,
    evidence: [...begun(subject), ...(isEvent ? [] : [`step ${step?.type}, ${ago(at, subject.now)}`])],
    actions: [
      {
        description: 'wait: the node retries with a back-off; removing containers with ctr or crictl can be the cause',
      },
      seeStatus(subject, 'see whether containerd is healthy'),
    ],
  };
}

const timeOf = (event: CoreV1Event | undefined): Millis =>
  event === undefined || !NO_EFFECT.test(event.message ?? '') ? 0 : lastTime(event);

function hookOf(subject: Living, running: readonly Shown[]): Explanation | undefined {
  const { now } = subject;
  for (const shown of running) {
    const step = runningHook(subject, shown.name, 'preStop');
    if (step === undefined) continue;
    // The hook of a sidecar may run until the deadline of the termination, other hooks until that of the PreExit stage.
    const until = sidecarsOf(subject.pod).has(shown.name) ? deadlineOf(subject) : preExitDeadlineOf(subject);
    return {
      sentence: `${still(subject)}: the preStop hook of ${called(shown)} has been running for ${forTime(step.at, now)}${untilText(until, subject)}.`,
      evidence: [...begun(subject), ...endedEntries(subject), `step HookBegan (preStop), ${ago(step.at, now)}`],
      actions: [hurry(subject)],
    };
  }
  return undefined;
}

/** Explains which container has not ended after its stop signal. */
function unstoppedOf(subject: Living, running: readonly Shown[]): Explanation | undefined {
  const { now, pod } = subject;
  const signalled = running.flatMap((shown) => {
    const step = lastStep(subject, ['StopSignal'], shown.name);
    return step === undefined ? [] : [{ shown, step }];
  });
  const first = signalled.sort((a, b) => a.step.at - b.step.at)[0];
  if (first === undefined) return undefined;
  const { shown, step } = first;
  const { name } = shown;
  const time = forTime(step.at, now);
  const killAt = killTimeOf(subject, step);
  const kill = killAt === undefined ? '' : `; it will be killed at ${clockIn(killAt, now)}`;
  const quiet = now - step.at < QUICK_MILLIS;
  return {
    sentence: quiet
      ? `${still(subject)}: ${called(shown)} was just sent its stop signal${kill}.`
      : `${still(subject)}: ${firstProcess(pod)} of ${called(shown)} ${isDeaf(pod, name) ? `has ignored its stop signal for ${time}` : `still runs ${time} after its stop signal`}${kill}.`,
    evidence: [
      ...begun(subject),
      ...endedEntries(subject),
      `stop signal sent ${ago(step.at, now)}${reasonOf(step)}`,
      ...(quiet ? [] : processEvidence(pod, name)),
    ],
    actions: quiet
      ? [{ description: 'wait a moment' }]
      : [
          ...(isDeaf(pod, name) ? [] : [seeOutput(subject, name)]),
          ...(needsTime(pod, name) ? [] : [hearSignals(pod, name)]),
          hurry(subject),
        ],
  };
}

const reasonOf = ({ message }: Transition): string => (message === undefined ? '' : ` (${message})`);
