/**
 * Objects as server-side apply sees them: which fields a value sets, what differs between two, two merged into one, and a
 * value without some fields. What is known of a kind's fields comes in as a FieldType.
 *
 * Values are plain JSON without null; nothing is modified, and results may share parts with what came in.
 * Source: Server-Side Apply, "Merge strategy" (v1.33); sigs.k8s.io/structured-merge-diff (behaviour).
 */
import { isJsonObject, type JsonObject, type JsonValue, jsonEqual, setOwn } from '../json-value.ts';
import { repeats } from '../repeats.ts';
import {
  asMember,
  below,
  elementText,
  type FieldSet,
  fieldElement,
  keyElement,
  nodeOf,
  removes,
  union,
  valueElement,
} from './field-set.ts';

export type FieldType =
  /** A scalar, or what is only replaced as a whole. */
  | { kind: 'atomic' }
  | { kind: 'struct'; field(name: string): FieldType | undefined }
  | { kind: 'map'; values: FieldType }
  /** A list of objects that these fields tell apart; a key that an object lacks has its default. */
  | { kind: 'listMap'; keys: readonly string[]; defaults: JsonObject; items: FieldType }
  /** A list of scalars, each at most once. */
  | { kind: 'set' };

const atomic: FieldType = { kind: 'atomic' };

type ListType = Extract<FieldType, { kind: 'listMap' | 'set' }>;

/** The parts of a value that are fields of their own, by path element; undefined where it has none. */
function partsOf(value: JsonValue | undefined, type: FieldType): Map<string, [JsonValue, FieldType]> | undefined {
  if (value === undefined) return new Map();
  if ((type.kind === 'struct' || type.kind === 'map') && isJsonObject(value)) {
    const parts = new Map<string, [JsonValue, FieldType]>();
    for (const [name, part] of Object.entries(value)) {
      const of = type.kind === 'map' ? type.values : type.field(name);
      if (of !== undefined && part !== undefined) parts.set(fieldElement(name), [part, of]);
    }
    return parts;
  }
  if ((type.kind === 'listMap' || type.kind === 'set') && Array.isArray(value)) {
    const items = type.kind === 'listMap' ? type.items : atomic;
    // Of what is there twice, the first counts.
    return new Map([...value].reverse().map((item) => [itemElement(item, type), [item, items]]));
  }
  return undefined;
}

function itemElement(item: JsonValue, type: ListType): string {
  if (type.kind === 'set') return valueElement(item);
  const keys: JsonObject = {};
  for (const key of [...type.keys].sort()) {
    const value = (isJsonObject(item) ? item[key] : undefined) ?? type.defaults[key];
    if (value !== undefined) keys[key] = value;
  }
  return keyElement(keys);
}

const isItem = (type: FieldType): boolean => type.kind !== 'struct';

/** The fields that an applied value sets. */
export function fieldSetOf(value: JsonValue, type: FieldType): FieldSet {
  const parts = partsOf(value, type);
  if (parts === undefined) return {};
  return nodeOf(
    false,
    [...parts].map(([element, [part, of]]) => {
      const node = fieldSetOf(part, of);
      const empty = isJsonObject(part) && Object.keys(part).length === 0;
      return [element, isItem(type) || empty ? asMember(node) : node];
    }),
  );
}

/** Why no such value may be applied: a list has what it may not have twice. Undefined where it is fine. */
export function repeatedItem(value: JsonValue, type: FieldType, path = ''): string | undefined {
  if ((type.kind === 'listMap' || type.kind === 'set') && Array.isArray(value)) {
    const elements = value.map((item) => itemElement(item, type));
    const again = repeats(elements);
    const repeated = elements.find((_, index) => again[index]);
    if (repeated !== undefined) return `${path}: duplicate entries for key ${elementText(repeated)}`;
  }
  for (const [element, [part, of]] of partsOf(value, type) ?? []) {
    const found = repeatedItem(part, of, path + elementText(element));
    if (found !== undefined) return found;
  }
  return undefined;
}

export interface Comparison {
  added: FieldSet;
  modified: FieldSet;
  removed: FieldSet;
}

