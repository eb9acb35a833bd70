/**
 * Values as server-side apply sees them: determines which fields a value sets, merges two values, and removes fields from a value.
 * The schema of the kind is passed in as a FieldType.
 *
 * Values are plain JSON without null. Inputs are not modified, and results may share parts with them.
 * Source: Server-Side Apply, "Merge strategy" (v1.33); sigs.k8s.io/structured-merge-diff (behavior).
 */

import { repeats } from '../duplicates.ts';
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from '../json-value.ts';
import {
  asMember,
  below,
  elementText,
  type FieldSet,
  fieldElement,
  keyElement,
  NodeBuilder,
  removes,
  valueElement,
} from './field-set.ts';

export type FieldType =
  /** A scalar, or a value that is only replaced as a whole. */
  | { kind: 'atomic' }
  | { kind: 'struct'; field(name: string): FieldType | undefined }
  | { kind: 'map'; values: FieldType }
  /** A list of objects that are identified by the values of `keys`. `defaults` replaces missing keys. */
  | { kind: 'listMap'; keys: readonly string[]; defaults: JsonObject; items: FieldType }
  /** A list of unique scalars. */
  | { kind: 'set' };

const atomic: FieldType = { kind: 'atomic' };

export type FieldsType = Extract<FieldType, { kind: 'struct' | 'map' }>;
export type ListType = Extract<FieldType, { kind: 'listMap' | 'set' }>;

export const typeOfField = (type: FieldsType, name: string): FieldType | undefined =>
  type.kind === 'map' ? type.values : type.field(name);

/** Returns the path element, value and type of each part; undefined if the value is owned as a whole. */
export function partsOf(value: JsonValue, type: FieldType): Iterable<[string, JsonValue, FieldType]> | undefined {
  if ((type.kind === 'struct' || type.kind === 'map') && isJsonObject(value)) return fieldsOf(value, type);
  if ((type.kind === 'listMap' || type.kind === 'set') && Array.isArray(value)) return itemsOf(value, type);
  return undefined;
}

function* fieldsOf(value: JsonObject, type: FieldsType): Generator<[string, JsonValue, FieldType]> {
  for (const name of Object.keys(value)) {
    const part = value[name];
    const of = typeOfField(type, name);
    if (of !== undefined && part !== undefined) yield [fieldElement(name), part, of];
  }
}

function* itemsOf(value: readonly JsonValue[], type: ListType): Generator<[string, JsonValue, FieldType]> {
  const items = itemTypeOf(type);
  for (const [element, item] of byElement(value, type)) yield [element, item, items];
}

export const itemTypeOf = (type: ListType): FieldType => (type.kind === 'listMap' ? type.items : atomic);

/** Returns the items by path element. The first of several items with the same element counts. */
export function byElement(list: readonly JsonValue[], type: ListType): Map<string, JsonValue> {
  const found = new Map<string, JsonValue>();
  for (const item of list) {
    const element = itemElement(item, type);
    if (!found.has(element)) found.set(element, item);
  }
  return found;
}

const sortedKeys = new WeakMap<ListType, readonly string[]>();

function keysOf(type: Extract<FieldType, { kind: 'listMap' }>): readonly string[] {
  const keys = sortedKeys.get(type) ?? [...type.keys].sort();
  sortedKeys.set(type, keys);
  return keys;
}

function itemElement(item: JsonValue, type: ListType): string {
  if (type.kind === 'set') return valueElement(item);
  const keys: JsonObject = {};
  for (const key of keysOf(type)) {
    const value = (isJsonObject(item) ? item[key] : undefined) ?? type.defaults[key];
    if (value !== undefined) keys[key] = value;
  }
  return keyElement(keys);
}

const isItem = (type: FieldType): boolean => type.kind !== 'struct';

/** Returns the fields that the value sets. Ignores fields that the type lacks. */
export function fieldSetOf(value: JsonValue, type: FieldType): FieldSet {
  const parts = partsOf(value, type);
  if (parts === undefined) return {};
  const node = new NodeBuilder();
  const items = isItem(type);
  for (const [element, part, of] of parts) {
    const child = fieldSetOf(part, of);
    const empty = isJsonObject(part) && Object.keys(part).length === 0;
    node.add(element, items || empty ? asMember(child) : child);
  }
  return node.node(false);
}

