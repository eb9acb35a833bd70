/**
 * Applies a JSON patch, which is a list of operations on paths.
 * Source: RFC 6902; the API server of v1.33 (errors, MAX_OPERATIONS and MAX_COPIED_BYTES).
 *
 * No library is used, because the available ones take too long for large patches: for example, they copy the whole document for each move
 * or copy.
 */
import {
  isDeeperThan,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  MAX_DEPTH,
  setOwn,
} from '../json-value.ts';
import { ApiError, badRequest, entityTooLarge } from '../status.ts';

const MAX_OPERATIONS = 10_000;
/** The maximum total length of the values that a patch copies, as JSON in UTF-16 code units. Source: JSONPatchMaxCopyBytes of v1.33. */
const MAX_COPIED_BYTES = 3 * 1024 * 1024;
/** How many list elements the operations of a patch may shift in total: 10,000 operations on lists of 5,000 elements take about 50 ms. */
const MAX_SHIFTED = 50_000_000;

interface Operation {
  op: string;
  path: string;
  from?: string;
  value?: JsonValue;
}

/** The error 422 with upstream's message, which does not contain the cause. Unlike upstream, the details contain the cause. */
const refused = (cause: string): ApiError =>
  new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'the server rejected our request due to an error in our request',
    reason: 'Invalid',
    details: { causes: [{ message: cause, field: 'patch' }] },
    code: 422,
  });

const goKind = (value: unknown): string => {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  return value === null ? 'null' : typeof value;
};

const operationNames = new Set(['add', 'remove', 'replace', 'move', 'copy', 'test']);

function checkDocument(body: unknown): asserts body is Operation[] {
  if (!Array.isArray(body)) {
    throw badRequest(`json: cannot unmarshal ${goKind(body)} into Go value of type jsonpatch.Patch`);
  }
  if (body.length > MAX_OPERATIONS) {
    throw entityTooLarge(`The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${body.length}`);
  }
  for (const operation of body as unknown[]) {
    if (!isJsonObject(operation)) {
      throw badRequest(`json: cannot unmarshal ${goKind(operation)} into Go value of type jsonpatch.Operation`);
    }
    const { op, path, from } = operation;
    if (typeof op !== 'string' || !operationNames.has(op)) {
      throw refused(`Unexpected kind: ${typeof op === 'string' ? op : 'unknown'}`);
    }
    if (typeof path !== 'string') throw refused(`${op} operation failed to decode path: missing value`);
    if ((op === 'move' || op === 'copy') && typeof from !== 'string') {
      throw refused(`${op} operation failed to decode from: missing value`);
    }
    if ((op === 'add' || op === 'replace' || op === 'test') && operation['value'] === undefined) {
      throw refused(`${op} operation has no value: missing value`);
    }
  }
}

const clone = <T extends JsonValue>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

function pathOf(pointer: string): string[] | undefined {
  if (pointer === '') return [];
  if (!pointer.startsWith('/')) return undefined;
  const names = pointer.slice(1).split('/');
  return pointer.includes('~') ? names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')) : names;
}

const indexOf = (name: string): number => (/^\d{1,15}$/.test(name) ? Number(name) : Number.NaN);

function childOf(parent: JsonValue | undefined, name: string): JsonValue | undefined {
  if (Array.isArray(parent)) return parent[indexOf(name)];
  return isJsonObject(parent) && Object.hasOwn(parent, name) ? parent[name] : undefined;
}

/** A copy of the object, to which the operations of a patch are applied. */
class PatchedDocument {
  root: JsonValue;
  private copied = 0;
  private shifted = 0;

  constructor(root: JsonObject) {
    this.root = clone(root);
  }

  apply(operation: Operation): void {
    const { op, path, from = '' } = operation;
    const value = operation.value as JsonValue;
    if (op === 'add') this.add(operation, clone(value));
    else if (op === 'replace') {
      this.existing(operation, path);
      this.replace(operation, clone(value));
    } else if (op === 'remove') this.remove(operation, path);
    else if (op === 'copy') this.add(operation, this.copyOf(this.existing(operation, from)));
    else if (op === 'move') this.move(operation, from, path);
    // A test for null succeeds if there is no value.
    else if (!jsonEqual(this.find(operation, path, true) ?? null, value ?? null)) {
      throw refused(`testing value ${path} failed: test failed`);
    }
  }

  private missing({ op, path, from }: Operation, at = path): ApiError {
    return refused(
      at === from
        ? `${op} operation does not apply: doc is missing from path: ${from}: missing value`
        : `${op} operation does not apply: doc is missing path: "${path}": missing value`,
    );
  }

