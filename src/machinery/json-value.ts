import { cutForError, MAX_ERROR_CHARS } from './error-text.ts';

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Sets a property of any name. Assigning to `__proto__` would set the object's prototype instead. */
export function setOwn(object: JsonObject, key: string, value: JsonValue): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    object[key] = value;
  }
}

/** Ignores the order of an object's keys, and keys whose value is undefined. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((element, index) => jsonEqual(element, b[index]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const keys = Object.keys(a).filter((key) => a[key] !== undefined);
  if (keys.length !== Object.keys(b).filter((key) => b[key] !== undefined).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && jsonEqual(a[key], b[key]));
}

/** Omits fields whose value is undefined. structuredClone() takes several times as long. */
export function copyJson<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copyJson) as T;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) {
    const field = (value as Record<string, unknown>)[key];
    if (field !== undefined) setOwn(copy, key, copyJson(field) as JsonValue);
  }
  return copy as T;
}

/**
 * Formats a value like Go's %v, for messages of patch errors in upstream's wording. Truncates the text to the length that an error may
 * have. Joins the pieces once at the end, because joining at each level would copy them repeatedly.
 */
export function goText(value: JsonValue): string {
  const pieces: string[] = [];
  let chars = 0;
  const write = (piece: string): void => {
    pieces.push(piece);
    chars += piece.length;
  };
  const writeValue = (part: JsonValue): void => {
    if (chars > MAX_ERROR_CHARS) return;
    if (Array.isArray(part)) writeParts('[', part, writeValue);
    else if (isJsonObject(part)) {
      writeParts('map[', Object.keys(part).sort(), (key) => {
        write(`${key}:`);
        writeValue(part[key] as JsonValue);
      });
    } else write(part === null ? '<nil>' : String(part));
  };
  const writeParts = <T>(start: string, parts: readonly T[], writePart: (part: T) => void): void => {
    write(start);
    for (const [index, part] of parts.entries()) {
      if (chars > MAX_ERROR_CHARS) return;
      if (index > 0) write(' ');
      writePart(part);
    }
    write(']');
  };
  writeValue(value);
  return cutForError(pieces.join(''));
}

/**
 * The maximum depth of a client's value. API objects have fewer levels, and functions that recurse once per level can process this many
 * levels.
 */
export const MAX_DEPTH = 1000;

/** Does not recurse, so a deep value cannot overflow the stack. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  let level: object[] = typeof value === 'object' && value !== null ? [value] : [];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === levels) return true;
    const next: object[] = [];
    for (const part of level) {
      for (const item of Array.isArray(part) ? part : Object.values(part)) {
        if (typeof item === 'object' && item !== null) next.push(item);
      }
    }
    level = next;
  }
  return false;
}
