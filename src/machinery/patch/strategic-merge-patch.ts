/**
 * Applies a strategic merge patch: a merge patch that merges certain lists by a merge key.
 *
 * Boundary: the inputs and the result are plain JSON. The schema of the kind is passed in as a StrategyLookup.
 * Invariants:
 *  1. Neither the object nor the patch is modified; the result may share parts with them.
 *  2. The result contains neither the patch's directives ($patch, $retainKeys, $setElementOrder/…, $deleteFromPrimitiveList/…) nor its null
 *     fields.
 *  3. A merged list has the order of $setElementOrder, or else of the patch. An element that is not in this order stays before the first
 *     element of this order that it preceded in the object. Such elements keep their relative order. As a result, new elements come first
 *     if the patch contains only new elements and no $setElementOrder.
 *
 * Source: k8s.io/apimachinery/pkg/util/strategicpatch of v1.33 (behavior and wording) and the design proposal "preserve order in strategic
 * merge patch".
 */
import { goText, isJsonObject, type JsonObject, type JsonValue, setOwn } from '../json-value.ts';
import { badRequest, entityTooLarge } from '../status.ts';
import { keyOf, ordered } from './merged-list.ts';

export interface FieldStrategy {
  /** The patchStrategy tag of upstream's Go field. If absent, a list is replaced as a whole, and an object is merged. */
  strategy?: 'merge' | 'replace' | 'retainKeys' | 'merge,retainKeys';
  /** The merge key of a list of objects. A merged list without a merge key is a list of scalars. */
  mergeKey?: string;
  /** The fields of the object, or of the list's elements; absent for maps and unknown types. */
  fields?: StrategyLookup;
}

/** `field`: the JSON name. Returns undefined if the field is unknown. */
export type StrategyLookup = (field: string) => FieldStrategy | undefined;

const ORDER = '$setElementOrder/';
const DELETE = '$deleteFromPrimitiveList/';
const RETAIN = '$retainKeys';
const MARKER = '$patch';

/** The maximum number of fields and elements that the repeated merges of a patch may process (see Work). */
const MAX_MERGED_AGAIN = 200_000;

/**
 * Counts repeated work: a patch may contain the same list element many times, and each occurrence merges the element again with all its
 * lists. The first merge of an element is not counted. `again`: whether the current element has been merged before.
 */
interface Work {
  readonly again: boolean;
  readonly total: { merged: number };
}

function count({ again, total }: Work, more: number): void {
  if (!again) return;
  total.merged += more;
  if (total.merged > MAX_MERGED_AGAIN) {
    throw entityTooLarge(`the patch merges more than ${MAX_MERGED_AGAIN} fields and elements again`);
  }
}

const noFields: StrategyLookup = () => undefined;
const isDirective = (key: string): boolean =>
  key === MARKER || key === RETAIN || key.startsWith(ORDER) || key.startsWith(DELETE);

/** Removes directives and null fields. Returns undefined for an object with the directive $patch. */
function cleaned(value: JsonValue): JsonValue | undefined {
  if (Array.isArray(value)) return value.map(cleaned).filter((element) => element !== undefined);
  if (!isJsonObject(value)) return value;
  if (Object.hasOwn(value, MARKER)) return undefined;
  const result: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    if (inner === null || isDirective(key)) continue;
    const kept = cleaned(inner);
    if (kept !== undefined) setOwn(result, key, kept);
  }
  return result;
}

const unknownDirective = (marker: JsonValue, patch: JsonObject): Error =>
  badRequest(`unknown patch type: ${goText(marker)} in map: ${goText(patch)}`);

function retained(original: JsonObject, patch: JsonObject): JsonObject {
  const keys = patch[RETAIN];
  if (keys === undefined) return { ...original };
  if (!Array.isArray(keys)) throw badRequest('invalid patch format of retainKeys');
  const retain = new Set(keys);
  for (const [key, value] of Object.entries(patch)) {
    if (value !== null && !isDirective(key) && !retain.has(key)) {
      throw badRequest('invalid patch format of retainKeys');
    }
  }
  return Object.fromEntries(Object.entries(original).filter(([key]) => retain.has(key)));
}

