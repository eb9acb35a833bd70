/** Turns a record into rows of bars and marks over time, ready to be drawn. Pure. */
import { GIVEN_UP } from '../../api/core/v1/pod/status/deferred.ts';
import type { ContainerKind, Transition } from '../../lifecycle/types.ts';
import { END_UNKNOWN } from '../../lifecycle/view.ts';
import type { Millis } from '../../machinery/time.ts';
import { inListOrder, withLastEnd } from './entry-steps.ts';
import { hasEnded, isOfEarlier } from './sandbox-ends.ts';

/**
 * `succeeded` and `failed` are runs that ended without a stop signal, with exit code 0 or another code. A run that was stopped has a
 * `succeeded` bar before its stop signal and a `stopping` bar after it.
 */
export type BarKind = 'waiting' | 'pulling' | 'backoff' | 'running' | 'succeeded' | 'failed' | 'stopping' | 'sandbox';
export type MarkKind = 'passing' | 'failing' | 'hook' | 'hookFailed' | 'lost' | 'ending' | 'skipped';

export interface Bar {
  kind: BarKind;
  from: Millis;
  to: Millis;
  /** Present if the bar has not ended yet; `to` is then the end of the picture. */
  open?: true;
}

export interface Mark {
  kind: MarkKind;
  at: Millis;
}

export interface Row {
  name: string;
  kind: ContainerKind | 'sandbox';
  bars: Bar[];
  marks: Mark[];
  /** `text` is the exit code. */
  exits: { at: Millis; text: string; failed: boolean }[];
  state: string;
}

export interface LifePicture {
  from: Millis;
  to: Millis;
  rows: Row[];
  /** The last deadline of the termination. formerDeadlines has the earlier ones. */
  deadline: Millis | undefined;
  formerDeadlines: Millis[];
  /** The deadline of the PreExit stage. Undefined if no time is reserved for PostExit entries, or if this is not known. */
  reservedFrom: Millis | undefined;
  /** Whether the Pod finished before its deadline, which thus had no effect. False if the object was deleted before the deadline. */
  endedInTime: boolean;
  finished: Millis | undefined;
  ending: Transition | undefined;
  /** Whether the node has removed the Pod, or the Pod's object has been deleted. */
  over: boolean;
}

/**
 * Returns whether the condition in the field `onReasons` or `when` of a skipped defer container was not met, according to its message.
 * Source: the specification of defer containers (the messages).
 */
export const isNotDue = (message: string | undefined): boolean =>
  /^(not due on |the app containers did not (succeed|fail))/.test(message ?? '');

/** Sorts the steps by time. Steps with equal times keep their order. */
export const inOrder = (transitions: readonly Transition[]): Transition[] =>
  [...transitions].sort((a, b) => a.at - b.at);

export interface Named {
  name: string;
  kind: ContainerKind;
  isGivenUp?: boolean;
}

const KINDS: readonly ContainerKind[] = ['init', 'app', 'defer', 'ephemeral'];

/** Returns the containers in the order of their rows. Within a kind, containers of the spec precede those that only the steps mention. */
function containersOf(steps: readonly Transition[], spec: readonly Named[]): Named[] {
  const named = new Map(spec.map((each) => [each.name, each]));
  for (const { container: name, containerKind: kind = 'app' } of inListOrder(steps))
    if (name !== undefined && !named.has(name)) named.set(name, { name, kind });
  return [...named.values()].sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
}

interface PictureOptions {
  spec: readonly Named[];
  now: Millis;
  reservedFrom?: Millis | undefined;
}

export function pictureOf(transitions: readonly Transition[], options: PictureOptions): LifePicture {
  const { spec, now, reservedFrom } = options;
  const steps = inOrder(transitions);
  const over = steps.some(({ type }) => type === 'Gone' || type === 'Removed');
  const last = steps.at(-1)?.at ?? now;
  const deadlines = steps.filter(({ type }) => type === 'DeadlineSet').flatMap(({ deadline }) => deadline ?? []);
  const deadline = deadlines.at(-1);
  const end = over ? last : Math.max(now, last);
  const from = steps[0]?.at ?? now;
  const to = Math.max(end, from + 1);
  const finished = steps.find(({ type }) => type === 'Finished')?.at;
  return {
    from,
    to,
    rows: [
      sandboxRow(steps, end, over),
      ...containersOf(transitions, spec).map((named) =>
        containerRow(
          named,
          steps.filter(({ container }) => container === named.name),
          steps,
          end,
        ),
      ),
    ],
    deadline,
    formerDeadlines: deadlines.slice(0, -1),
    reservedFrom:
      deadline !== undefined && reservedFrom !== undefined && reservedFrom < deadline ? reservedFrom : undefined,
    endedInTime: finished !== undefined && deadline !== undefined && finished < deadline && (!over || deadline < to),
    finished,
    ending: steps.find(({ type }) => type === 'TerminationBegan'),
    over,
  };
}

