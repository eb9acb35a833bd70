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

/** Nodes that have been found to have children, and many of them. Sets are not modified. */
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

/** The children of a node that is being made: it has them in their order. */
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

  /** undefined where it says nothing. */
  node(member: boolean): FieldSet {
    if (this.#elements.length === 0) return member ? {} : undefined;
    const result: JsonObject = member ? { [SELF]: {} } : {};
    const order = this.#isSorted
      ? undefined
      : this.#elements.map((_, at) => at).sort((a, b) => (this.#elementAt(a) < this.#elementAt(b) ? -1 : 1));
    // An element has a prefix: none is __proto__.
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

/** The node with what `change` makes of its children; itself where that changes nothing. */
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
  // Both are mostly in order: so is the result then.
  let at = 0;
  for (const element of ofA) {
    for (let next = ofB[at]; next !== undefined && next <= element; next = ofB[++at])
      if (!Object.hasOwn(a, next)) add(next);
    add(element);
  }
  for (const element of ofB.slice(at)) if (!Object.hasOwn(a, element)) add(element);
  return builder.node(isMember(a) || isMember(b)) ?? {};
}

/** In halves: one after another, the many sets of many managers would be copied once for each. */
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

/** The members of `a` that are none of `b`. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return a;
  return mapped(a, isMember(a) && !isMember(b), (child, element) => difference(child, childOf(b, element)));
}

/** The members of `a` that are neither in `b` nor below a member of it. */
export function without(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return a;
  if (isMember(b)) return undefined;
  return mapped(a, isMember(a), (child, element) => without(child, childOf(b, element)));
}

/** The members of `a` that `b` knows nothing of: neither them nor anything below. */
export function unknownTo(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return a;
  return mapped(a, false, (child, element) => unknownTo(child, childOf(b, element)));
}

export const removes = (set: FieldSet, element: string): boolean => {
  const child = childOf(set, element);
  return child !== undefined && isMember(child);
};

export const below = childOf;

/** Counts the members of the set. */
export function sizeOf(set: FieldSet): number {
  if (set === undefined) return 0;
  let size = 0;
  for (const element of elementsOf(set)) size += (removes(set, element) ? 1 : 0) + sizeOf(childOf(set, element));
  return size;
}

/** As messages write them: `.spec.containers[name="app"].image`. Members of one level come before what is below them. */
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