function mergeObject(original: JsonObject, patch: JsonObject, lookup: StrategyLookup, work: Work): JsonObject {
  const marker = patch[MARKER];
  if (marker === 'delete') return {};
  if (marker === 'replace') {
    const { [MARKER]: _, ...rest } = patch;
    return cleaned(rest) as JsonObject;
  }
  if (marker !== undefined && marker !== 'merge') throw unknownDirective(marker, patch);

  if (work.again) count(work, Object.keys(original).length);
  const result = retained(original, patch);
  for (const key of Object.keys(patch)) {
    if (key.startsWith(ORDER)) mergeOrderedList(result, patch, key, lookup, work);
  }
  for (const [key, value] of Object.entries(patch)) {
    if (isDirective(key) || Object.hasOwn(patch, ORDER + key)) continue;
    if (value === null) {
      delete result[key];
      continue;
    }
    const merged = mergeValue(Object.hasOwn(result, key) ? result[key] : undefined, value, lookup(key), work);
    if (merged === undefined) delete result[key];
    else setOwn(result, key, merged);
  }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith(DELETE)) deleteFromPrimitives(result, key.slice(DELETE.length), value, work);
  }
  return result;
}

function deleteFromPrimitives(result: JsonObject, key: string, deleted: JsonValue, work: Work): void {
  const current = Object.hasOwn(result, key) ? result[key] : undefined;
  if (!Array.isArray(deleted)) throw badRequest('invalid patch format of primitive list');
  const deletions = new Set(deleted);
  if (!Array.isArray(current)) return;
  count(work, current.length);
  result[key] = current.filter((element) => !deletions.has(element));
}

function mergeValue(
  original: JsonValue | undefined,
  patch: JsonValue,
  field: FieldStrategy | undefined,
  work: Work,
): JsonValue | undefined {
  const replaces = field?.strategy === 'replace';
  if (isJsonObject(original) && isJsonObject(patch) && !replaces) {
    return mergeObject(original, patch, field?.fields ?? noFields, work);
  }
  if (Array.isArray(original) && Array.isArray(patch) && isMerged(field))
    return mergeList(original, patch, field, patch, work);
  return cleaned(patch);
}

const isMerged = (field: FieldStrategy | undefined): field is FieldStrategy =>
  field?.strategy === 'merge' || field?.strategy === 'merge,retainKeys';

/** Merges a list that has a $setElementOrder in the patch. The patch need not contain elements of the list. */
function mergeOrderedList(
  result: JsonObject,
  patch: JsonObject,
  orderKey: string,
  lookup: StrategyLookup,
  work: Work,
): void {
  const key = orderKey.slice(ORDER.length);
  const order = patch[orderKey];
  if (!Array.isArray(order)) throw badRequest('invalid patch format of setElementOrder list');
  const field = lookup(key) ?? {};
  const original = Object.hasOwn(result, key) ? result[key] : undefined;
  const patchList = Object.hasOwn(patch, key) ? patch[key] : undefined;
  if (original !== undefined && !Array.isArray(original)) throw wrongType(original);
  if (patchList === null) {
    delete result[key];
    return;
  }
  if (patchList !== undefined && !Array.isArray(patchList)) throw wrongType(patchList);
  checkOrder(patchList ?? [], order, field.mergeKey);

  if (original === undefined) {
    if (patchList !== undefined) {
      const added = cleaned(patchList) as JsonValue[];
      result[key] = ordered(added, order, added, field.mergeKey);
    }
  } else if (patchList === undefined) {
    count(work, original.length);
    result[key] = ordered(original, order, original, field.mergeKey);
  } else if (isMerged(field)) {
    result[key] = mergeList(original, patchList, field, order, work);
  } else {
    result[key] = cleaned(patchList) as JsonValue[];
  }
}

