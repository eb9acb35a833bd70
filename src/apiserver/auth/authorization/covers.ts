/**
 * Compares the rights of two lists of rules, so that a user can grant only rights that the user has.
 * Source: Covers and CompactRules of k8s.io/component-helpers/auth/rbac/validation, and CompactString of pkg/apis/rbac/v1 of v1.33
 * (behavior and wording).
 */
import type { PolicyRule } from '../../../api/generated/types.ts';
import { rulesAllow } from './rule-index.ts';

/** A rule about one verb, and about one path or one resource with at most one name. */
type Right = PolicyRule;

/** The limit on compared rights: a rule with many verbs, groups and resources has very many. */
const MAX_COMPARED = 1_000_000;
/** The limit on missing rights: an error message has no room for more. */
const MAX_MISSING = 1000;
const COMPARED_PER_STEP = 1000;

const NOBODY = { name: '', groups: [] };

/**
 * Returns at most 1000 rights of `wanted` that none of the lists `held` contains. After a million compared rights, stops and counts the
 * current rule as missing. Yields after each thousand compared rights.
 */
export function* missingRights(
  held: readonly (readonly PolicyRule[])[],
  wanted: readonly PolicyRule[],
): Generator<void, readonly Right[]> {
  const missing: Right[] = [];
  let compared = 0;
  for (const rule of wanted) {
    for (const right of rightsOf(rule)) {
      if (compared >= MAX_COMPARED) return [...missing, rule];
      if (!held.some((rules) => holds(rules, right))) missing.push(right);
      if (missing.length >= MAX_MISSING) return missing;
      compared++;
      if (compared % COMPARED_PER_STEP === 0) yield;
    }
  }
  return missing;
}

function holds(held: readonly PolicyRule[], right: Right): boolean {
  const [verb = ''] = right.verbs;
  const [path] = right.nonResourceURLs ?? [];
  if (path !== undefined) return rulesAllow(held, { user: NOBODY, verb, path });
  const [group = ''] = right.apiGroups ?? [];
  const [combined = ''] = right.resources ?? [];
  const [name] = right.resourceNames ?? [];
  const slash = combined.indexOf('/');
  const resource = slash === -1 ? combined : combined.slice(0, slash);
  const subresource = slash === -1 ? undefined : combined.slice(slash + 1);
  return rulesAllow(held, { user: NOBODY, verb, group, resource, subresource, name });
}

function* rightsOf(rule: PolicyRule): Generator<Right> {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  for (const group of apiGroups)
    for (const resource of resources)
      for (const verb of verbs) {
        const right = { apiGroups: [group], resources: [resource], verbs: [verb] };
        if (resourceNames.length === 0) yield right;
        for (const name of resourceNames) yield { ...right, resourceNames: [name] };
      }
  for (const path of nonResourceURLs) for (const verb of verbs) yield { nonResourceURLs: [path], verbs: [verb] };
}

/** Joins rights that differ only in their verbs, and describes each joined right in upstream's form, in alphabetical order. */
export function describeRights(rights: readonly Right[]): string[] {
  const texts: string[] = [];
  const joined = new Map<string, PolicyRule>();
  for (const right of rights) {
    if (!isSimple(right)) {
      texts.push(describe(right));
      continue;
    }
    const key = JSON.stringify([right.apiGroups, right.resources, right.resourceNames]);
    const known = joined.get(key);
    if (known === undefined) joined.set(key, { ...right, verbs: [...right.verbs] });
    else known.verbs.push(...right.verbs);
  }
  return [...new Set([...texts, ...[...joined.values()].map(describe)])].sort();
}

const isSimple = ({ apiGroups, resources, resourceNames = [], nonResourceURLs = [] }: PolicyRule): boolean =>
  apiGroups?.length === 1 && resources?.length === 1 && resourceNames.length <= 1 && nonResourceURLs.length === 0;

function describe({ apiGroups, resources, nonResourceURLs, resourceNames, verbs }: PolicyRule): string {
  const parts = {
    APIGroups: apiGroups,
    Resources: resources,
    NonResourceURLs: nonResourceURLs,
    ResourceNames: resourceNames,
    Verbs: verbs,
  };
  const shown = Object.entries(parts)
    .filter(([, values]) => (values ?? []).length > 0)
    .map(([name, values = []]) => `${name}:${quotedList(values)}`);
  return `{${shown.join(', ')}}`;
}

/** Formats the texts as Go's %q, such as `["a" "b"]`. */
export const quotedList = (texts: readonly string[]): string =>
  `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`;
