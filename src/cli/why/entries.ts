/**
 * Describes how the defer containers of a Pod ended. Pure.
 *
 * Invariant: an entry that ran is never reported as not run. The reason Skipped alone does not distinguish the two cases: it is also
 * the reason of an entry that was cut off in the middle of its run.
 */
import { GIVEN_UP } from '../../api/core/v1/pod/status/deferred.ts';
import type { ContainerStatus, Pod } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { IMAGE_REASONS, imageOf, ranBefore } from '../pod-containers.ts';
import { isLoss, isNotDue } from '../timeline/life.ts';
import { commandError } from './failed-start.ts';
import { type Advised, imageRemedies, lackOfImage } from './images.ts';
import { type Action, listed, oneLine, PROBABLE_LOSS, type Shown } from './subject.ts';

export interface EntryEnd {
  name: string;
  /** The image that the entry needs; empty if it is not known. */
  image: string;
  reason: string;
  exitCode: number;
  message: string;
  /** Whether any attempt of the entry ran. */
  ran: boolean;
  /** Whether the status or the record shows that the process of the last attempt started. */
  started: boolean;
  /** If `started` is false: whether an earlier attempt ran. */
  isRetry: boolean;
}

/** Reads the end of an entry from its status; undefined if the entry has not ended. */
export function endOfEntry(pod: Pod, status: ContainerStatus, steps: readonly Transition[]): EntryEnd | undefined {
  const { terminated } = status.state ?? {};
  if (terminated === undefined) return undefined;
  const { reason = '', exitCode, message = '', startedAt } = terminated;
  const { name } = status;
  return {
    name,
    image: imageOf(pod, { name }),
    reason,
    exitCode: exitAfterEnd(name, steps) ?? exitCode,
    message,
    ran: ranBefore(status) || hasRunStep(name, steps),
    started: startedAt !== undefined || hasStarted(name, steps),
    isRetry: status.restartCount > 0 || status.lastState?.terminated !== undefined,
  };
}

/**
 * Finds the name of the image in the end of an entry whose image may not be pulled or has an invalid name: no step Pulling names this
 * image. Source of the messages: src/node/pod/container-actions.ts, src/node/images/failures.ts.
 */
const UNPULLED =
  /^(?:ErrImageNeverPull: Container image|InvalidImageName: Failed to apply default image tag) "([^"]+)"/;

/** The reason of an entry whose start is recorded, but whose end is not, for example directly after a force delete. */
const UNSEEN = 'Unseen';

/** Reads the end of an entry from the record; undefined if it neither ran nor ended. `steps`: in the order of the record. */
export function endInRecord(name: string, steps: readonly Transition[]): EntryEnd | undefined {
  const own = steps.filter(({ container }) => container === name);
  const end =
    own.findLast(({ type }) => type === 'DeferEnded' || type === 'DeferSkipped') ??
    own.findLast(({ type }) => type === 'Started' || type === 'Exited');
  if (end === undefined) return undefined;
  const { exitCode = 0, message = '' } = end;
  const reason =
    end.type === 'Started' || isLoss(end) ? UNSEEN : (end.reason ?? (end.type === 'DeferSkipped' ? 'Skipped' : ''));
  return {
    name,
    image: own.findLast(({ type }) => type === 'Pulling')?.message ?? UNPULLED.exec(message)?.[1] ?? '',
    reason,
    exitCode: exitAfterEnd(name, steps) ?? exitCode,
    message,
    ran: hasRunStep(name, steps),
    started: hasStarted(name, steps),
    isRetry: own.some(({ type }) => type === 'Started'),
  };
}

/**
 * Returns the exit code of a run that the node was starting when the time of the entry was over, and that ended after the entry; undefined
 * if there is none. The end in the status is final, and thus has no exit code of this run.
 */
function exitAfterEnd(name: string, steps: readonly Transition[]): number | undefined {
  const own = steps.filter(({ container }) => container === name);
  const end = own.findLastIndex(({ type }) => type === 'DeferEnded');
  if (end === -1 || !hasStarted(name, steps)) return undefined;
  return own.slice(end).findLast(({ type }) => type === 'Exited')?.exitCode;
}