function sandboxRow(steps: readonly Transition[], end: Millis, over: boolean): Row {
  const row: Row = { name: 'sandbox', kind: 'sandbox', bars: [], marks: [], exits: [], state: '' };
  const first = steps[0]?.at ?? end;
  let since: Millis | undefined;
  const close = (at: Millis): void => {
    if (since !== undefined) row.bars.push({ kind: 'sandbox', from: since, to: at });
    since = undefined;
  };
  let newest: Transition | undefined;
  for (const step of steps) {
    const { type, at } = step;
    if (type === 'SandboxReady') {
      if (row.bars.length === 0 && since === undefined) row.bars.push({ kind: 'waiting', from: first, to: at });
      close(at);
      since = at;
      newest = step;
    }
    if (type === 'SandboxLost') row.marks.push({ kind: 'lost', at });
    if ((type === 'SandboxLost' || type === 'SandboxStopped') && !isOfEarlier(step, newest)) close(at);
    if (type === 'TerminationBegan') row.marks.push({ kind: 'ending', at });
  }
  if (over) close(end);
  if (since !== undefined) row.bars.push({ kind: 'sandbox', from: since, to: end, open: true });
  else if (row.bars.length === 0) row.bars.push({ kind: 'waiting', from: first, to: end });
  const lost = row.marks.filter(({ kind }) => kind === 'lost').length;
  row.state = lost > 0 ? `lost ${lost}×` : since !== undefined ? 'ready' : row.bars.length > 1 ? 'stopped' : 'waiting';
  return row;
}

const MARKS: Readonly<Record<string, MarkKind>> = {
  ProbePassing: 'passing',
  ProbeFailing: 'failing',
  HookBegan: 'hook',
  HookDone: 'hook',
  HookFailed: 'hookFailed',
  DeferSkipped: 'skipped',
};

/** The kind of the bar that begins with a step of the type. */
const BEGINS: Readonly<Record<string, BarKind>> = {
  Pulling: 'pulling',
  PullFailed: 'backoff',
  StartFailed: 'backoff',
  BackOff: 'backoff',
  Pulled: 'waiting',
  Started: 'running',
  StopSignal: 'stopping',
};

const IDLE: readonly unknown[] = ['waiting', 'backoff'];

function containerRow(named: Named, given: readonly Transition[], all: readonly Transition[], end: Millis): Row {
  const own = withLastEnd(given);
  const { name, kind, isGivenUp = false } = named;
  const row: Row = { name, kind, bars: [], marks: [], exits: [], state: '' };
  // A defer container waits from the beginning of the termination, other containers from the time at which the sandbox is ready.
  const due = all.find(({ type }) => type === (kind === 'defer' ? 'TerminationBegan' : 'SandboxReady'))?.at;
  let now: { kind: BarKind; from: Millis } | undefined = due === undefined ? undefined : { kind: 'waiting', from: due };
  const turn = (next: BarKind | undefined, at: Millis): void => {
    if (now !== undefined && at > now.from) row.bars.push({ ...now, to: at });
    now = next === undefined ? undefined : { kind: next, from: at };
  };
  for (const step of own) {
    const { type, at, exitCode = 0 } = step;
    const mark = MARKS[type];
    if (mark !== undefined && !(mark === 'skipped' && hasRun(own))) row.marks.push({ kind: mark, at });
    const begins = BEGINS[type];
    if (begins !== undefined && !(type === 'StopSignal' && now?.kind !== 'running')) turn(begins, at);
    if (type === 'DeferSkipped' || type === 'DeferEnded') turn(undefined, at);
    if (type !== 'Exited') continue;
    endRun(row, now?.kind === 'running' ? { kind: exitCode === 0 ? 'succeeded' : 'failed', from: now.from } : now, at);
    now = undefined;
    if (isLoss(step)) row.marks.push({ kind: 'lost', at });
    else row.exits.push({ at, text: String(exitCode), failed: exitCode !== 0 });
  }
  colorStopped(row);
  const ending = all.find(({ type }) => type === 'TerminationBegan')?.at;
  // No init or app container starts during a termination.
  const isLeft =
    kind !== 'defer' && ending !== undefined && IDLE.includes((now as { kind: BarKind } | undefined)?.kind);
  if (isLeft) turn(undefined, ending);
  const isOver = hasEnded(all) || isLeft;
  if (now !== undefined && !isOver) row.bars.push({ ...(now as Bar), to: end, open: true });
  const last = now as { kind: BarKind } | undefined;
  const isEnding = isGivenUp && last !== undefined && last.kind !== 'stopping' && !isOver;
  row.state = isEnding ? GIVEN_UP : stateOf(own, last, isOver);
  return row;
}

