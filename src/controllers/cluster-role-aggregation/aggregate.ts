/**
 * Computes the rules of a ClusterRole with an aggregationRule.
 * Source: syncClusterRole of pkg/controller/clusterroleaggregation of v1.33 (behavior).
 */
import type { ClusterRole, PolicyRule } from '../../api/generated/types.ts';
import { type JsonValue, jsonEqual } from '../../machinery/json-value.ts';
import { labelSelectorMatcher } from '../../machinery/labels.ts';

/**
 * Returns the rules of the selected roles without duplicates, in the order of the selectors and then of the roles; undefined if the role
 * already has these rules. `roles`: all roles, sorted by name.
 */
export function aggregatedRules(role: ClusterRole, roles: readonly ClusterRole[]): PolicyRule[] | undefined {
  const rules = new Map<string, PolicyRule>();
  for (const selector of role.aggregationRule?.clusterRoleSelectors ?? []) {
    const matches = labelSelectorMatcher(selector);
    for (const { metadata, rules: own = [] } of roles) {
      if (metadata.name === role.metadata.name || !matches(metadata.labels)) continue;
      for (const rule of own) rules.set(keyOf(rule), rule);
    }
  }
  const wanted = [...rules.values()];
  const isSame = jsonEqual((role.rules ?? []) as unknown as JsonValue, wanted as unknown as JsonValue);
  return isSame ? undefined : wanted;
}

const keyOf = ({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule): string =>
  JSON.stringify([verbs, apiGroups, resources, resourceNames, nonResourceURLs]);
