/**
 * Explains the state of a Pod: one sentence, the evidence, and what to do.
 *
 * Boundary: pure. The caller fetches the Pod, its node, its Events, its record and the last lines of its logs.
 * Invariant: for an existing Pod, the first of RULES that applies gives the answer. If none applies, explainRunning() describes the
 * running Pod.
 */
import { isFinalPhase } from '../../api/core/v1/pod/status/final-phase.ts';
import { waitingProblem, wantedImage } from '../pod-containers.ts';
import { explainEnding } from './ending.ts';
import { explainGone } from './gone.ts';
import { explainEntryImages } from './images.ts';
import { explainDownRuntime, explainLostNode, explainNode, explainTaint, withUnreadyNode } from './node-troubles.ts';
import { explainOutcome } from './outcome.ts';
import { explainReadiness, explainRunning } from './running.ts';
import { explainScheduling } from './scheduling.ts';
import { called, type Explanation, type Living, oneLine, type Subject, shownContainers } from './subject.ts';
import { explainStarting, explainStopping, explainWaiting } from './waiting.ts';

const RULES: readonly ((subject: Living) => Explanation | undefined)[] = [
  explainEnding,
  explainOutcome,
  explainScheduling,
  explainNode,
  explainDownRuntime,
  explainWaiting,
  explainStopping,
  explainStarting,
  explainLostNode,
  explainReadiness,
  explainEntryImages,
  explainTaint,
];

export function explain(subject: Subject): Explanation {
  const { pod } = subject;
  if (pod === undefined) return explainGone(subject);
  const living: Living = { ...subject, pod };
  for (const rule of RULES) {
    const explanation = rule(living);
    if (explanation !== undefined) return withOthers(living, explanation);
  }
  return withUnreadyNode(living, explainRunning(living));
}

/**
 * Adds evidence about the containers with a problem that the sentence does not name, except defer containers, which wait for their turn.
 * Adds nothing if the Pod has ended or is being deleted.
 */
function withOthers(subject: Living, explanation: Explanation): Explanation {
  if (isFinalPhase(subject.pod.status?.phase) || subject.pod.metadata.deletionTimestamp !== undefined)
    return explanation;
  const lines = shownContainers(subject).flatMap((shown) => {
    const problem = shown.kind === 'defer' ? undefined : waitingProblem(shown.status);
    const { volume } = wantedImage(subject.pod, shown);
    const cause = volume === undefined ? `container ${shown.name}` : `volume ${volume.name}`;
    // A name contains only letters, digits and hyphens.
    const isNamed = new RegExp(`${cause}(?![\\w-])`).test(explanation.sentence);
    const message = oneLine(shown.status.state?.waiting?.message);
    return problem === undefined || isNamed ? [] : [`also ${called(shown)}: ${problem}${message && `, ${message}`}`];
  });
  return { ...explanation, evidence: [...explanation.evidence, ...lines] };
}
