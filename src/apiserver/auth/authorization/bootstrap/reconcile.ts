/**
 * Adds what is missing to an existing role or binding. What a user has added remains, unless a binding must be recreated.
 * Source: k8s.io/component-helpers/auth/rbac/reconciliation of v1.33 (behavior), as the API server calls it at its start.
 */
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
} from '../../../../api/generated/types.ts';
import { type JsonValue, jsonEqual } from '../../../../machinery/json-value.ts';
import type { KubeObject, ObjectMeta } from '../../../../machinery/meta.ts';
import { runAtOnce } from '../../../../platform/work-in-turns.ts';
import { missingRights } from '../covers.ts';
import { AUTO_UPDATE } from './bootstrap-objects.ts';

/**
 * Undefined if no write is necessary, or if the annotation AUTO_UPDATE forbids it. `recreate`: the binding refers to another role, and a
 * roleRef is immutable.
 */
export type Reconciliation<T> = { action: 'create' | 'update' | 'recreate'; object: T } | undefined;

type AnyRole = Role | ClusterRole;
type AnyBinding = RoleBinding | ClusterRoleBinding;

const isProtected = ({ metadata }: KubeObject): boolean => metadata.annotations?.[AUTO_UPDATE] === 'false';

export function reconcileRole<T extends AnyRole>(existing: T | undefined, expected: T): Reconciliation<T> {
  if (existing === undefined) return { action: 'create', object: expected };
  const wanted = { ...existing, metadata: withMissing(existing.metadata, expected.metadata) };
  const { aggregationRule }: Partial<ClusterRole> = expected;
  if (aggregationRule === undefined) {
    const missing = missingRules(existing.rules, expected.rules);
    if (missing.length > 0) wanted.rules = [...(existing.rules ?? []), ...missing];
  } else {
    const { clusterRoleSelectors: present = [] } = (existing as ClusterRole).aggregationRule ?? {};
    const isPresent = (selector: object): boolean => present.some((other) => isSame(other, selector));
    const missing = (aggregationRule.clusterRoleSelectors ?? []).filter((selector) => !isPresent(selector));
    (wanted as ClusterRole).aggregationRule = { clusterRoleSelectors: [...present, ...missing] };
  }
  return changeOf(existing, wanted);
}

/** Compares the lists first, because most roles have not changed since the last start, and missingRights() takes much longer. */
const missingRules = (existing: PolicyRule[] = [], expected: PolicyRule[] = []): readonly PolicyRule[] =>
  isSame(existing, expected) ? [] : runAtOnce(missingRights([existing], expected));

export function reconcileBinding<T extends AnyBinding>(existing: T | undefined, expected: T): Reconciliation<T> {
  if (existing === undefined) return { action: 'create', object: expected };
  if (!isSame(existing.roleRef, expected.roleRef))
    return isProtected(existing) ? undefined : { action: 'recreate', object: expected };
  const wanted = { ...existing, metadata: withMissing(existing.metadata, expected.metadata) };
  const { subjects: present = [] } = existing;
  const missing = (expected.subjects ?? []).filter((subject) => !present.some((other) => isSame(other, subject)));
  if (missing.length > 0) wanted.subjects = [...present, ...missing];
  return changeOf(existing, wanted);
}

const isSame = (a: object, b: object): boolean => jsonEqual(a as JsonValue, b as JsonValue);

const changeOf = <T extends KubeObject>(existing: T, object: T): Reconciliation<T> =>
  isProtected(existing) || isSame(existing, object) ? undefined : { action: 'update', object };

const withMissing = (existing: ObjectMeta, { labels, annotations }: ObjectMeta): ObjectMeta => ({
  ...existing,
  labels: { ...labels, ...existing.labels },
  annotations: { ...annotations, ...existing.annotations },
});