const wrongType = (value: JsonValue): Error =>
  badRequest(
    `expected a []interface {}, but received a ${isJsonObject(value) ? 'map[string]interface {}' : typeof value}`,
  );

/**
 * Throws if the elements of the patch are not in the order of $setElementOrder. An empty order permits all. Elements with the directive
 * $patch are not compared.
 */
function checkOrder(patchList: JsonValue[], order: JsonValue[], mergeKey: string | undefined): void {
  const kept = patchList.filter((element) => !(isJsonObject(element) && Object.hasOwn(element, MARKER)));
  if (kept.length === 0 || order.length === 0) return;
  let at = 0;
  for (const element of kept) {
    const wanted = keyOf(element, mergeKey);
    while (at < order.length && keyOf(order[at] as JsonValue, mergeKey) !== wanted) at += 1;
    if (at === order.length) {
      throw badRequest(
        `The order in patch list:\n${goText(patchList)}\n doesn't match $setElementOrder list:\n${goText(order)}\n`,
      );
    }
    at += 1;
  }
}

/**
 * Merges `patch` into `original`, or replaces `original` if an element has `$patch: replace`. `order`: the $setElementOrder; if the patch
 * has none, `patch` itself.
 */
function mergeList(
  original: JsonValue[],
  patch: JsonValue[],
  field: FieldStrategy,
  order: JsonValue[],
  work: Work,
): JsonValue[] {
  count(work, original.length);
  const { mergeKey } = field;
  const all = [...original, ...patch];
  if (all.some(Array.isArray)) throw badRequest('lists of lists are not supported');
  if (all.some(isJsonObject) && !all.every(isJsonObject)) {
    throw badRequest(`list element types are not identical: ${goText([original, patch])}`);
  }
  if (mergeKey === undefined) {
    const positions = order.length === 0 ? patch : order;
    return ordered([...new Set(all)], positions, original, undefined);
  }

  const deletedKeys = new Set<JsonValue>();
  let replaced = false;
  const additions: JsonObject[] = [];
  for (const element of patch as JsonObject[]) {
    const marker = element[MARKER];
    if (marker === undefined) additions.push(element);
    else if (marker === 'replace') replaced = true;
    else if (marker === 'delete') deletedKeys.add(keyOf(element, mergeKey));
    else if (marker === 'merge') throw badRequest('merging lists cannot yet be specified in the patch');
    else throw unknownDirective(marker, element);
  }
  if (replaced) {
    const added = additions.map(cleaned) as JsonValue[];
    return order === patch ? added : ordered(added, order, added, mergeKey);
  }

  const elements = (original as JsonObject[]).filter((element) => !deletedKeys.has(element[mergeKey] as JsonValue));
  const places = new Map<JsonValue | undefined, number>();
  elements.forEach((element, at) => {
    if (!places.has(element[mergeKey])) places.set(element[mergeKey], at);
  });
  const merged = new Set<JsonValue>();
  for (const element of additions) {
    const key = keyOf(element, mergeKey);
    const at = places.get(key);
    if (at === undefined) places.set(key, elements.push(cleaned(element) as JsonObject) - 1);
    else {
      const ofElement = merged.has(key) ? { ...work, again: true } : work;
      elements[at] = mergeObject(elements[at] as JsonObject, element, field.fields ?? noFields, ofElement);
    }
    merged.add(key);
  }
  return ordered(elements, order === patch ? additions : order, original, mergeKey);
}

/**
 * Returns a patched copy. Throws ApiError: 400 BadRequest if the patch is invalid for the object, 413 RequestEntityTooLarge if the repeated
 * merges process more than MAX_MERGED_AGAIN fields and elements.
 */
export function applyStrategicMergePatch(object: JsonObject, patch: unknown, lookup: StrategyLookup): JsonObject {
  if (!isJsonObject(patch)) throw badRequest('invalid JSON document');
  return mergeObject(object, patch, lookup, { again: false, total: { merged: 0 } });
}
