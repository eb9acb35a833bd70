/**
 * The RBAC authorizer. A decision visits only the bindings of the user's own subjects, in the cluster and in the namespace of the request.
 * A binding to a role that does not exist grants nothing, and does not prevent what other bindings grant.
 *
 * Source: plugin/pkg/auth/authorizer/rbac and pkg/registry/rbac/validation of v1.33 (behavior and wording).
 */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding } from '../../../api/generated/types.ts';
import { groupResourceText } from '../../../machinery/status.ts';
import { workInTurns } from '../../../platform/work-in-turns.ts';
import { type Authorizer, isPath } from '../../../ports/authorizer.ts';
import type { UserInfo } from '../../../ports/request.ts';
import { rulesAllow } from './rule-index.ts';
import { describeSubject, inNamespace, userKeys } from './subjects.ts';

/** The objects are frozen: when an object changes, another object replaces it. */
export interface RbacObjects {
  /** Resolves once the objects that existed at the start have been read. */
  readonly synced: Promise<void>;
  role(namespace: string, name: string): Role | undefined;
  clusterRole(name: string): ClusterRole | undefined;
  /** `key`: inNamespace('', KEY), in which KEY comes from userKeys(). For roleBindings(): inNamespace(NAMESPACE, KEY). */
  clusterRoleBindings(key: string): Iterable<ClusterRoleBinding>;
  roleBindings(key: string): Iterable<RoleBinding>;
}

/** After this many bindings, a decision lets other work run, even if all bindings refer to one role. */
const BINDINGS_PER_STEP = 1000;

interface Grant {
  binding: RoleBinding | ClusterRoleBinding;
  subject: string;
  rules: readonly PolicyRule[] | undefined;
}

export function createRbac(objects: RbacObjects): Authorizer {
  return {
    async authorize(given) {
      const attributes = isPath(given) ? given : { ...given, name: given.name ?? '' };
      const namespace = isPath(given) ? '' : (given.namespace ?? '');
      await objects.synced;
      const betweenSteps = workInTurns();
      const missing = new Set<string>();
      const denied = new Set<readonly PolicyRule[]>();
      let visited = 0;
      for (const { binding, subject, rules } of grantsTo(objects, attributes.user, namespace)) {
        if (rules === undefined) missing.add(missingRole(binding));
        else if (!denied.has(rules)) {
          if (rulesAllow(rules, attributes)) return { allowed: true, reason: allowedBy(binding, subject) };
          denied.add(rules);
          await betweenSteps();
        }
        visited++;
        if (visited % BINDINGS_PER_STEP === 0) await betweenSteps();
      }
      return { allowed: false, reason: missing.size === 0 ? '' : `RBAC: ${aggregate([...missing])}` };
    },
    async rulesFor(user, namespace) {
      await objects.synced;
      const missing = new Set<string>();
      const found = new Set<readonly PolicyRule[]>();
      for (const { binding, rules } of grantsTo(objects, user, namespace)) {
        if (rules === undefined) missing.add(missingRole(binding));
        else found.add(rules);
      }
      return { roles: [...found], errors: [...missing] };
    },
  };
}

function* grantsTo(objects: RbacObjects, user: UserInfo, namespace: string): Generator<Grant> {
  const keys = userKeys(user);
  for (const subject of keys)
    for (const binding of [...objects.clusterRoleBindings(inNamespace('', subject))])
      yield { binding, subject, rules: rulesOf(objects, binding) };
  if (namespace === '') return;
  for (const subject of keys)
    for (const binding of [...objects.roleBindings(inNamespace(namespace, subject))])
      yield { binding, subject, rules: rulesOf(objects, binding) };
}

const NO_RULES: readonly PolicyRule[] = [];

export function rulesOf(
  objects: Pick<RbacObjects, 'role' | 'clusterRole'>,
  { roleRef, metadata }: Pick<RoleBinding, 'roleRef' | 'metadata'>,
): readonly PolicyRule[] | undefined {
  const { kind, name } = roleRef;
  const role = kind === 'Role' ? objects.role(metadata.namespace ?? '', name) : objects.clusterRole(name);
  return role && (role.rules ?? NO_RULES);
}

/** As upstream, names the resource in the singular. */
function missingRole({ roleRef }: Pick<RoleBinding, 'roleRef'>): string {
  const { apiGroup, kind, name } = roleRef;
  return `${groupResourceText({ group: apiGroup, resource: kind.toLowerCase() })} ${JSON.stringify(name)} not found`;
}

/** Source: k8s.io/apimachinery/pkg/util/errors. */
const aggregate = (errors: readonly string[]): string =>
  errors.length === 1 ? (errors[0] as string) : `[${errors.join(', ')}]`;

function allowedBy({ metadata, roleRef }: RoleBinding | ClusterRoleBinding, subject: string): string {
  const { name, namespace } = metadata;
  const [kind, shown] =
    namespace === undefined ? ['ClusterRoleBinding', name] : ['RoleBinding', `${name}/${namespace}`];
  const role = `${roleRef.kind} ${JSON.stringify(roleRef.name)}`;
  return `RBAC: allowed by ${kind} ${JSON.stringify(shown)} of ${role} to ${describeSubject(subject)}`;
}
