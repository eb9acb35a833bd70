/** Explains how a Pod that no longer exists ended. Pure. */

import { NO_GRACE } from '../../api/core/v1/pod/status/deferred.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import type { Millis } from '../../machinery/time.ts';
import { entriesOf } from '../timeline/entry-steps.ts';
import { inOrder, isLoss } from '../timeline/life.ts';
import { shortDuration } from '../timeline/scale.ts';
import { causesOfMoves, endOfTermination } from '../timeline/termination-end.ts';
import { deferOutcome, type EntryEnd, endInRecord, endText, fatesOf, remainingWork } from './entries.ts';
import { causeOf } from './stops/gone-cause.ts';
import { deafExits } from './stops/pid-one.ts';
import { called, clock, type Explanation, lastStep, listed, oneLine, type Subject, seeTimeline } from './subject.ts';

export function explainGone(subject: Subject): Explanation {
  const { name } = subject;
  const steps = inOrder(subject.transitions);
  const began = lastStep(subject, ['TerminationBegan']);
  const gone = lastStep(subject, ['Gone', 'Removed']);
  const actions = [seeTimeline(subject, '-o wide')];
  const evidence = lastRuns(steps, subject.transitions);
  const reached = steps.some(({ type }) => type === 'SandboxReady' || type === 'Started');
  if (gone !== undefined && began === undefined && !reached) {
    const waited = oneLine(lastStep(subject, ['NotScheduled'])?.message).replace(/\.$/, '');
    return {
      sentence: `${name} has been gone since ${clock(gone.at)}: it was deleted before any of its containers ran${waited && `; it was not scheduled, ${waited}`}.`,
      evidence,
      actions,
    };
  }
  if (began === undefined || gone === undefined)
    return {
      sentence: `${name} is gone, and its record ends before its end was seen${steps.length === 0 ? '' : `, at ${clock(steps.at(-1)?.at ?? 0)}`}.`,
      evidence,
      actions,
    };
  const ends = entriesOf(subject.transitions).flatMap((entry) => endInRecord(entry, subject.transitions) ?? []);
  const removal = lastStep(subject, ['Gone']);
  // The object was removed before its node began to terminate the Pod.
  if (removal !== undefined && removal.at <= began.at) {
    const wasInStore = steps.some(({ type }) => type === 'Created' || type === 'Scheduled');
    return wasInStore
      ? forced(subject, removal.at, undefined, ends, evidence)
      : notInBackup(subject, removal.at, evidence);
  }
  const cause = causeOf(subject, steps, began);
  const proof = [...cause.evidence, ...evidence];
  const given = steps.filter(({ type }) => type === 'DeadlineSet' || type === 'TerminationBegan');
  const cut = removal && cutShort(given, removal);
  const deadline = (cut ?? given).at(-1)?.deadline ?? gone.at;
  const until = (at: Millis): string => {
    const took = shortDuration(at - began.at);
    if (deadline <= began.at) return took;
    const allowed = shortDuration(deadline - began.at);
    return `${took}${at <= deadline ? ' of' : ', more than'} the ${allowed} allowed${movedText(cut ?? given, began)}`;
  };
  if (removal !== undefined && cut !== undefined)
    return forced(subject, removal.at, `${cause.why}, and after ${until(removal.at)}`, ends, proof);
  const over = endOfTermination(steps) ?? gone;
  const deaf = deafExits(steps);
  const defers = deferOutcome(ends);
  return {
    sentence: `${name} has been gone since ${clock(gone.at)}: ${cause.why}, and its termination took ${until(over.at)}${deafText(deaf) || slowHookText(steps, deadline, over.at)}${defers}.`,
    evidence: proof,
    actions: [
      ...cause.actions,
      ...deaf.slice(0, 1).map(() => HEAR_SIGNALS),
      ...remainingWork({ ...subject, pod: podOfRecord(subject, ends) }, ends),
      ...actions,
    ],
  };
}

/** Returns, in parentheses, the first deadline and what has moved it; empty if the deadline has not moved by the given steps. */
function movedText(given: readonly Transition[], began: Transition): string {
  const last = given.at(-1)?.deadline;
  const causes = causesOfMoves(given, began);
  if (causes === undefined || last === undefined || began.deadline === undefined) return '';
  // A deadline that has moved by only milliseconds has the same text.
  const [before, after] = [began.deadline, last].map((deadline) => shortDuration(deadline - began.at));
  return before === after ? '' : ` (at first ${before}, moved by ${causes})`;
}

/**
 * After a removal that cuts the termination short, the node sets an earlier deadline, unless all containers have stopped. Returns the steps
 * before such a removal; undefined for other removals. `given` are the steps with deadlines, in order.
 */
function cutShort(given: readonly Transition[], { at }: Transition): readonly Transition[] | undefined {
  const before = given.filter((step) => step.at < at);
  const former = before.at(-1)?.deadline;
  const next = given.find((step) => step.at >= at)?.deadline;
  return former !== undefined && next !== undefined && next < former ? before : undefined;
}

/**
 * Explains a Pod that was deleted by force at `at`. `course`: a clause about the termination that the forced deletion cut short; undefined
 * if none had begun.
 */
