/**
 * Explains the state of a Pod: one sentence, the evidence, and what to do. Pure.
 *
 * Invariant: for an existing Pod, the first of RULES that applies gives the answer. If none applies, explainRunning() describes the Pod.
 */
import { isFinalPhase } from '../../api/core/v1/pod/status/final-phase.ts';
import { waitingProblem, wantedImage } from '../pod-containers.ts';
import { explainEnding } from './ending.ts';
import { explainGone } from './gone.ts';
import { explainEntryImages } from './needs/entry-images.ts';
import { explainEntryNeeds } from './needs/entry-needs.ts';
import { withSource } from './needs/pod-source.ts';
import {
  explainDownRuntime,
  explainLostNode,
  explainNode,
  explainTaint,
  explainUnreported,
  withUnreadyNode,
} from './node-troubles.ts';
import { explainOutcome } from './outcome.ts';
import { explainReadiness, explainRunning } from './running.ts';
import { explainScheduling } from './scheduling.ts';
import { failedStopHooks } from './stops/node-stop.ts';
import { called, type Explanation, type Living, oneLine, type Subject, shownContainers } from './subject.ts';
import { explainStarting, explainStopping, explainWaiting } from './waiting.ts';

const RULES: readonly ((subject: Living) => Explanation | undefined)[] = [
  explainUnreported,
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
  explainEntryNeeds,
  explainTaint,
];

export function explain(subject: Subject): Explanation {
  const { pod } = subject;
  if (pod === undefined) return explainGone(subject);
  const living: Living = { ...subject, pod };
  return withSource(living, explainLiving(living));
}

function explainLiving(living: Living): Explanation {
  for (const rule of RULES) {
    const explanation = rule(living);
    if (explanation !== undefined) return rule === explainUnreported ? explanation : withOthers(living, explanation);
  }
  return withUnreadyNode(living, explainRunning(living));
}

/**
 * Adds evidence about failed preStop hooks, and about problems of containers that the sentence does not name. Defer containers wait for
 * their turn, which is no problem.
 */
function withOthers(subject: Living, found: Explanation): Explanation {
  const explanation = { ...found, evidence: [...found.evidence, ...failedStopHooks(subject)] };
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
