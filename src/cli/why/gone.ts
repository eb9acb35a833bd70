/** Explains how a Pod that no longer exists ended. Pure. */
import type { Transition } from '../../lifecycle/types.ts';
import { inOrder } from '../timeline/life.ts';
import { shortDuration } from '../timeline/scale.ts';
import { deferOutcome, endInRecord, endText } from './entries.ts';
import { called, clock, type Explanation, lastStep, oneLine, type Subject } from './subject.ts';

const REASONS: Readonly<Record<string, string>> = {
  Deleted: 'it was deleted',
  ScaledDown: 'its workload was scaled down',
  Replaced: 'its workload replaced it',
  OwnerDeleted: 'its owner or its namespace was deleted',
  Evicted: 'it was evicted',
  Preempted: 'it made way for a Pod of higher priority',
  DeadlineExceeded: 'its activeDeadlineSeconds had passed',
  NodeShutdown: 'its node was shut down',
  NodePressure: 'its node was under resource pressure',
  Completed: 'it had completed',
};

export function explainGone(subject: Subject): Explanation {
  const { name, namespace } = subject;
  const steps = inOrder(subject.transitions);
  const began = lastStep(subject, ['TerminationBegan']);
  const gone = lastStep(subject, ['Gone', 'Removed']);
  const advice = `lifepod timeline ${name} -n ${namespace} -o wide shows its life`;
  const evidence = lastRuns(steps);
  const reached = steps.some(({ type }) => type === 'SandboxReady' || type === 'Started');
  if (gone !== undefined && began === undefined && !reached) {
    const waited = oneLine(lastStep(subject, ['NotScheduled'])?.message).replace(/\.$/, '');
    return {
      sentence: `${name} has been gone since ${clock(gone.at)}: it was deleted before any of its containers ran${waited && `; it was not scheduled, ${waited}`}.`,
      evidence,
      advice,
    };
  }
  if (began === undefined || gone === undefined)
    return {
      sentence: `${name} is gone, and its record ends before its end was seen${steps.length === 0 ? '' : `, at ${clock(steps.at(-1)?.at ?? 0)}`}.`,
      evidence,
      advice,
    };
  const deadline = lastStep(subject, ['DeadlineSet', 'TerminationBegan'])?.deadline ?? gone.at;
  // Prefer the step Removed to Gone: finalizers may keep the object longer, and an engine that was down notices the deletion late.
  const over = lastStep(subject, ['Removed']) ?? gone;
  const took = shortDuration(over.at - began.at);
  const grace = `${shortDuration(deadline - began.at)} that it was given`;
  const inGrace =
    over.at <= deadline ? `, and took ${took} of the ${grace}` : `, and took ${took}, more than the ${grace}`;
  const defers = deferOutcome(entriesOf(steps).flatMap((entry) => endInRecord(entry, steps) ?? []));
  return {
    sentence: `${name} has been gone since ${clock(gone.at)}: ${REASONS[began.reason ?? ''] ?? began.reason}${inGrace}${defers}.`,
    evidence,
    advice,
  };
}

/** Returns the names of the defer containers in the order in which the steps mention them. */
const entriesOf = (steps: readonly Transition[]): string[] => [
  ...new Set(steps.flatMap(({ containerKind, container }) => (containerKind === 'defer' ? (container ?? []) : []))),
];

/** Returns a line about the end of each container that has run, and of each defer container that has ended. */
function lastRuns(steps: readonly Transition[]): string[] {
  const last = new Map<string, Transition>();
  for (const step of steps)
    if (step.container !== undefined && ['Started', 'Exited', 'DeferEnded', 'DeferSkipped'].includes(step.type))
      last.set(step.container, step);
  return [...last.values()].map(
    ({ container: name = '', containerKind: kind = 'app', type, exitCode, reason, attempt = 0 }) => {
      const what = called({ kind, name });
      const entry = kind === 'defer' ? endInRecord(name, steps) : undefined;
      if (entry !== undefined) return `${what}: ${endText(entry)}`;
      if (type === 'Started') return `${what}: its end was not seen`;
      const runs = attempt > 0 ? `, after ${attempt + 1} runs` : '';
      return `${what}: exit code ${exitCode} (${reason})${runs}`;
    },
  );
}
