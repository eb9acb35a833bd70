/**
 * Rules are indexed by resource, so that in a role with thousands of rules, only those about the requested resource are inspected.
 * Source: RuleAllows of plugin/pkg/auth/authorizer/rbac and pkg/apis/rbac/v1/evaluation_helpers.go of v1.33 (behavior).
 */
import type { PolicyRule } from '../../../api/generated/types.ts';
import { type Attributes, isPath, type ResourceAttributes } from '../../../ports/authorizer.ts';

interface RuleIndex {
  /** The rules about resources, by the resource in the rule, such as `pods`, `pods/log`, `*` or `*` with a subresource. */
  byResource: ReadonlyMap<string, readonly PolicyRule[]>;
  byPath: ReadonlyMap<string, readonly PolicyRule[]>;
  /** The rules about paths that end with `*`, by the part of the path before the `*`. */
  byPrefix: ReadonlyMap<string, readonly PolicyRule[]>;
}

/** If `name` is undefined, only rules about all names can allow the request. An empty `name` is compared like any other name. */
export function rulesAllow(rules: readonly PolicyRule[], attributes: Attributes): boolean {
  const index = indexOf(rules);
  return isPath(attributes) ? pathAllowed(index, attributes.verb, attributes.path) : resourceAllowed(index, attributes);
}

function resourceAllowed({ byResource }: RuleIndex, attributes: ResourceAttributes): boolean {
  const { verb, group, resource, subresource, name } = attributes;
  const allows = ({ verbs, apiGroups, resourceNames: names = [] }: PolicyRule): boolean =>
    has(verbs, verb) && has(apiGroups, group) && (names.length === 0 || (name !== undefined && contains(names, name)));
  const named = subresource ? [`${resource}/${subresource}`, `*/${subresource}`] : [resource];
  return ['*', ...named].some((key) => byResource.get(key)?.some(allows) === true);
}

function pathAllowed({ byPath, byPrefix }: RuleIndex, verb: string, path: string): boolean {
  const allows = ({ verbs }: PolicyRule): boolean => has(verbs, verb);
  if (byPath.get(path)?.some(allows) === true) return true;
  for (const [prefix, rules] of byPrefix) if (path.startsWith(prefix) && rules.some(allows)) return true;
  return false;
}

const has = (list: readonly string[] = [], value: string): boolean => contains(list, '*') || contains(list, value);

/** The longest list that is searched without a set. A set for each of many short lists would take more memory than the rules. */
const LONGEST_SEARCHED = 16;

const sets = new WeakMap<readonly string[], ReadonlySet<string>>();

function contains(list: readonly string[], value: string): boolean {
  if (list.length <= LONGEST_SEARCHED) return list.includes(value);
  let set = sets.get(list);
  if (set === undefined) {
    set = new Set(list);
    sets.set(list, set);
  }
  return set.has(value);
}

/** The lists of rules belong to frozen objects, and so never change. */
const known = new WeakMap<readonly PolicyRule[], RuleIndex>();

function indexOf(rules: readonly PolicyRule[]): RuleIndex {
  let index = known.get(rules);
  if (index === undefined) {
    index = build(rules);
    known.set(rules, index);
  }
  return index;
}

function build(rules: readonly PolicyRule[]): RuleIndex {
  const byResource = new Map<string, PolicyRule[]>();
  const byPath = new Map<string, PolicyRule[]>();
  const byPrefix = new Map<string, PolicyRule[]>();
  for (const rule of rules) {
    const { resources = [], nonResourceURLs = [] } = rule;
    for (const resource of new Set(resources)) add(byResource, resource, rule);
    for (const path of new Set(nonResourceURLs)) {
      if (path.endsWith('*')) add(byPrefix, path.replace(/\*+$/, ''), rule);
      else add(byPath, path, rule);
    }
  }
  return { byResource, byPath, byPrefix };
}

function add(map: Map<string, PolicyRule[]>, key: string, rule: PolicyRule): void {
  const rules = map.get(key);
  if (rules === undefined) map.set(key, [rule]);
  else rules.push(rule);
}
