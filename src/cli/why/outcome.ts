/** Explains how a Succeeded or Failed Pod ended. Pure. */
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import { isFinalPhase } from '../../api/core/v1/pod/status/final-phase.ts';
import { deferOutcome, type EntryEnd, endOfEntry, endText, failedEntry, remainingWork } from './entries.ts';
import { unstarted } from './failed-start.ts';
import { explainRejected } from './rejected.ts';
import { codeText, endOfRun } from './run-end.ts';
import { stopOf } from './stops/node-stop.ts';
import { deafExits, hearSignals } from './stops/pid-one.ts';
import {
  type Action,
  called,
  controllerOf,
  type Explanation,
  endedWithNode,
  type Living,
  lastWords,
  listed,
  oneLine,
  seeOutput,
  seeTimeline,
  shownContainers,
  sidecarsOf,
} from './subject.ts';

/**
 * Explains how a Succeeded or Failed Pod ended; undefined for a Pod in another phase. Sidecars are only evidence, because they do not
 * decide how a Pod ends.
 */
export function explainOutcome(subject: Living): Explanation | undefined {
  const { pod, name } = subject;
  const { phase, reason, message } = pod.status ?? {};
  if (!isFinalPhase(phase)) return undefined;
  const { ends, entries, missing, evidence } = endsOf(subject);
  const defers = deferOutcome(entries);
  const missed = [...remainingWork(subject, entries), ...seeFailedEntry(subject, entries)];
  const stopped = ends.flatMap((shown) => (shown.kind === 'app' ? (stopOf(subject, shown)?.cause ?? []) : []));
  if (phase === 'Succeeded' && stopped.length > 0)
    return {
      sentence: `${name} has completed, but not by itself: ${listed(stopped)}, and all its app containers ended with code 0${defers}.`,
      evidence,
      // The node creates a deleted mirror Pod again.
      actions: [...missed, seeTimeline(subject), ...(isMirrorPod(pod) ? [] : [deleteIt(subject)])],
    };
  if (phase === 'Succeeded')
    return {
      sentence: `${name} has completed: all its app containers ended with code 0${defers}.`,
      evidence: [...evidence, 'its object stays until it is deleted'],
      actions: missed,
    };
  const sidecars = sidecarsOf(pod);
  const bad = ends.find(
    ({ kind, name: own, terminated }) =>
      (kind === 'init' || kind === 'app') && !sidecars.has(own) && terminated.exitCode !== 0,
  );
  const end = bad === undefined ? undefined : endOfRun(subject, bad, bad.terminated, false);
  if (reason === 'DeferContainerFailed') return failedByEntry(subject, entries, evidence, end?.cause);
  const remedies = missing.slice(0, 1).flatMap(({ actions }) => actions);
  const deaf = deafEvidence(subject, reason ? undefined : bad?.name);
  const deafLines = deaf.map(({ line }) => line);
  const known = [...evidence, ...deafLines, ...missing.map(({ cause }) => cause)];
  const rejected = explainRejected(subject, { text: defers, evidence: known, actions: missed });
  if (rejected !== undefined) return { ...rejected, actions: [...remedies, ...rejected.actions] };
  const why = reason
    ? `${reason}${message ? `, ${oneLine(message).replace(/\.$/, '')}` : ''}${missing.map(({ cause }) => `; ${cause}`).join('')}`
    : (end?.cause ?? 'its containers did not succeed');
  const proof = [...evidence, ...deafLines, ...(end?.evidence ?? [])];
  if (endedWithNode(subject) && controllerOf(pod) === undefined)
    return {
      sentence: `${name} has failed: ${why}${defers}; it has no controller, so it does not start again by itself.`,
      evidence: proof,
      actions: [
        ...missed,
        ...remedies,
        deleteIt(subject),
        applyAgain(subject),
        ...deaf.slice(0, 1).map((each) => hearSignals(pod, each.name)),
        seeTimeline(subject),
      ],
    };
  const isAlone = bad !== undefined && stopOf(subject, bad)?.isLoss && controllerOf(pod) === undefined;
  return {
    sentence: `${name} has failed: ${why}${defers}.`,
    evidence: proof,
    actions: [
      ...(isAlone ? [deleteIt(subject), applyAgain(subject)] : []),
      ...(end === undefined ? [seeTimeline(subject)] : end.actions),
      ...missed,
    ],
  };
}

