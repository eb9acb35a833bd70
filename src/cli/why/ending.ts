/** Why a Pod that is to go is not gone yet, and one that ends by itself has not ended. Pure. */
import type { Container } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import {
  ago,
  called,
  clock,
  type Explanation,
  eventLine,
  eventOf,
  forTime,
  inTime,
  type Living,
  lastStep,
  listed,
  oneLine,
  type Shown,
  shownContainers,
} from './subject.ts';

/** A process that listens to its stop signal has mostly ended by then. */
const QUICK_MILLIS = 1000;

export function explainEnding(subject: Living): Explanation | undefined {
  const { pod } = subject;
  const { phase = '', termination } = pod.status ?? {};
  const completes = phase === 'Terminating' || (termination !== undefined && !['Succeeded', 'Failed'].includes(phase));
  if (!isDeleted(subject) && !completes) return undefined;
  const running = shownContainers(subject).filter(({ status }) => status.state?.running !== undefined);
  const finalizers = pod.metadata.finalizers ?? [];
  const nothingLeft = lastStep(subject, ['Removed']) !== undefined || pod.metadata.deletionGracePeriodSeconds === 0;
  if (finalizers.length > 0 && running.length === 0 && nothingLeft) return finalizersOf(subject, finalizers);
  return (
    deferOf(subject) ??
    hookOf(subject, running) ??
    deafOf(subject, running) ?? {
      sentence: `${still(subject)}: its node takes away what is left of it.`,
      evidence: [...begun(subject), ...eventLine(eventOf(subject, ['FailedKillPod']), subject)],
      advice: 'wait a moment; lifepod status shows whether containerd is well',
    }
  );
}

/** Until when the Pod may take: as recorded, else as the object tells. */
function deadlineOf(subject: Living): Millis | undefined {
  const { status, metadata } = subject.pod;
  return (
    parseTime(status?.termination?.deadline) ??
    lastStep(subject, ['DeadlineSet', 'TerminationBegan'])?.deadline ??
    parseTime(metadata.deletionTimestamp)
  );
}

const untilText = (subject: Living): string => {
  const deadline = deadlineOf(subject);
  return deadline === undefined ? '' : `, at the latest until ${clock(deadline)} (${inTime(deadline, subject.now)})`;
};

const isDeleted = ({ pod }: Living): boolean => pod.metadata.deletionTimestamp !== undefined;

/** One that nobody deletes does not go: it ends, and its object stays. */
const still = (subject: Living): string =>
  isDeleted(subject) ? `${subject.name} is not gone yet` : `${subject.name} has not ended yet`;

function begun(subject: Living): string[] {
  const step = lastStep(subject, ['TerminationBegan']);
  return [
    ...(step === undefined ? [] : [`its end began ${ago(step.at, subject.now)}: ${step.reason}`]),
    ...(isDeleted(subject) ? [] : ['nobody has deleted it: its object stays when it has ended']),
  ];
}

const hurry = (subject: Living): string =>
  isDeleted(subject)
    ? `wait, or cut it short: kubectl delete pod ${subject.name} -n ${subject.namespace} --now`
    : 'wait: its phase tells then how it ended';

function finalizersOf(subject: Living, finalizers: readonly string[]): Explanation {
  const { name, namespace } = subject;
  const some = finalizers.length > 1 ? 'the finalizers' : 'the finalizer';
  return {
    sentence: `${name} is not gone yet: nothing of it runs any more, but ${some} ${listed(finalizers)} ${finalizers.length > 1 ? 'keep' : 'keeps'} its object.`,
    evidence: [`metadata.finalizers: ${finalizers.join(', ')}`, ...begun(subject)],
    advice: `whoever set them takes them away once done; by hand: kubectl patch pod ${name} -n ${namespace} --type=merge -p '{"metadata":{"finalizers":null}}'`,
  };
}

