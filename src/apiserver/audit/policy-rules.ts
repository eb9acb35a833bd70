/** Source: k8s.io/apiserver/pkg/audit/policy of v1.33 (behavior). */
import type { PathAttributes, ResourceAttributes } from '../../ports/authorizer.ts';
import type { UserInfo } from '../../ports/request.ts';
import type { GroupResources, Level, Policy, PolicyRule, Stage } from './policy.ts';

/** The parts of a request on which a rule can depend. `user` is absent if the authentication has failed. */
export type Audited = (Omit<ResourceAttributes, 'user'> | Omit<PathAttributes, 'user'>) & { user?: UserInfo };

export interface AuditConfig {
  level: Level;
  omitStages: ReadonlySet<Stage>;
  omitManagedFields: boolean;
}

/** The first matching rule determines how a request is recorded. A request that matches no rule has the level None. */
export function policyRules(policy: Policy): (request: Audited) => AuditConfig {
  const configOf = (rule: PolicyRule): AuditConfig => ({
    level: rule.level,
    omitStages: new Set([...(policy.omitStages ?? []), ...(rule.omitStages ?? [])]),
    omitManagedFields: rule.omitManagedFields ?? policy.omitManagedFields ?? false,
  });
  const rules = policy.rules.map((rule) => ({ rule, config: configOf(rule) }));
  const otherwise = configOf({ level: 'None' });
  return (request) => rules.find(({ rule }) => matches(rule, request))?.config ?? otherwise;
}

const allows = (list: readonly string[] | undefined, value: string): boolean =>
  list === undefined || list.length === 0 || list.includes(value);

const isGiven = (list: readonly unknown[] | undefined): boolean => list !== undefined && list.length > 0;

function matches(rule: PolicyRule, request: Audited): boolean {
  const { user, verb } = request;
  const { users, userGroups } = rule;
  if (isGiven(users) && (user === undefined || !allows(users, user.name))) return false;
  if (isGiven(userGroups) && !user?.groups.some((group) => allows(userGroups, group))) return false;
  if (!allows(rule.verbs, verb)) return false;
  if (isGiven(rule.namespaces) || isGiven(rule.resources))
    return !isPathRequest(request) && matchesResource(rule, request);
  if (!isGiven(rule.nonResourceURLs)) return true;
  return isPathRequest(request) && rule.nonResourceURLs?.some((url) => matchesPath(url, request.path)) === true;
}

const isPathRequest = (request: Audited): request is Omit<PathAttributes, 'user'> => 'path' in request;

function matchesPath(url: string, path: string): boolean {
  return url === '*' || url === path || (url.endsWith('*') && path.startsWith(url.replace(/\*+$/, '')));
}

function matchesResource(
  { namespaces, resources = [] }: PolicyRule,
  request: Omit<ResourceAttributes, 'user'>,
): boolean {
  if (!allows(namespaces, request.namespace ?? '')) return false;
  return resources.length === 0 || resources.some((each) => matchesGroup(each, request));
}

function matchesGroup(
  { group = '', resources = [], resourceNames }: GroupResources,
  { group: requested, resource, subresource = '', name = '' }: Omit<ResourceAttributes, 'user'>,
): boolean {
  if (group !== requested) return false;
  if (resources.length === 0) return true;
  if (!allows(resourceNames, name)) return false;
  const whole = subresource === '' ? resource : `${resource}/${subresource}`;
  return resources.some(
    (each) =>
      each === '*' || each === whole || each === `${resource}/*` || (subresource !== '' && each === `*/${subresource}`),
  );
}