/** Adds the bar of a run that has ended. turn() would omit a bar that is shorter than a millisecond. */
function endRun(row: Row, bar: { kind: BarKind; from: Millis } | undefined, at: Millis): void {
  if (bar !== undefined) row.bars.push({ ...bar, to: at });
}

/** Shows the part of a run before its stop signal like a successful run. The exit code after the bars shows how the run ended. */
function colorStopped(row: Row): void {
  for (const [index, bar] of row.bars.entries())
    if (bar.kind === 'running' && row.bars[index + 1]?.kind === 'stopping') bar.kind = 'succeeded';
}

const hasRun = (own: readonly Transition[]): boolean => own.some(({ type }) => type === 'Started' || type === 'Exited');

function stateOf(own: readonly Transition[], now: { kind: BarKind } | undefined, isOver: boolean): string {
  const exits = own.filter(({ type }) => type === 'Exited');
  const ran = hasRun(own);
  const entryEnd = own.findLast(({ type }) => type === 'DeferSkipped' || type === 'DeferEnded');
  if (entryEnd !== undefined) return entryState(entryEnd, ran, exits);
  const last = exits.at(-1);
  const times = exits.length > 1 ? ` ${exits.length}×` : '';
  if (now !== undefined && !isOver) {
    if (now.kind === 'backoff') return `back-off (${backOffCause(own, last)})${times}`;
    return now.kind === 'running' && exits.length > 0 ? `running (run ${exits.length + 1})` : now.kind;
  }
  if (last === undefined) return ran ? 'end unknown' : isOver ? 'never ran' : 'not yet due';
  return `${exitText(last)}${times}`;
}

function backOffCause(own: readonly Transition[], last: Transition | undefined): string {
  const began = own.findLast(({ type }) => BEGINS[type] === 'backoff')?.type;
  if (began === 'PullFailed') return 'pull failed';
  return began === 'StartFailed' || last === undefined ? 'start failed' : exitText(last);
}

/** Returns whether the step Exited reports a run that the container runtime has lost, so that its end is not known. */
export const isLoss = ({ reason }: Transition): boolean => reason === END_UNKNOWN;

function exitText(exit: Transition): string {
  if (isLoss(exit)) return 'lost, end unknown';
  return exit.reason === 'OOMKilled' ? 'OOM 137' : `exit ${exit.exitCode ?? 0}`;
}

const OUTCOMES: Readonly<Record<string, string>> = {
  DeadlineExceeded: 'timed out',
  GivenUp: GIVEN_UP,
  SandboxLost: 'lost',
};

/** Returns the state of a defer container (an entry) that has ended. An entry that ran is never shown as skipped. */
function entryState(
  { reason = '', message, exitCode }: Transition,
  ran: boolean,
  exits: readonly Transition[],
): string {
  const last = exits.at(-1);
  const times = exits.length > 1 ? ` ${exits.length}×` : '';
  if (reason === 'Skipped' || exitCode === undefined) {
    if (message === GIVEN_UP) return GIVEN_UP;
    if (!ran) return isNotDue(message) ? 'not due' : 'skipped';
    return `cut off${times}`;
  }
  const outcome = OUTCOMES[reason];
  if (outcome !== undefined) return `${outcome}${times}`;
  if (last === undefined) return ran ? `exit ${exitCode}` : 'not started';
  return `${exitText(last)}${times}`;
}
