/** Explains why a Pod that no longer exists was terminated. Pure. */
import type { Transition } from '../../../lifecycle/types.ts';
import { isLoss } from '../../timeline/life.ts';
import { evictionMessage } from '../../timeline/termination-end.ts';
import { taintText } from '../node-troubles.ts';
import { PLAIN_REASONS } from '../run-end.ts';
import { type Action, called, eventLine, eventOf, lastStep, listed, oneLine, type Subject } from '../subject.ts';
import { evictionOf } from './eviction.ts';
import { stopOf } from './node-stop.ts';

const REASONS: Readonly<Record<string, string>> = {
  Deleted: 'it was deleted',
  ScaledDown: 'its workload was scaled down',
  Replaced: 'its workload replaced it',
  OwnerDeleted: 'its owner or its namespace was deleted',
  Evicted: 'it was evicted',
  Preempted: 'it made way for a Pod of higher priority',
  DeadlineExceeded: 'its activeDeadlineSeconds had passed',
  NodeShutdown: 'its node was shut down',
  Completed: 'it had completed',
};

interface Cause {
  /** A clause, such as `it was deleted`. */
  why: string | undefined;
  evidence: string[];
  actions: Action[];
}

/**
 * Returns why the Pod, which no longer exists, was terminated. `steps`: in the order of their times; `began`: the step TerminationBegan.
 */
export function causeOf(subject: Subject, steps: readonly Transition[], began: Transition): Cause {
  const taint = evictedFor(subject);
  if (taint !== undefined) return { ...taint, actions: [] };
  if (began.reason === 'NodePressure') return evictedByNode(subject, steps);
  const why = failureOf(subject, steps, began) ?? REASONS[began.reason ?? ''] ?? began.reason;
  return { why, evidence: [], actions: [] };
}

/** The record has no message if the Pod was deleted while its node evicted it. */
function evictedByNode(subject: Subject, steps: readonly Transition[]): Cause {
  const message = oneLine(evictionMessage(steps) ?? eventOf(subject, ['Evicted'])?.message);
  const names = new Set(
    steps.flatMap(({ container, containerKind }) => (containerKind === 'defer' ? [] : (container ?? []))),
  );
  // The record does not have limits: if the Pod had several containers, it is not known which of them were limited.
  const { cause, evidence, remedy } = evictionOf(message, names.size === 1 ? [...names] : []);
  return {
    why: cause,
    evidence: [...(message === '' ? [] : [`the message of its eviction: ${message}`]), ...evidence],
    actions: remedy === undefined ? [] : [{ description: `for later Pods, ${remedy}` }],
  };
}

/** Returns a clause such as `it had failed because container app ended with code 9`; undefined if the Pod did not fail by itself. */
function failureOf(subject: Subject, steps: readonly Transition[], began: Transition): string | undefined {
  if (began.reason !== 'Completed') return undefined;
  const finished = lastStep(subject, ['Finished']);
  if (finished !== undefined && finished.reason !== 'Failed') return undefined;
  const exit = failedExit(steps, began.at);
  if (exit === undefined) {
    if (finished === undefined) return undefined;
    const reason = /^\w+/.exec(finished.message ?? '')?.[0];
    return `it had failed${reason === undefined ? '' : `, with the reason ${reason}`}`;
  }
  const { container: name = '', containerKind: kind = 'app', exitCode, reason = '' } = exit;
  const stop = stopOf({ ...subject, transitions: steps }, { kind, name }, exit);
  if (stop === undefined && isLoss(exit)) return `it had failed because ${called({ kind, name })} was lost`;
  const detail = PLAIN_REASONS.includes(reason) ? '' : ` (${reason})`;
  return `it had failed because ${stop?.cause ?? `${called({ kind, name })} ended with code ${exitCode}${detail}`}`;
}

/**
 * Returns the earliest exit with an error among the last exits, until `at`, of the app containers; of the init containers if no app
 * container has exited. Returns undefined if there is none. The exit of a sidecar, which is an init container, does not fail its Pod.
 */
function failedExit(steps: readonly Transition[], at: number): Transition | undefined {
  const last = new Map<string, Transition>();
  for (const step of steps)
    if (step.type === 'Exited' && step.at <= at && (step.containerKind === 'init' || step.containerKind === 'app'))
      last.set(step.container ?? '', step);
  const ends = [...last.values()].sort((a, b) => a.at - b.at);
  // An app container starts only after all init containers except sidecars have succeeded.
  const decisive = ends.some(({ containerKind }) => containerKind === 'app') ? 'app' : 'init';
  return ends.find(({ containerKind, exitCode = 0 }) => containerKind === decisive && exitCode !== 0);
}

/**
 * Returns why the Pod was evicted for a NoExecute taint, with the current taints of its node; undefined if the Pod was not evicted for a
 * taint.
 */
function evictedFor(subject: Subject): { why: string; evidence: string[] } | undefined {
  const event = eventOf(subject, ['TaintManagerEviction']);
  if (event === undefined || !/^Marking for deletion/.test(event.message ?? '')) return undefined;
  const taints = (subject.node?.spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute').map(taintText);
  const which =
    taints.length === 0 ? 'had a NoExecute taint that it did not tolerate' : `has the taint ${listed(taints)}`;
  return {
    why: `it was evicted because its node ${subject.node?.metadata.name ?? ''} ${which}`.replace(/ {2,}/, ' '),
    evidence: eventLine(event, subject),
  };
}
