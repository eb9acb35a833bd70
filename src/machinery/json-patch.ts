/**
 * JSON patch: a list of operations on paths.
 * Source: RFC 6902; the limit and the failures as the API server of v1.33 answers them.
 */
import jsonPatch, { type JsonPatchError, type Operation } from 'fast-json-patch';
import { isJsonObject, type JsonObject } from './json-value.ts';
import { ApiError, badRequest } from './status.ts';

const MAX_OPERATIONS = 10_000;
const operationNames = new Set(['add', 'remove', 'replace', 'move', 'copy', 'test']);

function failure(code: number, reason: string, message: string, cause?: string): ApiError {
  return new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    details: cause === undefined ? {} : { causes: [{ message: cause, field: 'patch' }] },
    code,
  });
}

/** Upstream keeps the cause to itself; here it is among the details. */
const refused = (cause: string): ApiError =>
  failure(422, 'Invalid', 'the server rejected our request due to an error in our request', cause);

const goKind = (value: unknown): string => {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  return value === null ? 'null' : typeof value;
};

/** Throws ApiError (BadRequest) unless the body is a list of operations. */
function checkDocument(body: unknown): asserts body is Operation[] {
  if (!Array.isArray(body)) {
    throw badRequest(`json: cannot unmarshal ${goKind(body)} into Go value of type jsonpatch.Patch`);
  }
  if (body.length > MAX_OPERATIONS) {
    const text = `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${body.length}`;
    throw failure(413, 'RequestEntityTooLarge', `Request entity too large: ${text}`);
  }
  for (const operation of body as unknown[]) {
    if (!isJsonObject(operation)) {
      throw badRequest(`json: cannot unmarshal ${goKind(operation)} into Go value of type jsonpatch.Operation`);
    }
    const { op, path, from } = operation;
    if (typeof op !== 'string' || !operationNames.has(op)) throw refused(`Unexpected kind: ${op ?? 'unknown'}`);
    if (typeof path !== 'string') throw refused(`${op} operation failed to decode path: missing value`);
    if ((op === 'move' || op === 'copy') && typeof from !== 'string') {
      throw refused(`${op} operation failed to decode from: missing value`);
    }
    if ((op === 'add' || op === 'replace' || op === 'test') && operation['value'] === undefined) {
      throw refused(`${op} operation has no value: missing value`);
    }
  }
}

function explain(error: JsonPatchError): string {
  const { op, path, from } = error.operation as { op: string; path: string; from?: string };
  switch (error.name) {
    case 'TEST_OPERATION_FAILED':
      return `testing value ${path} failed: test failed`;
    case 'OPERATION_VALUE_OUT_OF_BOUNDS':
      return `error in ${op} for path: '${path}': Unable to access invalid index: ${path.split('/').at(-1)}: invalid index referenced`;
    case 'OPERATION_FROM_UNRESOLVABLE':
      return `${op} operation does not apply: doc is missing from path: ${from}: missing value`;
    default:
      return `${op} operation does not apply: doc is missing path: "${path}": missing value`;
  }
}

/**
 * The patched copy of `object`. Throws ApiError: 422 Invalid where an operation does not apply or a test fails, 400
 * BadRequest where the body is no JSON patch, 413 where it has more than 10,000 operations.
 */
export function applyJsonPatch(object: JsonObject, body: unknown): JsonObject {
  checkDocument(body);
  let patched: unknown;
  try {
    patched = jsonPatch.applyPatch(structuredClone(object), structuredClone(body), true).newDocument;
  } catch (error) {
    if (error instanceof jsonPatch.JsonPatchError) throw refused(explain(error));
    // Its refusal to touch prototypes is a TypeError.
    if (error instanceof TypeError) throw refused(error.message);
    throw error;
  }
  if (!isJsonObject(patched)) throw refused('the patched document is not an object');
  return patched;
}
