/**
 * Explains the state of a Pod: one sentence, the evidence, and what to do.
 *
 * Boundary: pure. The caller fetches the Pod, its node, its Events, its record and the last lines of its logs.
 * Invariant: for an existing Pod, the first of RULES that applies gives the answer. If none applies, explainRunning() describes the
 * running Pod.
 */
import { explainEnding } from './ending.ts';
import { explainGone } from './gone.ts';
import { explainEntryImages } from './images.ts';
import { explainLostNode, explainNode, explainTaint } from './node-troubles.ts';
import { explainOutcome } from './outcome.ts';
import { explainReadiness, explainRunning } from './running.ts';
import { explainScheduling } from './scheduling.ts';
import type { Explanation, Living, Subject } from './subject.ts';
import { explainStarting, explainStopping, explainWaiting } from './waiting.ts';

const RULES: readonly ((subject: Living) => Explanation | undefined)[] = [
  explainEnding,
  explainOutcome,
  explainScheduling,
  explainNode,
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
    if (explanation !== undefined) return explanation;
  }
  return explainRunning(living);
}
