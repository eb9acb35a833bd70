/** Explains why a terminating Pod waits for one of its defer containers (entries). Pure. */
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import type { ContainerStateTerminated, DeferContainer } from '../../api/generated/types.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { itsImage, lacksImage } from '../pod-containers.ts';
import { begun, deadlineOf, hurry, killTimeOf, preExitDeadlineOf, still, untilText } from './ending-phrases.ts';
import { endOfEntry, endText } from './entries.ts';
import { failedRun } from './failed-start.ts';
import { imageActions, lackOfImage } from './images.ts';
import { objectFinding } from './needs/objects.ts';
import { isGhost } from './stops/reboot.ts';
import {
  type Action,
  ago,
  called,
  clock,
  clockIn,
  type Explanation,
  eventLine,
  eventOf,
  forTime,
  inTime,
  type Living,
  lastStep,
  oneLine,
  type Shown,
  seeOutput,
  shownContainers,
  withoutAttempt,
} from './subject.ts';

interface Turn {
  shown: Shown;
  spec: DeferContainer;
  place: string;
  evidence: string[];
  /** `at`: when the entry is stopped at the latest; undefined if not known. `because`: the evidence for this time. */
  limit: { at: Millis | undefined; what: 'deadline' | 'its timeoutSeconds end at'; because: string[] };
}

/**
 * Explains the entry whose turn it is; undefined if no entry is left, if the turn of the next entry has not begun, or if a restart of the
 * machine has ended the entry's run.
 */
export function explainTurn(subject: Living): Explanation | undefined {
  const turn = turnOf(subject);
  if (turn === undefined) return undefined;
  const { running, waiting } = turn.shown.status.state ?? {};
  if (waiting?.reason === 'PendingDefer' || waiting?.reason === 'PodRunning') return undefined;
  if (isGhost(subject, turn.shown.status)) return undefined;
  if (running !== undefined) return stopping(subject, turn) ?? runs(subject, turn);
  return retried(subject, turn) ?? starts(subject, turn);
}

/** Returns a line for each entry that has ended. */
export const endedEntries = (subject: Living): string[] =>
  shownContainers(subject).flatMap(({ kind, status }) => {
    const end = kind === 'defer' ? endOfEntry(subject.pod, status, subject.transitions) : undefined;
    return end === undefined ? [] : [`defer container ${end.name}: ${endText(end)}`];
  });

function turnOf(subject: Living): Turn | undefined {
  const { pod } = subject;
  const entries = shownContainers(subject).filter(({ kind }) => kind === 'defer');
  const index = entries.findIndex(({ status }) => status.state?.terminated === undefined);
  const shown = entries[index];
  const spec = pod.spec?.deferContainers?.find(({ name }) => name === shown?.name);
  if (shown === undefined || spec === undefined) return undefined;
  const limit = limitOf(subject, spec);
  return {
    shown,
    spec,
    limit,
    place: `${called(shown)} (${index + 1} of ${entries.length})`,
    evidence: [...begun(subject), ...endedEntries(subject), ...limit.because],
  };
}

function limitOf(subject: Living, { name, trigger, timeoutSeconds }: DeferContainer): Turn['limit'] {
  const { turn } = subject.pod.status?.termination ?? {};
  const deadline = deadlineOf(subject);
  const stage = trigger === 'PostExit' ? deadline : preExitDeadlineOf(subject);
  const since = turn?.entry === name ? parseTime(turn.since) : undefined;
  const timeout = since === undefined || timeoutSeconds === undefined ? undefined : since + timeoutSeconds * 1000;
  if (timeout !== undefined && (stage === undefined || timeout < stage))
    return { at: timeout, what: 'its timeoutSeconds end at', because: [`its timeoutSeconds is ${timeoutSeconds}`] };
  const isReserved = stage !== undefined && deadline !== undefined && stage < deadline;
  return {
    at: stage,
    what: 'deadline',
    because: isReserved ? [`the time from ${clock(stage)} on is reserved for PostExit entries`] : [],
  };
}

function stopping(subject: Living, { shown, place, evidence }: Turn): Explanation | undefined {
  const { now, pod } = subject;
  const step = lastStep(subject, ['Started', 'StopSignal'], shown.name);
  const isGivenUp = pod.status?.termination?.skip?.includes(shown.name) === true;
  if (step?.type !== 'StopSignal' && !isGivenUp) return undefined;
  const what = isGivenUp ? 'was given up and ' : '';
  const signalled = step?.type === 'StopSignal' ? step : undefined;
  const kill = signalled === undefined ? undefined : killTimeOf(subject, signalled);
  const said =
    signalled === undefined
      ? 'is about to be sent its stop signal'
      : `was sent its stop signal ${ago(signalled.at, now)}${kill === undefined ? '' : `; it will be killed at ${clockIn(kill, now)}`}`;
  return {
    sentence: `${still(subject)}: its ${place} ${what}${said}.`,
    evidence: [
      ...evidence,
      ...(signalled?.message === undefined ? [] : [`it was stopped: ${signalled.message}`]),
      ...eventLine(eventOf(subject, ['DeferContainerGivenUp'], shown.name), subject),
    ],
    actions: [{ description: 'wait a moment' }],
  };
}