const hasRunStep = (name: string, steps: readonly Transition[]): boolean =>
  steps.some(({ type, container }) => container === name && (type === 'Started' || type === 'Exited'));

/** Returns whether the process of the last run started. A run whose command cannot be executed has a step Exited without a step Started. */
function hasStarted(name: string, steps: readonly Transition[]): boolean {
  const runs = steps.filter(({ type, container }) => container === name && (type === 'Started' || type === 'Exited'));
  return runs.some(({ type, attempt }) => type === 'Started' && attempt === runs.at(-1)?.attempt);
}

/**
 * The exit code of a run whose command the container runtime could not execute. Source: the exit codes of containerd's CRI. Programs such
 * as git use it, too.
 */
const NOT_STARTED = 128;
/**
 * The exit code of an entry that was skipped or has no exit code of its own; it is 128 after a failed pull or start. Source:
 * src/lifecycle/defer.ts. A run that SIGKILL ended has it, too.
 */
const NO_EXIT_CODE = 137;
/** The reasons of entries that ended by themselves. The message is then that of the program, or the end of its log. */
const OWN_ENDS = ['Error', 'OOMKilled'];
const LAST_LINES = 3;

const lastLinesOf = (message: string): string =>
  oneLine(
    message
      .split('\n')
      .filter((line) => line.trim() !== '')
      .slice(-LAST_LINES)
      .join(' '),
  );

/**
 * Returns a phrase such as `exit code 1 (Error): no such host`, `did not run, not due on Deleted` or `could not start, its image cannot be
 * pulled (…)`.
 */
export function endText(end: EntryEnd): string {
  const { reason, exitCode, message, ran, started, isRetry } = end;
  if (reason === UNSEEN) return 'its end is not recorded';
  const lacking = withoutImage(end);
  if (lacking !== undefined)
    return `could not start, its image ${end.image && `${end.image} `}${lackOfImage(lacking.status)}`;
  const command = exitCode === NOT_STARTED && !started ? commandError(message) : undefined;
  if (command !== undefined) return `could not start, because it ${command}`;
  const why = oneLine(message);
  const because = why === '' ? '' : `, ${why}`;
  if (reason === 'Skipped') return ran ? `was cut off${because}` : `did not run${because}`;
  if (reason === 'DeadlineExceeded' && !started && exitCode === NO_EXIT_CODE)
    return `timed out before it had started${isRetry ? ' again' : ''}${because}`;
  if (!ran && why !== '' && reason !== 'Completed') return `could not start${because}`;
  const deadline = reason === 'DeadlineExceeded' && why !== '' ? `: ${why}` : '';
  const late = endedLate(end) ? ', but only after its time was over' : '';
  const said = OWN_ENDS.includes(reason) && why !== '' ? `: ${lastLinesOf(message)}` : '';
  const loss = reason === 'SandboxLost' ? `: its sandbox was lost, ${PROBABLE_LOSS}` : '';
  return `exit code ${exitCode}${late} (${reason})${deadline}${said}${loss}`;
}

const NO_IMAGE = new RegExp(`^(${IMAGE_REASONS.join('|')})(?::\\s*(.*))?$`, 's');

/** Returns the entry as it was while it waited for its image; undefined if it has run or ended for another reason. */
export function withoutImage({ name, message, ran, reason: end }: EntryEnd): Shown | undefined {
  const [, reason, cause] = NO_IMAGE.exec(message) ?? [];
  if (reason === undefined || ran || end === 'Completed' || end === 'Skipped') return undefined;
  const state = { waiting: { reason, message: cause } };
  return { kind: 'defer', name, status: { name, state, image: '', imageID: '', ready: false, restartCount: 0 } };
}

const FATES = [
  'failed',
  'timed out',
  'given up',
  'lost with the sandbox',
  'cut off',
  'running when last recorded',
  'did not run',
] as const;
type Fate = (typeof FATES)[number];
const PASSIVE: readonly Fate[] = ['given up', 'lost with the sandbox', 'cut off', 'running when last recorded'];
const OF_REASONS: Readonly<Record<string, Fate>> = {
  DeadlineExceeded: 'timed out',
  GivenUp: 'given up',
  SandboxLost: 'lost with the sandbox',
  [UNSEEN]: 'running when last recorded',
};