/**
 * Finds a duplicate item, and returns its list and key as the text of an error: `.spec.items: duplicate entries for key [name="x"]`.
 * Returns undefined if no list has duplicates.
 */
export function repeatedItem(value: JsonValue, type: FieldType): string | undefined {
  if ((type.kind === 'listMap' || type.kind === 'set') && Array.isArray(value)) {
    const elements = value.map((item) => itemElement(item, type));
    const again = repeats(elements);
    const repeated = elements.find((_, index) => again[index]);
    if (repeated !== undefined) return `: duplicate entries for key ${elementText(repeated)}`;
  }
  if (type.kind === 'atomic') return undefined;
  for (const [element, part, of] of partsOf(value, type) ?? []) {
    const found = of.kind === 'atomic' ? undefined : repeatedItem(part, of);
    if (found !== undefined) return elementText(element) + found;
  }
  return undefined;
}

/** Merges the applied `config` into `live`, which is undefined if there is no value. Values of `config` win. */
export function merge(live: JsonValue | undefined, config: JsonValue, type: FieldType): JsonValue {
  if (live === undefined) return config;
  if (type.kind === 'listMap' || type.kind === 'set') {
    return Array.isArray(live) && Array.isArray(config) ? mergeLists(live, config, type) : config;
  }
  if (type.kind === 'atomic' || !isJsonObject(live) || !isJsonObject(config)) return config;
  let result = live;
  for (const name of Object.keys(config)) {
    const of = typeOfField(type, name) ?? atomic;
    const was = Object.hasOwn(live, name) ? live[name] : undefined;
    const merged = merge(was, config[name] as JsonValue, of);
    if (merged === was) continue;
    if (result === live) result = { ...live };
    setOwn(result, name, merged);
  }
  return result;
}

/**
 * The result has the order of `config`. An item that only `live` has follows as soon as all items that precede it in `live` are in the
 * result.
 */
function mergeLists(live: readonly JsonValue[], config: readonly JsonValue[], type: ListType): JsonValue[] {
  const items = itemTypeOf(type);
  const elements = live.map((item) => itemElement(item, type));
  const found = byElement(live, type);
  const wanted = config.map((item) => itemElement(item, type));
  const isWanted = new Set(wanted);
  const result: JsonValue[] = [];
  const merged = new Set<string>();
  let passed = 0;
  for (const [index, item] of config.entries()) {
    // Copy the items that only `live` has, up to the next item that is also in `config` and not merged yet.
    for (; passed < live.length; passed++) {
      const next = elements[passed] as string;
      if (!isWanted.has(next)) result.push(live[passed] as JsonValue);
      else if (!merged.has(next)) break;
    }
    const at = wanted[index] as string;
    result.push(merge(found.get(at), item, items));
    merged.add(at);
  }
  for (; passed < live.length; passed++) {
    if (!isWanted.has(elements[passed] as string)) result.push(live[passed] as JsonValue);
  }
  return result;
}

/** Removes the fields and their descendants. Returns undefined for a list or map that becomes empty. */
export function removeFields(value: JsonValue, fields: FieldSet, type: FieldType): JsonValue | undefined {
  if (fields === undefined) return value;
  if ((type.kind === 'listMap' || type.kind === 'set') && Array.isArray(value)) {
    const items = itemTypeOf(type);
    const kept: JsonValue[] = [];
    for (const item of value) {
      const element = itemElement(item, type);
      if (!removes(fields, element)) kept.push(removeFields(item, below(fields, element), items) ?? item);
    }
    return kept.length === 0 && value.length > 0 ? undefined : kept;
  }
  if ((type.kind !== 'struct' && type.kind !== 'map') || !isJsonObject(value)) return value;
  const result: JsonObject = {};
  for (const name of Object.keys(value)) {
    const part = value[name] as JsonValue;
    const element = fieldElement(name);
    if (removes(fields, element)) continue;
    const inner = below(fields, element);
    const kept = inner === undefined ? part : removeFields(part, inner, typeOfField(type, name) ?? atomic);
    if (kept !== undefined) setOwn(result, name, kept);
  }
  const emptied = type.kind === 'map' && Object.keys(result).length === 0 && Object.keys(value).length > 0;
  return emptied ? undefined : result;
}