  /** Throws if the value is absent. With `last`, returns undefined if only the value is absent, but its parent is present. */
  private find(operation: Operation, pointer: string, last = false): JsonValue | undefined {
    const path = pathOf(pointer);
    if (path === undefined) throw this.missing(operation, pointer);
    let at: JsonValue | undefined = this.root;
    for (const [index, name] of path.entries()) {
      at = childOf(at, name);
      if (at === undefined && !(last && index === path.length - 1)) throw this.missing(operation, pointer);
    }
    return at;
  }

  private existing(operation: Operation, pointer: string): JsonValue {
    const found = this.find(operation, pointer);
    if (found === undefined) throw this.missing(operation, pointer);
    return found;
  }

  /**
   * Returns the parent of the value, and the key of the value in the parent. Throws for the root, and if the parent is absent or a scalar.
   */
  private place(operation: Operation, pointer: string): { parent: JsonValue[] | JsonObject; name: string } {
    const end = pointer.lastIndexOf('/');
    const parent = end < 0 ? undefined : this.existing(operation, pointer.slice(0, end));
    const name = pathOf(pointer)?.at(-1);
    if (name === undefined || typeof parent !== 'object' || parent === null) throw this.missing(operation, pointer);
    return { parent, name };
  }

  private add(operation: Operation, value: JsonValue): void {
    const { op, path } = operation;
    if (path === '') {
      this.root = value;
      return;
    }
    const { parent, name } = this.place(operation, path);
    if (!Array.isArray(parent)) {
      setOwn(parent, name, value);
      return;
    }
    const index = name === '-' ? parent.length : indexOf(name);
    if (Number.isNaN(index)) throw this.missing(operation);
    if (index > parent.length) {
      throw refused(
        `error in ${op} for path: '${path}': Unable to access invalid index: ${name}: invalid index referenced`,
      );
    }
    this.shift(parent, index);
    parent.splice(index, 0, value);
  }

  private move(operation: Operation, from: string, path: string): void {
    if (path.startsWith(`${from}/`)) throw this.missing(operation);
    if (from === path) this.existing(operation, from);
    else this.add(operation, this.remove(operation, from));
  }

  private replace(operation: Operation, value: JsonValue): void {
    if (operation.path === '') {
      this.root = value;
      return;
    }
    const { parent, name } = this.place(operation, operation.path);
    if (Array.isArray(parent)) parent[indexOf(name)] = value;
    else setOwn(parent, name, value);
  }

  private remove(operation: Operation, pointer: string): JsonValue {
    const removed = this.existing(operation, pointer);
    if (pointer === '') {
      this.root = null;
      return removed;
    }
    const { parent, name } = this.place(operation, pointer);
    if (Array.isArray(parent)) {
      this.shift(parent, indexOf(name));
      parent.splice(indexOf(name), 1);
    } else delete parent[name];
    return removed;
  }

  private shift(list: JsonValue[], from: number): void {
    this.shifted += list.length - from;
    if (this.shifted > MAX_SHIFTED) throw entityTooLarge(`the patch moves more than ${MAX_SHIFTED} elements of lists`);
  }

  private copyOf(value: JsonValue): JsonValue {
    const text = JSON.stringify(value);
    this.copied += text.length;
    if (this.copied > MAX_COPIED_BYTES) {
      throw entityTooLarge(
        `Unable to complete the copy, the accumulated size increase of copy is ${this.copied}, exceeding the limit ${MAX_COPIED_BYTES}`,
      );
    }
    return JSON.parse(text) as JsonValue;
  }
}

/**
 * Returns a patched copy. Throws ApiError: 400 BadRequest if the body is not a list of objects; 413 if the patch has more than 10,000
 * operations, copies more than 3 MiB, or shifts too many elements; otherwise 422 Invalid.
 */
export function applyJsonPatch(object: JsonObject, body: unknown): JsonObject {
  checkDocument(body);
  const document = new PatchedDocument(object);
  try {
    for (const operation of body) document.apply(operation);
  } catch (error) {
    // Each copy of a value into itself doubles the depth of the value, and copying a very deep value overflows the stack.
    if (error instanceof RangeError) throw refused('exceeded max depth');
    throw error;
  }
  const { root } = document;
  if (!isJsonObject(root)) throw refused('the patched document is not an object');
  if (isDeeperThan(MAX_DEPTH, root)) throw refused('exceeded max depth');
  return root;
}