/** What came, changed and went from `old` to `now`. A whole that came or went is a member with all its parts. */
export function compare(old: JsonValue | undefined, now: JsonValue | undefined, type: FieldType): Comparison {
  return {
    added: grown(old, now, type),
    removed: grown(now, old, type),
    modified: modified(old, now, type),
  };
}

function grown(old: JsonValue | undefined, now: JsonValue | undefined, type: FieldType): FieldSet {
  const parts = partsOf(now, type);
  if (parts === undefined) return old === undefined ? {} : undefined;
  const before = partsOf(old, type);
  return nodeOf(
    false,
    [...parts].map(([element, [part, of]]) => {
      const was = before?.get(element);
      const node = grown(was?.[0], part, of);
      return [element, was === undefined ? asMember(node) : node];
    }),
  );
}

function modified(old: JsonValue | undefined, now: JsonValue | undefined, type: FieldType): FieldSet {
  if (old === undefined || now === undefined) return undefined;
  const before = partsOf(old, type);
  const parts = partsOf(now, type);
  if (before === undefined || parts === undefined) return jsonEqual(old, now) ? undefined : {};
  return nodeOf(
    false,
    [...parts].map(([element, [part, of]]) => [element, modified(before.get(element)?.[0], part, of)]),
  );
}

/** `live` with what `config` says. */
export function merge(live: JsonValue | undefined, config: JsonValue, type: FieldType): JsonValue {
  if (live === undefined) return config;
  if (type.kind === 'listMap' || type.kind === 'set') {
    return Array.isArray(live) && Array.isArray(config) ? mergeLists(live, config, type) : config;
  }
  if (type.kind === 'atomic' || !isJsonObject(live) || !isJsonObject(config)) return config;
  const result: JsonObject = { ...live };
  for (const [name, value] of Object.entries(config)) {
    const of = type.kind === 'map' ? type.values : (type.field(name) ?? atomic);
    setOwn(result, name, merge(Object.hasOwn(live, name) ? live[name] : undefined, value, of));
  }
  return result;
}

/** In the order of `config`; what only `live` has stays before what it stood before. */
function mergeLists(live: readonly JsonValue[], config: readonly JsonValue[], type: ListType): JsonValue[] {
  const items = type.kind === 'listMap' ? type.items : atomic;
  const element = (item: JsonValue): string => itemElement(item, type);
  const wanted = new Set(config.map(element));
  const found = new Map([...live].reverse().map((item) => [element(item), item]));
  const result: JsonValue[] = [];
  const merged = new Set<string>();
  let passed = 0;
  for (const item of config) {
    // What only `live` has, up to the next element that is still to come.
    for (let next = live[passed]; next !== undefined; next = live[passed]) {
      if (!wanted.has(element(next))) result.push(next);
      else if (!merged.has(element(next))) break;
      passed += 1;
    }
    const at = element(item);
    result.push(merge(found.get(at), item, items));
    merged.add(at);
  }
  return [...result, ...live.slice(passed).filter((item) => !wanted.has(element(item)))];
}

/** The value without these fields, whole; a list or map that loses its last one goes with it. */
export function removeFields(value: JsonValue, fields: FieldSet, type: FieldType): JsonValue | undefined {
  if (fields === undefined) return value;
  if ((type.kind === 'listMap' || type.kind === 'set') && Array.isArray(value)) {
    const items = type.kind === 'listMap' ? type.items : atomic;
    const kept = value.flatMap((item) => {
      const element = itemElement(item, type);
      if (removes(fields, element)) return [];
      return [removeFields(item, below(fields, element), items) ?? item];
    });
    return kept.length === 0 && value.length > 0 ? undefined : kept;
  }
  if ((type.kind !== 'struct' && type.kind !== 'map') || !isJsonObject(value)) return value;
  const result: JsonObject = {};
  for (const [name, part] of Object.entries(value)) {
    const element = fieldElement(name);
    if (removes(fields, element)) continue;
    const of = type.kind === 'map' ? type.values : (type.field(name) ?? atomic);
    const kept = removeFields(part, below(fields, element), of);
    if (kept !== undefined) setOwn(result, name, kept);
  }
  const emptied = type.kind === 'map' && Object.keys(result).length === 0 && Object.keys(value).length > 0;
  return emptied ? undefined : result;
}

/** Everything that came or changed. */
export const changes = ({ added, modified: other }: Comparison): FieldSet => union(added, other);