/** The entry of the list of defer containers whose turn it is. */
function deferOf(subject: Living): Explanation | undefined {
  const { name, namespace, now } = subject;
  const entries = shownContainers(subject).filter(({ kind }) => kind === 'defer');
  const index = entries.findIndex(({ status }) => status.state?.terminated === undefined);
  const entry = entries[index];
  if (entry === undefined) return undefined;
  const { running, waiting } = entry.status.state ?? {};
  const place = `${called(entry)} (${index + 1} of ${entries.length})`;
  const until = untilText(subject);
  if (waiting?.reason === 'PendingDefer' || waiting?.reason === 'PodRunning') return undefined;
  const since = lastStep(subject, ['Started'], entry.name)?.at ?? parseTime(running?.startedAt);
  const done = entries.slice(0, index).map(({ name: own, status }) => {
    const { terminated } = status.state ?? {};
    return `defer container ${own}: ${terminated?.reason}, exit code ${terminated?.exitCode}`;
  });
  const logs = `see what it does: lifepod logs ${name} -n ${namespace} -c ${entry.name} -f`;
  const failed = entry.status.lastState?.terminated;
  if (waiting?.reason === 'CrashLoopBackOff' && failed !== undefined) {
    const attempts = entry.status.restartCount + 1;
    const next = lastStep(subject, ['BackOff'], entry.name)?.deadline;
    const again = `is tried again${next === undefined ? '' : ` ${inTime(next, now)}`}`;
    return {
      sentence: `${still(subject)}: its ${place} failed with exit code ${failed.exitCode} and ${again}${until}.`,
      evidence: [
        ...begun(subject),
        ...done,
        `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}, the last one: ${oneLine(failed.message) || failed.reason}`,
      ],
      advice: `see what it says: lifepod logs ${name} -n ${namespace} -c ${entry.name}; ${hurry(subject)}`,
    };
  }
  if (running === undefined)
    return {
      sentence: `${still(subject)}: its ${place} cannot run, ${oneLine(waiting?.message) || waiting?.reason}${until}.`,
      evidence: [...begun(subject), ...done, `${called(entry)} waits: ${waiting?.reason}`],
      advice: hurry(subject),
    };
  return {
    sentence: `${still(subject)}: its ${place} runs${since === undefined ? '' : `, for ${forTime(since, now)} now`}${until}.`,
    evidence: [
      ...begun(subject),
      ...done,
      ...(entry.status.restartCount > 0 ? [`it is attempt ${entry.status.restartCount + 1} of it`] : []),
    ],
    advice: `${logs}; ${hurry(subject)}`,
  };
}

function hookOf(subject: Living, running: readonly Shown[]): Explanation | undefined {
  const { now } = subject;
  for (const shown of running) {
    const step = lastStep(subject, ['HookBegan', 'HookDone', 'HookFailed', 'StopSignal'], shown.name);
    if (step?.type !== 'HookBegan' || step.reason !== 'preStop') continue;
    return {
      sentence: `${still(subject)}: the preStop hook of ${called(shown)} runs, for ${forTime(step.at, now)} now${untilText(subject)}.`,
      evidence: [...begun(subject), `step HookBegan (preStop), ${ago(step.at, now)}`],
      advice: hurry(subject),
    };
  }
  return undefined;
}

/** Its stop signal has come, and it runs on. */
function deafOf(subject: Living, running: readonly Shown[]): Explanation | undefined {
  const { now } = subject;
  const told = running.flatMap((shown) => {
    const step = lastStep(subject, ['StopSignal'], shown.name);
    return step === undefined ? [] : [{ shown, step }];
  });
  const first = told.sort((a, b) => a.step.at - b.step.at)[0];
  if (first === undefined) return undefined;
  const { shown, step } = first;
  const kill =
    step.deadline === undefined ? '' : `; it will be killed at ${clock(step.deadline)} (${inTime(step.deadline, now)})`;
  const quiet = now - step.at < QUICK_MILLIS;
  return {
    sentence: quiet
      ? `${still(subject)}: ${called(shown)} has just been told to stop${kill}.`
      : `${still(subject)}: PID 1 of ${called(shown)} has ignored its stop signal for ${forTime(step.at, now)}${kill}.`,
    evidence: [
      ...begun(subject),
      `stop signal sent ${ago(step.at, now)}${reasonOf(step)}`,
      ...commandOf(subject, shown.name),
    ],
    advice: quiet
      ? 'wait a moment'
      : `a shell as PID 1 does not hand SIGTERM on: let it exec the program, or trap TERM; ${hurry(subject)}`,
  };
}

const reasonOf = ({ message }: Transition): string => (message === undefined ? '' : ` (${message})`);

function commandOf({ pod }: Living, container: string): string[] {
  const { initContainers = [], containers = [], deferContainers = [] } = pod.spec ?? {};
  const spec: Container | undefined = [...initContainers, ...containers, ...deferContainers].find(
    (each) => each.name === container,
  );
  const words = [...(spec?.command ?? []), ...(spec?.args ?? [])];
  return words.length === 0 ? [] : [`its PID 1: ${oneLine(words.join(' ')).slice(0, 120)}`];
}
