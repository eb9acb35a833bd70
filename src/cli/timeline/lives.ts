/** Summarizes the lives of Pods that have had the same name, for `lifepod timeline NAME --list`. Pure. */
import type { Pod } from '../../api/generated/types.ts';
import { shortUid } from '../../api/lifepod.io/v1/pod-record/index.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { formatTime } from '../../machinery/time.ts';
import { tabColumns } from '../describe/tab-columns.ts';
import { statusWord } from '../pod-containers.ts';
import { type PodLife, transitionsOf } from '../records.ts';
import { inOrder } from './life.ts';
import { terminationReason } from './termination-end.ts';

export interface LifeSummary {
  uid: string;
  /** `created` and `ended` are absent if the record does not contain them, `ended` also while the Pod exists. */
  created?: string;
  ended?: string;
  /** How the life ended, such as `Deleted, exit 0`; for an existing Pod, usually its status in `kubectl get`. */
  result: string;
}

export function summaryOf({ uid, pod, records }: PodLife): LifeSummary {
  const steps = inOrder(transitionsOf(records));
  const [first] = steps;
  const created = pod?.metadata.creationTimestamp ?? (first === undefined ? undefined : formatTime(first.at));
  const known = { uid, ...(created === undefined ? {} : { created }) };
  if (pod !== undefined) return { ...known, result: statusOf(pod) };
  const gone = goneStep(steps);
  return { ...known, ...(gone === undefined ? {} : { ended: formatTime(gone.at) }), result: resultOf(steps) };
}

function statusOf(pod: Pod): string {
  const word = statusWord(pod);
  return pod.status?.phase === 'Failed' && word === pod.status.reason ? `Failed (${word})` : word;
}

const goneStep = (steps: readonly Transition[]): Transition | undefined =>
  steps.findLast(({ type }) => type === 'Gone') ?? steps.findLast(({ type }) => type === 'Removed');

function resultOf(steps: readonly Transition[]): string {
  if (goneStep(steps) === undefined) return 'its end is not recorded';
  const began = steps.find(({ type }) => type === 'TerminationBegan');
  const reason = (began && terminationReason(began)) ?? 'Deleted';
  const last = new Map<string, Transition>();
  for (const step of steps)
    if (step.container !== undefined && step.containerKind === 'app' && ['Started', 'Exited'].includes(step.type))
      last.set(step.container, step);
  const ends = [...last].map(([name, { type, exitCode = 0 }]) => ({
    failed: type === 'Started' || exitCode !== 0,
    text: type === 'Started' ? `${name} end unknown` : `${name} exit ${exitCode}`,
  }));
  if (ends.length === 0) return `${reason}, no app container ran`;
  const failed = ends.filter((end) => end.failed);
  return [reason, ...(failed.length === 0 ? ['exit 0'] : failed.map(({ text }) => text))].join(', ');
}

export const livesTable = (lives: readonly LifeSummary[]): string[] =>
  tabColumns([
    'UID\tCREATED\tENDED\tRESULT',
    ...lives.map(({ uid, created = 'unknown', ended = '-', result }) =>
      [shortUid(uid), created, ended, result].join('\t'),
    ),
  ]);