/** The API refuses to give up the entries of a mirror Pod. */
const giveUp = ({ name, namespace, pod, hints }: Living, entry: string): Action[] =>
  isMirrorPod(pod)
    ? []
    : [{ description: 'give this entry up', command: hints.lifepod(`skip ${name} ${entry} -n ${namespace}`) }];

function runs(subject: Living, { shown, place, evidence, limit }: Turn): Explanation {
  const { now } = subject;
  const { restartCount, state } = shown.status;
  const since = lastStep(subject, ['Started'], shown.name)?.at ?? parseTime(state?.running?.startedAt);
  return {
    sentence: `${still(subject)}: its ${place} ${since === undefined ? 'is running' : `has been running for ${forTime(since, now)}`}${untilText(limit.at, subject, limit.what)}.`,
    evidence: [...evidence, ...(restartCount > 0 ? [`this is attempt ${restartCount + 1}`] : [])],
    actions: [seeOutput(subject, shown.name, '-f'), hurry(subject), ...giveUp(subject, shown.name)],
  };
}

function retried(subject: Living, { shown, place, evidence, limit }: Turn): Explanation | undefined {
  const { now } = subject;
  const { state, lastState, restartCount } = shown.status;
  const failed = lastState?.terminated;
  if (state?.waiting?.reason !== 'CrashLoopBackOff' || failed === undefined) return undefined;
  const start = failedRun(subject, shown.name, failed);
  const attempts = restartCount + 1;
  const next = lastStep(subject, ['BackOff'], shown.name)?.deadline;
  const text = limit.what === 'deadline' ? 'its time ends' : 'its timeoutSeconds end';
  const never = withoutAttempt(next, { at: limit.at, text }, now);
  const again =
    never === undefined
      ? `will be retried${next === undefined ? '' : ` ${inTime(next, now)}`}${untilText(limit.at, subject, limit.what)}`
      : `is not tried again, ${never}`;
  return {
    sentence: `${still(subject)}: its ${place} ${start === undefined ? `${failureOf(failed)} and` : `${start.cause}; it`} ${again}.`,
    evidence: [
      ...evidence,
      `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}, the last one: ${oneLine(failed.message) || failed.reason}`,
    ],
    actions: [seeOutput(subject, shown.name), hurry(subject), ...giveUp(subject, shown.name)],
  };
}

const failureOf = ({ exitCode, reason }: ContainerStateTerminated): string =>
  reason === 'ContainerStatusUnknown' ? 'was lost' : `failed with exit code ${exitCode}`;

function starts(subject: Living, { shown, place, evidence, limit }: Turn): Explanation {
  const { now } = subject;
  const { waiting } = shown.status.state ?? {};
  const pulling = lastStep(subject, ['Pulling', 'Pulled', 'PullFailed'], shown.name);
  const isLacking = lacksImage(shown.status);
  // The node tries again until the time of the entry is over, so an object that is created until then lets the entry run.
  const lacking = waiting?.message === undefined ? undefined : objectFinding(subject, oneLine(waiting.message));
  const isStarting = waiting?.reason === undefined || waiting.reason === 'ContainerCreating';
  const said =
    isStarting && pulling?.type === 'Pulling'
      ? `waits for its image ${pulling.message}, which has been pulled for ${forTime(pulling.at, now)}`
      : isStarting
        ? 'is about to start'
        : isLacking
          ? `cannot run, because ${itsImage(subject.pod, shown)} ${lackOfImage(shown.status)}`
          : `cannot run, ${lacking === undefined ? oneLine(waiting.message) || waiting.reason : `because it ${lacking.cause}`}`;
  return {
    sentence: `${still(subject)}: its ${place} ${said}${untilText(limit.at, subject, limit.what)}.`,
    evidence: [
      ...evidence,
      ...(isStarting
        ? []
        : [
            `${called(shown)} waits: ${waiting.reason}${isLacking || lacking !== undefined ? `: ${oneLine(waiting.message)}` : ''}`,
          ]),
    ],
    actions: [
      ...(isLacking ? imageActions(subject, [shown]) : (lacking?.actions ?? [])),
      hurry(subject),
      ...giveUp(subject, shown.name),
    ],
  };
}
