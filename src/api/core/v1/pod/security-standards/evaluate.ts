/**
 * Evaluates Pods against a level of the Pod Security Standards.
 *
 * Invariants: restricted includes all controls of baseline. A version newer than all controls evaluates like the newest one. Defer
 * containers are evaluated like all other containers.
 * Source: k8s.io/pod-security-admission/policy of v1.33 (behavior and wording). The relaxations for Pods with user namespaces are off, as
 * by default in v1.33.
 */
import type { ObjectMeta } from '../../../../../machinery/meta.ts';
import type { PodSpec } from '../../../../generated/types.ts';
import { containersOf, specOf } from '../containers.ts';
import { baselineControls } from './baseline.ts';
import type { Check, Control, ControlVersion, Violation } from './control.ts';
import { type LevelVersion, minorOf } from './policy.ts';
import { restrictedControls } from './restricted.ts';

interface PodLike {
  metadata?: Pick<ObjectMeta, 'annotations'>;
  spec?: PodSpec;
}

const NEWEST = Math.max(
  ...[...baselineControls, ...restrictedControls].flatMap(({ versions }) => versions.map(({ since }) => since)),
);

const inVersion = (controls: readonly Control[], minor: number): (ControlVersion & { id: string })[] =>
  controls.flatMap(({ id, versions }) => {
    const version = versions.findLast(({ since }) => since <= minor);
    return version === undefined ? [] : [{ ...version, id }];
  });

function checksIn(level: LevelVersion['level'], minor: number): Check[] {
  if (level === 'privileged') return [];
  const added = level === 'restricted' ? inVersion(restrictedControls, minor) : [];
  const replaced = new Set(added.map(({ replaces }) => replaces));
  const baseline = inVersion(baselineControls, minor).filter(({ id }) => !replaced.has(id));
  return [...baseline, ...added].map(({ check }) => check);
}

/** By minor version, derived on demand. */
const derived = {
  privileged: new Map<number, Check[]>(),
  baseline: new Map<number, Check[]>(),
  restricted: new Map<number, Check[]>(),
};

function checksOf(policy: LevelVersion): Check[] {
  const minor = Math.min(minorOf(policy), NEWEST);
  const ofLevel = derived[policy.level];
  const checks = ofLevel.get(minor) ?? checksIn(policy.level, minor);
  ofLevel.set(minor, checks);
  return checks;
}

/** Returns an empty list if the level allows the Pod or template. */
export function violationsOf(policy: LevelVersion, pod: PodLike): Violation[] {
  if (policy.level === 'privileged') return [];
  const spec = specOf(pod);
  const evaluated = { annotations: pod.metadata?.annotations ?? {}, spec, containers: containersOf({ spec }) };
  return checksOf(policy).flatMap((check) => check(evaluated) ?? []);
}

/** Formats the violations without details, for a message about many Pods. */
export const reasonsText = (violations: readonly Violation[]): string =>
  violations.map(({ reason }) => reason).join(', ');

/** Formats the violations with details, for a message about one Pod. */
export const violationsText = (violations: readonly Violation[]): string =>
  violations.map(({ reason, detail }) => (detail === '' ? reason : `${reason} (${detail})`)).join(', ');