function forced(
  subject: Subject,
  at: number,
  course: string | undefined,
  ends: readonly EntryEnd[],
  evidence: string[],
): Explanation {
  const { name, namespace, hints } = subject;
  const victims = ends.filter(({ reason, message }) => reason === 'Skipped' && message === NO_GRACE);
  const others = deferOutcome(ends.filter((end) => !victims.includes(end)));
  const destructors = `${victims.length === 0 ? '' : `, so its ${fatesOf(victims)}`}${others}`;
  return {
    sentence: `${name} has been gone since ${clock(at)}: ${course === undefined ? '' : `${course} `}it was deleted by force, with a grace period of 0${destructors}.`,
    evidence: [
      'a grace period of 0 comes from kubectl delete --grace-period=0 --force, or from terminationGracePeriodSeconds: 0',
      ...evidence,
    ],
    actions: [
      ...remainingWork({ ...subject, pod: podOfRecord(subject, ends) }, ends),
      {
        description: 'next time, delete it without --force: --now still gives it a grace period of 1 s',
        command: hints.kubectl(`delete pod ${name} -n ${namespace} --now`),
      },
      seeTimeline(subject, '-o wide'),
    ],
  };
}

/** Explains a Pod whose containers an engine found, although its store had neither the object nor an earlier step of the record. */
function notInBackup(subject: Subject, at: number, evidence: string[]): Explanation {
  const { name, hints } = subject;
  return {
    sentence: `${name} has been gone since ${clock(at)}: the engine stopped and removed it, because it still ran but was not in the data of the engine, as after a restore of a backup that does not contain it.`,
    evidence: [
      'its record begins when the engine found its containers: the record does not have its creation',
      ...evidence,
    ],
    actions: [
      { description: 'if it is still needed, create it again' },
      {
        description:
          'next time, end the Pods before the restore: a Pod that is not in the backup ends without its defer containers',
        command: hints.engine('down'),
      },
      seeTimeline(subject, '-o wide'),
    ],
  };
}

/** General advice, because the record does not have the command of the container. */
const HEAR_SIGNALS = {
  description: 'make PID 1 handle SIGTERM, or if it does, give it more time with terminationGracePeriodSeconds',
};

function deafText(deaf: readonly Transition[]): string {
  if (deaf.length === 0) return '';
  const names = listed(deaf.map(({ container = '' }) => container));
  return deaf.length === 1
    ? `, because container ${names} did not end after its stop signal and was killed`
    : `, because the containers ${names} did not end after their stop signals and were killed`;
}

const HOOK_STEPS = ['HookBegan', 'HookDone', 'HookFailed'];

/** Returns a clause about the preStop hooks that still ran at the deadline; empty if the termination was over before it. */
function slowHookText(steps: readonly Transition[], deadline: number, over: number): string {
  if (over <= deadline) return '';
  const last = new Map<string, Transition>();
  for (const step of steps)
    if (step.reason === 'preStop' && step.at < deadline && HOOK_STEPS.includes(step.type))
      last.set(step.container ?? '', step);
  const slow = [...last.values()].filter(({ type }) => type === 'HookBegan');
  if (slow.length === 0) return '';
  const hooks = slow.map(({ container = '' }) => container);
  return slow.length === 1
    ? `, because the preStop hook of container ${hooks[0]} had not ended by then`
    : `, because the preStop hooks of the containers ${listed(hooks)} had not ended by then`;
}

const podOfRecord = (subject: Subject, ends: readonly EntryEnd[]): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: subject.name, namespace: subject.namespace },
  spec: {
    containers: [],
    deferContainers: ends.map(({ name, image }) => ({ name, image })),
  },
});

/** Returns a line about the last run of each container. `recorded`: the steps in the order of the record. */
function lastRuns(steps: readonly Transition[], recorded: readonly Transition[]): string[] {
  const last = new Map<string, Transition>();
  for (const step of steps)
    if (step.container !== undefined && ['Started', 'Exited', 'DeferEnded', 'DeferSkipped'].includes(step.type))
      last.set(step.container, step);
  return [...last.values()].map((step) => {
    const { container: name = '', containerKind: kind = 'app', type, exitCode, reason, attempt = 0 } = step;
    const what = called({ kind, name, ...(ranBesideApps(steps, step) && { isSidecar: true }) });
    const entry = kind === 'defer' ? endInRecord(name, recorded) : undefined;
    if (entry !== undefined) return `${what}: ${endText(entry)}`;
    if (type === 'Started' || isLoss(step)) return `${what}: its end is not recorded`;
    const runs = attempt > 0 ? `, after ${attempt + 1} runs` : '';
    return `${what}: exit code ${exitCode} (${reason})${runs}`;
  });
}

/** Returns whether an app container started during the run of an init container that `end` ends or begins: only sidecars keep running. */
function ranBesideApps(steps: readonly Transition[], end: Transition): boolean {
  if (end.containerKind !== 'init') return false;
  const begin = steps.findLast(
    ({ type, container, attempt }) => type === 'Started' && container === end.container && attempt === end.attempt,
  );
  const until = end.type === 'Started' ? Number.POSITIVE_INFINITY : end.at;
  return steps.some(
    ({ type, containerKind = 'app', container, at }) =>
      begin !== undefined &&
      type === 'Started' &&
      container !== undefined &&
      containerKind === 'app' &&
      at >= begin.at &&
      at < until,
  );
}
