/**
 * Sets of fields of an object, in the form that metadata.managedFields serves (FieldsV1): a tree of path elements. A node
 * without children is a member; one with children is a member where it has the key `.`.
 *
 * undefined is the empty set; the root is never a member. Nothing is modified.
 * Source: Server-Side Apply, "Field management" (v1.33); sigs.k8s.io/structured-merge-diff (format and behaviour).
 */
import { isDeeperThan, isJsonObject, type JsonObject, type JsonValue, MAX_DEPTH } from '../json-value.ts';

export type FieldSet = JsonObject | undefined;

const SELF = '.';

export const fieldElement = (name: string): string => `f:${name}`;
export const valueElement = (value: JsonValue): string => `v:${JSON.stringify(value)}`;
/** `keys` in the order of their names. */
export const keyElement = (keys: JsonObject): string => `k:${JSON.stringify(keys)}`;

/** Whether it is a path element that can be read: `f:`, `v:`, `k:` or `i:` with what belongs to it. */
function isElement(key: string): boolean {
  const text = key.slice(2);
  if (key.startsWith('f:')) return true;
  if (key.startsWith('i:')) return /^[+-]?\d+$/.test(text);
  if (!key.startsWith('v:') && !key.startsWith('k:')) return false;
  try {
    const value: unknown = JSON.parse(text);
    return key.startsWith('v:') || isJsonObject(value);
  } catch {
    return false;
  }
}

/** Whether the value, which a client wrote, is a set at every level: the other functions here rely on that. */
export function isFieldSet(value: unknown): value is JsonObject {
  // They call themselves for each level.
  if (!isJsonObject(value) || isDeeperThan(MAX_DEPTH, value)) return false;
  const nodes = [value];
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    for (const [key, child] of Object.entries(node)) {
      if (!isJsonObject(child) || (key !== SELF && !isElement(key))) return false;
      nodes.push(child);
    }
  }
  return true;
}

const isMember = (node: JsonObject): boolean => Object.hasOwn(node, SELF) || Object.keys(node).length === 0;
const elementsOf = (node: JsonObject): string[] => Object.keys(node).filter((key) => key !== SELF);
const childOf = (node: FieldSet, element: string): FieldSet =>
  node !== undefined && Object.hasOwn(node, element) ? (node[element] as JsonObject) : undefined;

/** A node of these children; undefined where it says nothing. */
export function nodeOf(member: boolean, children: Iterable<readonly [string, FieldSet]>): FieldSet {
  const kept = [...children].filter((entry): entry is [string, JsonObject] => entry[1] !== undefined);
  if (kept.length === 0) return member ? {} : undefined;
  kept.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(member ? [[SELF, {}], ...kept] : kept);
}

export const asMember = (node: FieldSet): JsonObject =>
  node === undefined || isMember(node) ? (node ?? {}) : { [SELF]: {}, ...node };

const unionNodes = (a: JsonObject, b: JsonObject): FieldSet =>
  nodeOf(
    isMember(a) || isMember(b),
    [...new Set([...elementsOf(a), ...elementsOf(b)])].map((element) => {
      const [left, right] = [childOf(a, element), childOf(b, element)];
      return [element, left !== undefined && right !== undefined ? unionNodes(left, right) : (left ?? right)];
    }),
  );

/** In halves: one after another, the many sets of many managers would be copied once for each. */
export function union(...sets: FieldSet[]): FieldSet {
  if (sets.length <= 1) return sets[0];
  const half = sets.length >> 1;
  const [left, right] = [union(...sets.slice(0, half)), union(...sets.slice(half))];
  return left === undefined || right === undefined ? (left ?? right) : unionNodes(left, right);
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return undefined;
  return nodeOf(
    isMember(a) && isMember(b),
    elementsOf(a).map((element) => [element, intersection(childOf(a, element), childOf(b, element))]),
  );
}

/** The members of `a` that are none of `b`. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return a;
  return nodeOf(
    isMember(a) && !isMember(b),
    elementsOf(a).map((element) => [element, difference(childOf(a, element), childOf(b, element))]),
  );
}

/** The members of `a` that are neither in `b` nor below a member of it. */
export function without(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return a;
  if (isMember(b)) return undefined;
  return nodeOf(
    isMember(a),
    elementsOf(a).map((element) => [element, without(childOf(a, element), childOf(b, element))]),
  );
}

/** The members of `a` that `b` knows nothing of: neither them nor anything below. */
export function unknownTo(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined) return undefined;
  return nodeOf(
    isMember(a) && b === undefined,
    elementsOf(a).map((element) => [element, unknownTo(childOf(a, element), childOf(b, element))]),
  );
}

export const removes = (set: FieldSet, element: string): boolean => {
  const child = childOf(set, element);
  return child !== undefined && isMember(child);
};

export const below = childOf;

/** As messages write them: `.spec.containers[name="app"].image`. Members of one level come before what is below them. */
export function pathsOf(set: FieldSet, path = ''): string[] {
  if (set === undefined) return [];
  const elements = elementsOf(set).sort();
  return [
    ...elements.filter((element) => removes(set, element)).map((element) => path + elementText(element)),
    ...elements.flatMap((element) => pathsOf(childOf(set, element), path + elementText(element))),
  ];
}

export function elementText(element: string): string {
  const text = element.slice(2);
  if (element.startsWith('f:')) return `.${text}`;
  if (element.startsWith('v:')) return `[=${text}]`;
  const keys = Object.entries(JSON.parse(text) as JsonObject);
  return `[${keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`;
}
