/**
 * Prevents users from granting rights that they do not have. A user with the verb `escalate` on a role may write the role whatever its
 * rules are, and a user with the verb `bind` on a role may bind the role.
 * Source: pkg/registry/rbac (policybased) and its escalation_check.go of v1.33 (behavior and wording). Upstream makes these checks in the
 * storage of the kinds, not in a plugin.
 */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding } from '../../api/generated/types.ts';
import { RBAC_GROUP } from '../../api/rbac.authorization.k8s.io/v1/role-rules.ts';
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES } from '../../api/resources.ts';
import { type JsonValue, jsonEqual } from '../../machinery/json-value.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { forbidden, notFound } from '../../machinery/status.ts';
import { runInTurns, workInTurns } from '../../platform/work-in-turns.ts';
import type { Authorizer } from '../../ports/authorizer.ts';
import { isPrivileged } from '../auth/authorization/authorizer.ts';
import { describeRights, missingRights, quotedList } from '../auth/authorization/covers.ts';
import { objectKey, resourcePrefix } from '../cache/keys.ts';
import type { WatchCache } from '../cache/watch-cache.ts';
import type { AdmissionRequest, PluginFactory } from './plugin.ts';
import { on } from './targets.ts';

type AnyRole = Role | ClusterRole;
type AnyBinding = RoleBinding | ClusterRoleBinding;

const isAboutRole = [on(ROLES, 'CREATE', 'UPDATE'), on(CLUSTER_ROLES, 'CREATE', 'UPDATE')];
const isAboutBinding = [on(ROLE_BINDINGS, 'CREATE', 'UPDATE'), on(CLUSTER_ROLE_BINDINGS, 'CREATE', 'UPDATE')];

export const rbacEscalation: PluginFactory = ({ authorizer, cache }) => ({
  name: 'RBACEscalation',
  handles: (target) => [...isAboutRole, ...isAboutBinding].some((handles) => handles(target)),
  admit(request) {
    const { context, object, old } = request;
    if (isPrivileged(context.user) || object === undefined) return;
    // The garbage collector changes ownerReferences and finalizers, which grant no rights.
    if (old !== undefined && isSameBesides(object, old)) return;
    return isAboutBinding.some((handles) => handles(request))
      ? checkBinding(authorizer, cache, request, object as AnyBinding)
      : checkRole(authorizer, request, object as AnyRole);
  },
});

/** Compares the objects without their ownerReferences, their finalizers, and the metadata that the API server sets. */
function isSameBesides(object: KubeObject, old: KubeObject): boolean {
  const rest = ({ metadata, ...content }: KubeObject): JsonValue => {
    const { labels, annotations, name, namespace } = metadata;
    return {
      ...content,
      labels: labels ?? {},
      annotations: annotations ?? {},
      name,
      namespace: namespace ?? '',
    } as JsonValue;
  };
  return jsonEqual(rest(object), rest(old));
}

const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

async function checkRole(authorizer: Authorizer, request: AdmissionRequest, role: AnyRole): Promise<void> {
  const { context, groupResource, old } = request;
  const { user, namespace, name } = context;
  const { group, resource } = groupResource;
  const escalate = { user, verb: 'escalate', group, resource, namespace, name };
  if ((await authorizer.authorize(escalate)).allowed) return;
  const refuse = (cause: string) => forbidden(groupResource, role.metadata.name, cause);
  const refused = await missingText(authorizer, request, role.rules ?? []);
  if (refused !== undefined) throw refuse(refused);
  // A role with an aggregationRule can get any rules, so only a user with all rights may write it.
  const isAggregated = [role, old].some((each) => (each as ClusterRole | undefined)?.aggregationRule !== undefined);
  if (isAggregated && (await missingText(authorizer, request, EVERYTHING)) !== undefined)
    throw refuse('must have cluster-admin privileges to use the aggregationRule');
}

async function checkBinding(
  authorizer: Authorizer,
  cache: WatchCache,
  request: AdmissionRequest,
  binding: AnyBinding,
): Promise<void> {
  const { context, groupResource } = request;
  const { user, namespace } = context;
  const { kind, name = '', apiGroup } = binding.roleRef ?? {};
  const { resource } = kind === 'Role' ? ROLES : CLUSTER_ROLES;
  if (apiGroup === RBAC_GROUP) {
    const bind = { user, verb: 'bind', group: RBAC_GROUP, resource, namespace, name };
    if ((await authorizer.authorize(bind)).allowed) return;
  }
  const key = objectKey(resourcePrefix(RBAC_GROUP, resource), kind === 'Role' ? namespace : undefined, name);
  const role = cache.get(key) as AnyRole | undefined;
  if (role === undefined)
    throw notFound({ group: RBAC_GROUP, resource: kind === 'Role' ? 'role' : 'clusterrole' }, name);
  const refused = await missingText(authorizer, request, role.rules ?? []);
  if (refused !== undefined) throw forbidden(groupResource, binding.metadata.name, refused);
}

async function missingText(
  authorizer: Authorizer,
  { context }: AdmissionRequest,
  rules: readonly PolicyRule[],
): Promise<string | undefined> {
  const { user, namespace = '' } = context;
  const { roles: held, errors } = await authorizer.rulesFor(user, namespace);
  const missing = await runInTurns(missingRights(held, rules), workInTurns());
  if (missing.length === 0) return undefined;
  const granted = describeRights(missing).join('\n');
  const text = `user ${JSON.stringify(user.name)} (groups=${quotedList(user.groups)}) is attempting to grant RBAC permissions not currently held:\n${granted}`;
  return errors.length === 0 ? text : `${text}; resolution errors: [${errors.join(', ')}]`;
}
