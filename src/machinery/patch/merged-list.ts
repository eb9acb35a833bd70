/** Identifies and orders the elements of the lists that a strategic merge patch merges. */
import { goText, isJsonObject, type JsonValue } from '../json-value.ts';
import { badRequest } from '../status.ts';

/**
 * Returns the value of the merge key, or the element itself if `mergeKey` is undefined. Throws ApiError (BadRequest) if the element is not
 * an object with the merge key.
 */
export function keyOf(element: JsonValue, mergeKey: string | undefined): JsonValue {
  if (mergeKey === undefined) return element;
  if (!isJsonObject(element)) throw badRequest(`value for key ${mergeKey} is not a map`);
  const key = Object.hasOwn(element, mergeKey) ? element[mergeKey] : undefined;
  if (key === undefined) throw badRequest(`map: ${goText(element)} does not contain declared merge key: ${mergeKey}`);
  return key;
}

/**
 * Sorts the elements in `order` by `order`. Each other element is placed before the first element of `order` that it precedes in `live`, or
 * at the end. These elements keep the order of `live`.
 */
export function ordered(
  elements: JsonValue[],
  order: JsonValue[],
  live: JsonValue[],
  mergeKey: string | undefined,
): JsonValue[] {
  const positions = indexByKey(order, mergeKey);
  const livePositions = indexByKey(live, mergeKey);
  const position = (index: Map<JsonValue, number>, element: JsonValue): number =>
    index.get(keyOf(element, mergeKey)) ?? -1;

  const placed = elements
    .filter((element) => position(positions, element) >= 0)
    .sort((a, b) => position(positions, a) - position(positions, b));
  const others = elements
    .filter((element) => position(positions, element) < 0)
    .sort((a, b) => position(livePositions, a) - position(livePositions, b));

  const result: JsonValue[] = [];
  let at = 0;
  for (const element of placed) {
    const before = position(livePositions, element);
    while (before >= 0 && at < others.length) {
      const other = position(livePositions, others[at] as JsonValue);
      if (other < 0 || other >= before) break;
      result.push(others[at] as JsonValue);
      at += 1;
    }
    result.push(element);
  }
  return [...result, ...others.slice(at)];
}

function indexByKey(list: JsonValue[], mergeKey: string | undefined): Map<JsonValue, number> {
  const index = new Map<JsonValue, number>();
  list.forEach((element, at) => {
    const key = keyOf(element, mergeKey);
    if (!index.has(key)) index.set(key, at);
  });
  return index;
}
