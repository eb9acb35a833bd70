/**
 * Warns about the existing Pods that violate a level that their Namespace begins to enforce. These Pods continue to run.
 * Source: k8s.io/pod-security-admission/admission of v1.33 (behavior and wording).
 */
import type { Pod } from '../../../../generated/types.ts';
import { reasonsText, violationsOf } from './evaluate.ts';
import { type LevelVersion, levelText } from './policy.ts';

const MAX_PODS = 3000;

/** Pods without a controller, and the first Pod of each controller, are evaluated first. */
function byController(pods: readonly Pod[]): Pod[] {
  const controllers = new Set<string>();
  const first: Pod[] = [];
  const others: Pod[] = [];
  for (const pod of pods) {
    const uid = pod.metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
    (uid !== undefined && controllers.has(uid) ? others : first).push(pod);
    if (uid !== undefined) controllers.add(uid);
  }
  return [...first, ...others];
}

function warningText(reasons: string, names: readonly string[]): string {
  const [first, ...others] = [...names].sort();
  if (others.length === 0) return `${first}: ${reasons}`;
  return `${first} (and ${others.length} other ${others.length === 1 ? 'pod' : 'pods'}): ${reasons}`;
}

/**
 * Evaluates the Pods, one in each step, and returns one warning for each combination of violations. Stops after MAX_PODS Pods, or when
 * isOver() returns true after a Pod; then a warning gives the number of evaluated Pods.
 */
export function* warningsAboutPods(
  namespace: string,
  enforced: LevelVersion,
  pods: readonly Pod[],
  isOver: () => boolean,
): Generator<void, string[]> {
  const violating = new Map<string, string[]>();
  let evaluated = 0;
  for (const pod of byController(pods).slice(0, MAX_PODS)) {
    evaluated++;
    const violations = violationsOf(enforced, pod);
    if (violations.length > 0) {
      const reasons = reasonsText(violations);
      const names = violating.get(reasons) ?? [];
      names.push(pod.metadata.name);
      violating.set(reasons, names);
    }
    if (isOver()) break;
    yield;
  }
  const total = pods.length;
  const partial = `new PodSecurity enforce level only checked against the first ${evaluated} of ${total} existing pods`;
  const level = JSON.stringify(levelText(enforced));
  const intro = `existing pods in namespace ${JSON.stringify(namespace)} violate the new PodSecurity enforce level ${level}`;
  return [
    ...(evaluated < total ? [partial] : []),
    ...(violating.size > 0 ? [intro] : []),
    ...[...violating].map(([reasons, names]) => warningText(reasons, names)).sort(),
  ];
}
