/**
 * Sets of an object's fields in the format of metadata.managedFields (FieldsV1): a tree of path elements. A node without
 * children is a member of the set; a node with children is a member if it has the key `.`.
 *
 * The empty set is undefined. The root is never a member. No function modifies its inputs.
 * Source: Server-Side Apply, "Field management" (v1.33); sigs.k8s.io/structured-merge-diff (format and behavior).
 */
import { isDeeperThan, isJsonObject, type JsonObject, type JsonValue, MAX_DEPTH } from '../json-value.ts';

export type FieldSet = JsonObject | undefined;

const SELF = '.';

export const fieldElement = (name: string): string => `f:${name}`;
export const valueElement = (value: JsonValue): string => `v:${JSON.stringify(value)}`;
/** The path element of a list item that is identified by `keys`. The keys must be sorted by name. */
export const keyElement = (keys: JsonObject): string => `k:${JSON.stringify(keys)}`;

/** Path elements are `f:` and a name, `v:` and a JSON value, `k:` and a JSON object, or `i:` and an index. */
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

/** Whether a value from a client is a valid field set. The other functions in this file require valid sets. */
export function isFieldSet(value: unknown): value is JsonObject {
  // The other functions recurse once per level, so the depth must be bounded.
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

/** Caches which nodes have many children, so that isEmpty() need not list their keys again. Sets never change, so the cache stays valid. */
const large = new WeakSet<JsonObject>();
const MANY_CHILDREN = 64;

function isEmpty(node: JsonObject): boolean {
  if (large.has(node)) return false;
  const { length } = Object.keys(node);
  if (length > MANY_CHILDREN) large.add(node);
  return length === 0;
}

const isMember = (node: JsonObject): boolean => Object.hasOwn(node, SELF) || isEmpty(node);
const elementsOf = (node: JsonObject): string[] => {
  const keys = Object.keys(node);
  return Object.hasOwn(node, SELF) ? keys.filter((key) => key !== SELF) : keys;
};
const childOf = (node: FieldSet, element: string): FieldSet =>
  node !== undefined && Object.hasOwn(node, element) ? (node[element] as JsonObject) : undefined;

export class NodeBuilder {
  readonly #elements: string[] = [];
  readonly #children: JsonObject[] = [];
  #isSorted = true;

  /** Each element may be added only once. An undefined child is ignored. */
  add(element: string, child: FieldSet): void {
    if (child === undefined) return;
    const last = this.#elements.at(-1);
    if (last !== undefined && last > element) this.#isSorted = false;
    this.#elements.push(element);
    this.#children.push(child);
  }

  /** Returns undefined for the empty set. `member`: whether the node itself is a member of the set. */
  node(member: boolean): FieldSet {
    if (this.#elements.length === 0) return member ? {} : undefined;
    const result: JsonObject = member ? { [SELF]: {} } : {};
    const order = this.#isSorted
      ? undefined
      : this.#elements.map((_, at) => at).sort((a, b) => (this.#elementAt(a) < this.#elementAt(b) ? -1 : 1));
    // A plain assignment is safe: each element has a prefix, so no element is `__proto__`.
    for (let at = 0; at < this.#elements.length; at++) {
      const from = order?.[at] ?? at;
      result[this.#elementAt(from)] = this.#children[from] as JsonObject;
    }
    return result;
  }

  #elementAt(at: number): string {
    return this.#elements[at] as string;
  }
}

export const asMember = (node: FieldSet): JsonObject =>
  node === undefined || isMember(node) ? (node ?? {}) : { [SELF]: {}, ...node };

/**
 * Replaces each child with the result of `change`, or removes it if the result is undefined. `member`: whether the new node is a member of
 * the set. Returns the same node if nothing changes, and undefined for the empty set.
 */
function mapped(node: JsonObject, member: boolean, change: (child: JsonObject, element: string) => FieldSet): FieldSet {
  const elements = elementsOf(node);
  let builder: NodeBuilder | undefined;
  for (let at = 0; at < elements.length; at++) {
    const element = elements[at] as string;
    const child = node[element] as JsonObject;
    const kept = change(child, element);
    if (builder === undefined && kept !== child) {
      builder = new NodeBuilder();
      for (const before of elements.slice(0, at)) builder.add(before, node[before] as JsonObject);
    }
    builder?.add(element, kept);
  }
  if (builder !== undefined) return builder.node(member);
  if (elements.length === 0) return member ? node : undefined;
  if (member === Object.hasOwn(node, SELF)) return node;
  if (member) return asMember(node);
  const { [SELF]: _, ...rest } = node;
  return rest as JsonObject;
}

function unionNodes(a: JsonObject, b: JsonObject): JsonObject {
  if (a === b) return a;
  const builder = new NodeBuilder();
  const [ofA, ofB] = [elementsOf(a), elementsOf(b)];
  const add = (element: string): void => {
    const [left, right] = [childOf(a, element), childOf(b, element)];
    builder.add(element, left !== undefined && right !== undefined ? unionNodes(left, right) : (left ?? right));
  };
  // Both inputs are usually sorted. Merging them in order keeps the result sorted as well.
  let at = 0;
  for (const element of ofA) {
    for (let next = ofB[at]; next !== undefined && next <= element; next = ofB[++at])
      if (!Object.hasOwn(a, next)) add(next);
    add(element);
  }
  for (const element of ofB.slice(at)) if (!Object.hasOwn(a, element)) add(element);
  return builder.node(isMember(a) || isMember(b)) ?? {};
}

/** Unites each half first: uniting one set after another would copy the growing result each time. */
export function union(...sets: FieldSet[]): FieldSet {
  if (sets.length <= 1) return sets[0];
  const half = sets.length >> 1;
  const [left, right] = [union(...sets.slice(0, half)), union(...sets.slice(half))];
  return left === undefined || right === undefined ? (left ?? right) : unionNodes(left, right);
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return undefined;
  return mapped(a, isMember(a) && isMember(b), (child, element) => intersection(child, childOf(b, element)));
}

export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return a;
  return mapped(a, isMember(a) && !isMember(b), (child, element) => difference(child, childOf(b, element)));
}

/** Returns the members of `a` that are neither members of `b` nor below a member of `b`. */
export function without(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return a;
  if (isMember(b)) return undefined;
  return mapped(a, isMember(a), (child, element) => without(child, childOf(b, element)));
}

/** Returns the members of `a` that are neither members of `b` nor above a member of `b`. */
export function unknownTo(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return a;
  return mapped(a, false, (child, element) => unknownTo(child, childOf(b, element)));
}

/** Whether removing the set from a value removes the element entirely. */
export const removes = (set: FieldSet, element: string): boolean => {
  const child = childOf(set, element);
  return child !== undefined && isMember(child);
};

export const below = childOf;

export function sizeOf(set: FieldSet): number {
  if (set === undefined) return 0;
  let size = 0;
  for (const element of elementsOf(set)) size += (removes(set, element) ? 1 : 0) + sizeOf(childOf(set, element));
  return size;
}

/**
 * Yields the paths of the members for messages, such as `.spec.containers[name="app"].image`. The children of a node that are members
 * precede the descendants of all its children.
 */
export function* pathsOf(set: FieldSet, path = ''): Generator<string> {
  if (set === undefined) return;
  const elements = elementsOf(set).sort();
  for (const element of elements) if (removes(set, element)) yield path + elementText(element);
  for (const element of elements) yield* pathsOf(childOf(set, element), path + elementText(element));
}

export function elementText(element: string): string {
  const text = element.slice(2);
  if (element.startsWith('f:')) return `.${text}`;
  if (element.startsWith('v:')) return `[=${text}]`;
  const keys = Object.entries(JSON.parse(text) as JsonObject);
  return `[${keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`;
}