function fateOf({ reason, exitCode, message, ran }: EntryEnd): Fate | undefined {
  if (reason === 'Skipped' && message === GIVEN_UP) return 'given up';
  if (reason === 'Skipped') return ran ? 'cut off' : isNotDue(message) ? undefined : 'did not run';
  const fate = OF_REASONS[reason];
  if (fate !== undefined) return fate;
  return reason === 'Completed' || exitCode === 0 ? undefined : 'failed';
}

export const failedEntry = (ends: readonly EntryEnd[]): EntryEnd | undefined =>
  ends.find((end) => end.ran && ['failed', 'timed out'].includes(fateOf(end) ?? ''));

/** The messages of entries that had nothing to clean up. Source: src/lifecycle/defer.ts. */
const NOT_NEEDED = /^no (app container|container of the Pod) had started$/;

/** Returns whether the entry was due, had something to clean up and was not given up by a user, but did not succeed. */
export const isUndone = (end: EntryEnd): boolean =>
  !NOT_NEEDED.test(end.message) && !['given up', undefined].includes(fateOf(end));

/** Returns whether the entry exited with 0 after its time was over: it may have done all its work, or have ended at its stop signal. */
const endedLate = ({ reason, exitCode, ran }: EntryEnd): boolean =>
  ran && reason === 'DeadlineExceeded' && exitCode === 0;

const mayBeDone = (end: EntryEnd): boolean => end.reason === UNSEEN || endedLate(end);

/** Returns what is left of the work of entries with isUndone(). */
function manualWork(undone: readonly EntryEnd[]): Action[] {
  const named = (done: boolean): string => listed(undone.flatMap((end) => (mayBeDone(end) === done ? end.name : [])));
  const [open, unsure] = [named(false), named(true)];
  return [
    ...(open === '' ? [] : [{ description: `do by hand what ${open} would have done` }]),
    ...(unsure === '' ? [] : [{ description: `check whether ${unsure} did all its work, and do the rest by hand` }]),
  ];
}

/**
 * Returns how the entry ended and what is left of its work, such as `defer container bye failed: exit code 1 (Error); do by hand what bye
 * would have done`; undefined unless isUndone().
 */
export function undoneText(end: EntryEnd): string | undefined {
  if (!isUndone(end)) return undefined;
  const hasFailed = end.ran && end.reason !== 'Skipped';
  const outcome = hasFailed ? `${fatesOf([end])}: ${endText(end)}` : `defer container ${end.name} ${endText(end)}`;
  return [outcome, ...manualWork([end]).map(({ description }) => description)].join('; ');
}

/** Returns what the user can do about the entries with isUndone(), which do not run again. `subject.pod` names their images. */
export function remainingWork(subject: Advised, ends: readonly EntryEnd[]): Action[] {
  const undone = ends.filter(isUndone);
  if (undone.length === 0) return [];
  return [
    ...manualWork(undone),
    ...imageRemedies(
      { ...subject, isForLater: true },
      undone.flatMap((end) => withoutImage(end) ?? []),
    ).map((each) => ({ ...each, description: `for later Pods, ${each.description}` })),
  ];
}

export function deferOutcome(ends: readonly EntryEnd[]): string {
  const fates = fatesOf(ends);
  return fates && `; its ${fates}`;
}

/**
 * Returns for example `defer containers bye and log failed and defer container hang was given up`; empty if each entry succeeded or was not
 * due. A name follows the word container, because a name such as `two` would read as a number.
 */
export function fatesOf(ends: readonly EntryEnd[]): string {
  const parts = FATES.flatMap((fate) => {
    const names = ends.filter((end) => fateOf(end) === fate).map(({ name }) => name);
    if (names.length === 0) return [];
    const verb = PASSIVE.includes(fate) ? (names.length === 1 ? 'was ' : 'were ') : '';
    return [`defer container${names.length === 1 ? '' : 's'} ${listed(names)} ${verb}${fate}`];
  });
  return listed(parts);
}
