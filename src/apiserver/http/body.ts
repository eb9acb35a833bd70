/** Decodes request bodies from JSON, YAML or protobuf, and checks the kind of the object. */
import type { IncomingMessage } from 'node:http';
import { META } from '../../api/facts/facts.ts';
import { decode, placeError, typeMetaError } from '../../api/schema.ts';
import { isDeeperThan, MAX_DEPTH } from '../../machinery/json-value.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { PatchType } from '../../machinery/patch/patch.ts';
import { ApiError, badRequest, unsupportedMediaType } from '../../machinery/status.ts';
import { programPart } from '../../platform/programs/program-part.ts';
import { apiVersionOf } from '../registry/resources.ts';
import { parseYaml } from '../yaml/off-thread.ts';

const OBJECT_TYPES = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'] as const;
type ObjectType = (typeof OBJECT_TYPES)[number];
const PATCH_TYPES: readonly PatchType[] = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
];
/** Source: apiserver's summarizeData. */
const SUMMARY_BYTES = 30;

export interface ExpectedKind {
  group: string;
  version: string;
  kind: string;
  /** The full name of the kind's type. */
  schema: string;
  /** Other versions of the group that a body may have, because the kind is the same in these versions. */
  olderVersions?: readonly string[];
}

const mediaType = (request: IncomingMessage): string =>
  (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';

/** Returns JSON if the Content-Type is absent, empty or a wildcard. Throws 415 UnsupportedMediaType for a type not in OBJECT_TYPES. */
export function objectMediaType(request: IncomingMessage): ObjectType {
  const type = mediaType(request);
  if (type === '' || type === '*/*') return 'application/json';
  const known = OBJECT_TYPES.find((candidate) => candidate === type);
  if (known === undefined) throw unsupportedMediaType(OBJECT_TYPES);
  return known;
}

/** Throws 415 UnsupportedMediaType if the type is absent or not in PATCH_TYPES. */
export function patchMediaType(request: IncomingMessage): PatchType {
  const known = PATCH_TYPES.find((candidate) => candidate === mediaType(request));
  if (known === undefined) throw unsupportedMediaType(PATCH_TYPES);
  return known;
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function utf8(body: Buffer): string {
  try {
    return decoder.decode(body);
  } catch {
    throw badRequest('the body of the request is not valid UTF-8');
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Prefers the parser of JSON, because parsing YAML is slow. `kubectl apply --server-side`, for example, sends JSON with the Content-Type of
 * YAML.
 */
async function parseJsonOrYaml(text: string): Promise<unknown> {
  if (text.trimStart().startsWith('{')) {
    try {
      return JSON.parse(text);
    } catch {
      // A YAML flow mapping begins with { as well.
    }
  }
  return parseYaml(text);
}

/** Throws an error with the message of Go's decoder if the value is nested too deeply. */
function checkDepth(body: Buffer, parsed: unknown): void {
  if (body.length > MAX_DEPTH && isDeeperThan(MAX_DEPTH, parsed)) throw new Error('exceeded max depth');
}

function summary(body: Buffer): string {
  if (body.length === 0) return '<empty>';
  const shown = body.subarray(0, SUMMARY_BYTES).toString(body[0] === 0x7b ? 'utf8' : 'hex');
  return body.length > SUMMARY_BYTES ? `${shown} ...` : shown;
}

const firstLine = (error: unknown): string => String((error as Error).message).split('\n', 1)[0] ?? '';

async function parse(body: Buffer, type: ObjectType, expected: ExpectedKind): Promise<unknown> {
  if (type === 'application/json') return JSON.parse(utf8(body));
  if (type === 'application/yaml') return parseJsonOrYaml(utf8(body));
  const { decodeProtobuf } = await programPart(() => import('../protobuf/decode.ts'));
  return decodeProtobuf(body, (_apiVersion, kind) => (kind === expected.kind ? expected.schema : undefined));
}

const FORMATS: Readonly<Record<ObjectType, string>> = {
  'application/json': 'json',
  'application/yaml': 'yaml',
  'application/vnd.kubernetes.protobuf': 'protobuf',
};

async function parseObject(body: Buffer, type: ObjectType, expected: ExpectedKind): Promise<Record<string, unknown>> {
  const unrecognized = (cause: string): Error =>
    badRequest(`the object provided is unrecognized (must be of type ${expected.kind}): ${cause} (${summary(body)})`);
  let parsed: unknown;
  try {
    parsed = await parse(body, type, expected);
    checkDepth(body, parsed);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw unrecognized(`couldn't get version/kind; ${FORMATS[type]} parse error: ${firstLine(error)}`);
  }
  if (!isObject(parsed)) throw unrecognized("couldn't get version/kind; json parse error: the body is not an object");
  const wrong = typeMetaError(parsed);
  if (wrong !== undefined) throw unrecognized(`couldn't get version/kind; json parse error: ${wrong}`);
  return parsed;
}

const unfit = ({ version, kind }: ExpectedKind, cause: string, given = kind): ApiError =>
  badRequest(`${given} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${cause}`);

const isOlderVersion = ({ group, olderVersions = [] }: ExpectedKind, apiVersion: unknown): boolean =>
  olderVersions.some((version) => apiVersion === apiVersionOf(group, version));

/**
 * Decodes the object of a POST or PUT, and takes an absent or empty apiVersion or kind from `expected`. Rejects with 400 BadRequest and
 * upstream's message if the body is not an object of the expected kind, with 413 RequestEntityTooLarge if a protobuf body has more than
 * MAX_VALUES values, and for YAML with 413 or 429 like parseYaml().
 */
export async function decodeObject(body: Buffer, type: ObjectType, expected: ExpectedKind): Promise<KubeObject> {
  const parsed = await parseObject(body, type, expected);
  const apiVersion = apiVersionOf(expected.group, expected.version);
  const given = parsed['apiVersion'] || apiVersion;
  const kind = parsed['kind'] || expected.kind;
  if (given !== apiVersion && !isOlderVersion(expected, given)) {
    throw badRequest(`the API version in the data (${given}) does not match the expected API version (${apiVersion})`);
  }
  if (kind !== expected.kind) {
    const cause = `converting (${expected.version}.${kind}) to (${expected.version}.${expected.kind}): unknown conversion`;
    throw unfit(expected, cause, String(kind));
  }
  const wrong = placeError(parsed);
  if (wrong !== undefined) throw unfit(expected, wrong);
  return Object.assign(parsed, { apiVersion, kind, metadata: parsed['metadata'] ?? {} }) as unknown as KubeObject;
}

/**
 * Decodes the body of a PATCH. Rejects with 400 BadRequest if the body is not a patch of the type, and for YAML with 413 or 429 like
 * parseYaml().
 */
export async function decodePatch(body: Buffer, type: PatchType): Promise<unknown> {
  const text = utf8(body);
  let parsed: unknown;
  try {
    parsed = type === 'application/apply-patch+yaml' ? await parseJsonOrYaml(text) : JSON.parse(text);
    checkDepth(body, parsed);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw badRequest(`error decoding patch: ${firstLine(error)}`);
  }
  if (type === 'application/json-patch+json' ? !Array.isArray(parsed) : !isObject(parsed)) {
    const wanted = type === 'application/json-patch+json' ? 'a list of operations' : 'an object';
    throw badRequest(`error decoding patch: the patch must be ${wanted}`);
  }
  return parsed;
}

const DELETE_OPTIONS: ExpectedKind = {
  group: '',
  version: 'v1',
  kind: 'DeleteOptions',
  schema: `${META}.DeleteOptions`,
};

/**
 * Decodes the body of a DELETE. Resolves to undefined if the body is empty. Rejects with 400 BadRequest if the body is not a valid
 * DeleteOptions, with 413 or 429 like decodeObject(), and with 415 UnsupportedMediaType like objectMediaType().
 */
export async function decodeDeleteOptions(
  body: Buffer,
  request: IncomingMessage,
): Promise<Record<string, unknown> | undefined> {
  if (body.length === 0) return undefined;
  const parsed = await parseObject(body, objectMediaType(request), DELETE_OPTIONS);
  if (parsed['kind'] !== undefined && parsed['kind'] !== 'DeleteOptions') {
    throw badRequest('decoded object cannot be converted to DeleteOptions');
  }
  // Do not ignore fields of the wrong type: the client relies on its preconditions.
  const [wrong] = decode(DELETE_OPTIONS.schema, parsed).typeErrors;
  if (wrong !== undefined) throw unfit(DELETE_OPTIONS, wrong);
  return parsed;
}
