/** Compares two values field by field, as server-side apply does. */
import { isJsonObject, type JsonObject, type JsonValue, jsonEqual } from '../json-value.ts';
import { asMember, type FieldSet, fieldElement, NodeBuilder, union } from './field-set.ts';
import {
  byElement,
  type FieldsType,
  type FieldType,
  itemTypeOf,
  type ListType,
  partsOf,
  typeOfField,
} from './typed-value.ts';

export interface Comparison {
  added: FieldSet;
  modified: FieldSet;
  removed: FieldSet;
}

/** Returns all parts of a value with their descendants; {} if the value is owned as a whole (see partsOf()). */
function whole(value: JsonValue, type: FieldType): FieldSet {
  const parts = partsOf(value, type);
  if (parts === undefined) return {};
  const node = new NodeBuilder();
  for (const [element, part, of] of parts) node.add(element, asMember(whole(part, of)));
  return node.node(false);
}

/**
 * Returns the added, modified and removed fields. An absent value is undefined. The descendants of added and removed fields are included.
 */
export function compare(old: JsonValue | undefined, now: JsonValue | undefined, type: FieldType): Comparison {
  if (old === undefined || now === undefined) {
    return {
      added: now === undefined ? undefined : whole(now, type),
      removed: old === undefined ? undefined : whole(old, type),
      modified: undefined,
    };
  }
  return compareValues(old, now, type) ?? { added: undefined, modified: undefined, removed: undefined };
}

/** Like compare() for two present values. Returns undefined if they are equal. */
function compareValues(old: JsonValue, now: JsonValue, type: FieldType): Comparison | undefined {
  if (old === now) return undefined;
  if ((type.kind === 'struct' || type.kind === 'map') && isJsonObject(old) && isJsonObject(now)) {
    return compareFields(old, now, type);
  }
  if ((type.kind === 'listMap' || type.kind === 'set') && Array.isArray(old) && Array.isArray(now)) {
    return compareLists(old, now, type);
  }
  if (jsonEqual(old, now)) return undefined;
  const isLeaf = (value: JsonValue): boolean => partsOf(value, type) === undefined;
  return {
    added: isLeaf(now) ? undefined : whole(now, type),
    removed: isLeaf(old) ? undefined : whole(old, type),
    modified: {},
  };
}

class Differences {
  readonly #added = new NodeBuilder();
  readonly #modified = new NodeBuilder();
  readonly #removed = new NodeBuilder();

  add(element: string, part: JsonValue, type: FieldType): void {
    this.#added.add(element, asMember(whole(part, type)));
  }

  remove(element: string, part: JsonValue, type: FieldType): void {
    this.#removed.add(element, asMember(whole(part, type)));
  }

  modify(element: string, { added, modified, removed }: Comparison): void {
    this.#added.add(element, added);
    this.#modified.add(element, modified);
    this.#removed.add(element, removed);
  }

  comparison(): Comparison | undefined {
    const [added, modified, removed] = [this.#added, this.#modified, this.#removed].map((each) => each.node(false));
    return added === undefined && modified === undefined && removed === undefined
      ? undefined
      : { added, modified, removed };
  }
}

function compareFields(old: JsonObject, now: JsonObject, type: FieldsType): Comparison | undefined {
  const differences = new Differences();
  for (const name of Object.keys(now)) {
    const part = now[name];
    const was = Object.hasOwn(old, name) ? old[name] : undefined;
    if (part === undefined || part === was) continue;
    const of = typeOfField(type, name);
    if (of === undefined) continue;
    if (was === undefined) differences.add(fieldElement(name), part, of);
    else {
      const inner = compareValues(was, part, of);
      if (inner !== undefined) differences.modify(fieldElement(name), inner);
    }
  }
  for (const name of Object.keys(old)) {
    const was = old[name];
    if (was === undefined || (Object.hasOwn(now, name) && now[name] !== undefined)) continue;
    const of = typeOfField(type, name);
    if (of !== undefined) differences.remove(fieldElement(name), was, of);
  }
  return differences.comparison();
}

function compareLists(old: readonly JsonValue[], now: readonly JsonValue[], type: ListType): Comparison | undefined {
  if (jsonEqual(old, now)) return undefined;
  const differences = new Differences();
  const items = itemTypeOf(type);
  const [before, after] = [byElement(old, type), byElement(now, type)];
  for (const [element, item] of after) {
    const was = before.get(element);
    const inner = was === undefined ? undefined : compareValues(was, item, items);
    if (was === undefined) differences.add(element, item, items);
    else if (inner !== undefined) differences.modify(element, inner);
  }
  for (const [element, item] of before) if (!after.has(element)) differences.remove(element, item, items);
  return differences.comparison();
}

export const changes = ({ added, modified: other }: Comparison): FieldSet => union(added, other);