/** `missing`: the containers that had not started, if the record says why. `evidence`: a line for each container that has ended. */
function endsOf(subject: Living) {
  const ends = shownContainers(subject).flatMap((shown) => {
    const { terminated } = shown.status.state ?? {};
    return terminated === undefined ? [] : [{ ...shown, terminated }];
  });
  const entries = ends.flatMap(({ kind, status }) =>
    kind === 'defer' ? (endOfEntry(subject.pod, status, subject.transitions) ?? []) : [],
  );
  const missing = ends.flatMap((shown) => {
    const found = shown.kind === 'defer' ? undefined : unstarted(subject, shown, shown.terminated);
    return found === undefined ? [] : [{ name: shown.name, ...found }];
  });
  const evidence = ends.map(({ terminated, ...shown }) => {
    const entry = shown.kind === 'defer' ? entries.find((each) => each.name === shown.name) : undefined;
    if (entry !== undefined) return `${called(shown)}: ${endText(entry)}`;
    const isUnstarted = missing.some(({ name }) => name === shown.name);
    return `${called(shown)}: ${isUnstarted ? `not started, its node reports ${codeText(terminated)}` : `exit ${codeText(terminated)}`}`;
  });
  return { ends, entries, missing, evidence };
}

/** Returns a line for each container that did not end after its stop signal and was killed, except the one that the sentence names. */
const deafEvidence = (subject: Living, named: string | undefined): { name: string; line: string }[] =>
  deafExits(subject.transitions).flatMap(({ container: name = '', containerKind: kind = 'app' }) => {
    const shown = shownContainers(subject).find((each) => each.name === name) ?? { kind, name };
    return name === named ? [] : [{ name, line: `${called(shown)} did not end after its stop signal and was killed` }];
  });

const seeFailedEntry = (subject: Living, entries: readonly EntryEnd[]): Action[] => {
  const failed = failedEntry(entries);
  return failed === undefined ? [] : [seeEntryOutput(subject, failed.name)];
};

/** Names the entry, because the action before may name several. */
const seeEntryOutput = (subject: Living, entry: string): Action => ({
  ...seeOutput(subject, entry),
  description: `see the output of ${entry}`,
});

/** FILE stands for the manifest, whose name is not known. */
const applyAgain = ({ namespace, hints }: Living): Action => ({
  description: 'then run it again from its manifest, FILE',
  command: hints.kubectl(`apply -n ${namespace} -f FILE`),
});

const deleteIt = ({ name, namespace, hints }: Living): Action => ({
  description: 'delete it',
  command: hints.kubectl(`delete pod ${name} -n ${namespace}`),
});

/**
 * Explains a Pod that failed because of a defer container with failurePolicy FailPod. `badEnd`: how an init or app container failed, if one
 * did.
 */
function failedByEntry(subject: Living, entries: readonly EntryEnd[], evidence: string[], badEnd = ''): Explanation {
  const { name, pod } = subject;
  const policies = new Map(pod.spec?.deferContainers?.map((entry) => [entry.name, entry.failurePolicy]));
  const deciding = entries.filter((end) => policies.get(end.name) === 'FailPod' && deferOutcome([end]) !== '');
  const names = deciding.map((end) => end.name);
  const [first] = deciding;
  return {
    sentence: `${name} has failed: DeferContainerFailed${deferOutcome(entries)}${names.length === 0 ? '' : `; the failurePolicy of ${listed(names)} is FailPod`}${badEnd && `; ${badEnd}`}.`,
    evidence: [...evidence, ...(first === undefined ? [] : lastWords(subject, first.name, undefined))],
    actions: [
      ...remainingWork(subject, entries),
      first?.ran === true ? seeEntryOutput(subject, first.name) : seeTimeline(subject),
    ],
  };
}
