/**
 * Decides whether the rules of a role allow a request. The rules are indexed by resource, so that a role with thousands of rules costs only
 * the rules about the requested resource.
 * Source: RuleAllows of plugin/pkg/auth/authorizer/rbac and pkg/apis/rbac/v1/evaluation_helpers.go of v1.33 (behavior).
 */
import type { PolicyRule } from '../../../api/generated/types.ts';
import { type Attributes, isPath, type ResourceAttributes } from '../../../ports/authorizer.ts';

interface IndexedRule {
  verbs: ReadonlySet<string>;
  groups: ReadonlySet<string>;
  /** Empty: all names. */
  names: ReadonlySet<string>;
}

interface RuleIndex {
  /** By the resource as the rules name it, such as `pods`, `pods/log`, `*` and `*` with a subresource. */
  byResource: ReadonlyMap<string, readonly IndexedRule[]>;
  byPath: ReadonlyMap<string, readonly IndexedRule[]>;
  /** The rules about paths that end with `*`, by what precedes it. */
  byPrefix: ReadonlyMap<string, readonly IndexedRule[]>;
}

/** Without a name, only rules about all names allow a request. The name of a request for no certain object is the empty text. */
export function rulesAllow(rules: readonly PolicyRule[], attributes: Attributes): boolean {
  const index = indexOf(rules);
  return isPath(attributes) ? pathAllowed(index, attributes.verb, attributes.path) : resourceAllowed(index, attributes);
}

function resourceAllowed({ byResource }: RuleIndex, attributes: ResourceAttributes): boolean {
  const { verb, group, resource, subresource, name } = attributes;
  const allows = ({ verbs, groups, names }: IndexedRule): boolean =>
    has(verbs, verb) && has(groups, group) && (names.size === 0 || (name !== undefined && names.has(name)));
  const named = subresource ? [`${resource}/${subresource}`, `*/${subresource}`] : [resource];
  return ['*', ...named].some((key) => byResource.get(key)?.some(allows) === true);
}

function pathAllowed({ byPath, byPrefix }: RuleIndex, verb: string, path: string): boolean {
  const allows = ({ verbs }: IndexedRule): boolean => has(verbs, verb);
  if (byPath.get(path)?.some(allows) === true) return true;
  for (const [prefix, rules] of byPrefix) if (path.startsWith(prefix) && rules.some(allows)) return true;
  return false;
}

const has = (set: ReadonlySet<string>, value: string): boolean => set.has('*') || set.has(value);

/** The indexes of the lists of rules, which are those of frozen objects. */
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
  const byResource = new Map<string, IndexedRule[]>();
  const byPath = new Map<string, IndexedRule[]>();
  const byPrefix = new Map<string, IndexedRule[]>();
  for (const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } of rules) {
    const rule = { verbs: new Set(verbs), groups: new Set(apiGroups), names: new Set(resourceNames) };
    for (const resource of new Set(resources)) add(byResource, resource, rule);
    for (const path of new Set(nonResourceURLs)) {
      if (path.endsWith('*')) add(byPrefix, path.replace(/\*+$/, ''), rule);
      else add(byPath, path, rule);
    }
  }
  return { byResource, byPath, byPrefix };
}

function add(map: Map<string, IndexedRule[]>, key: string, rule: IndexedRule): void {
  const rules = map.get(key);
  if (rules === undefined) map.set(key, [rule]);
  else rules.push(rule);
}
