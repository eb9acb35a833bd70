/**
 * Server-side apply: merges the client's configuration into the object, and tracks which manager owns which fields.
 * Source: Server-Side Apply (v1.33); the apply patcher and fieldmanager of upstream (behavior and wording).
 */
import { fieldTypeOf } from '../../api/field-types.ts';
import type { SubresourceDefinition } from '../../api/kind.ts';
import { typeMetaError } from '../../api/schema.ts';
import type { FieldSet } from '../../machinery/field-ownership/field-set.ts';
import {
  type ApplyRequest,
  applyConfig,
  firstEntries,
  type Steps,
} from '../../machinery/field-ownership/managed-fields.ts';
import { repeatedItem } from '../../machinery/field-ownership/typed-value.ts';
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from '../../machinery/json-value.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../machinery/meta.ts';
import { badRequest, conflict, isApiError, methodNotAllowed, notFound } from '../../machinery/status.ts';
import { type BetweenSteps, runInTurns, workInTurns } from '../../platform/work-in-turns.ts';
import type { PatchOptions, WriteOptions } from '../../ports/backend.ts';
import { checkSamePlace, decodeBody } from './body.ts';
import type { RegistryContext, Sent } from './context.ts';
import { createObject } from './create.ts';
import { ownersOfDocument, ownersOfObject } from './document-owners.ts';
import { versionsOf, writerOf } from './field-owners.ts';
import { keyOf, readCurrent } from './reads/list.ts';
import { apiVersionOf, type Resource } from './resources.ts';
import { changeObject, findSubresource } from './update.ts';

/** applyObject() calls onCreated() even in a dry run. */
export type ApplyOptions = Sent<PatchOptions>;

export async function applyObject(
  context: RegistryContext,
  resource: Resource,
  at: { namespace: string | undefined; name: string },
  body: unknown,
  options: ApplyOptions,
): Promise<KubeObject> {
  const { kind } = resource;
  if (kind.createOnly) throw methodNotAllowed();
  const subresource = findSubresource(resource, options.request.subresource, 'patch');
  const betweenSteps = workInTurns();
  const document = subresource?.document;
  const applied = appliedKind(resource, subresource);
  const config = await configOf(resource, body, at, { ...options, applied, subresource }, betweenSteps);
  await betweenSteps();
  const type = fieldTypeOf(kind.schema);
  const ignored = notWritten(resource, options.request.subresource);
  const request = () => ({
    config,
    writer: { ...writerOf(context, resource, options, options.request.subresource), apiVersion: applied.apiVersion },
    force: options.force ?? false,
    ignored,
    versions: document === undefined ? versionsOf(resource) : undefined,
  });
  for (;;) {
    if ((await readCurrent(context, resource, keyOf(resource, at.namespace, at.name))) !== undefined) {
      try {
        const target = { context, resource, ...at, options, subresource };
        const changed = await changeObject(target, async (old, between) => {
          const tracked = old.metadata.managedFields ?? [];
          const owners =
            tracked.length > 0
              ? tracked
              : firstEntries(old, type, resource.apiVersion, ignored, withDefaults(resource));
          await between();
          return runInTurns(applyToLive({ old, owners, resource, subresource }, request()), between);
        });
        return document?.read(changed) ?? changed;
      } catch (error) {
        // The object was deleted after it was read, so the next attempt creates it.
        if (subresource !== undefined || !isApiError(error, 'NotFound')) throw error;
      }
      continue;
    }
    if (subresource !== undefined) throw notFound(resource.groupResource, at.name);
    const { uid } = (config['metadata'] ?? {}) as { uid?: string };
    if (uid) {
      const text = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
      throw conflict(resource.groupResource, at.name, text);
    }
    await options.mayCreate?.();
    const { object, entries } = await runInTurns(applyConfig(undefined, [], type, request()), betweenSteps);
    try {
      const created = await createObject(
        context,
        resource,
        at.namespace,
        object as unknown as KubeObject,
        options,
        entries,
      );
      options.onCreated?.();
      return created;
    } catch (error) {
      // The object was created after the read found none, so the next attempt changes it.
      if (!isApiError(error, 'AlreadyExists')) throw error;
    }
  }
}

/** Returns a function that adds the defaults of the kind to a configuration. It returns a malformed configuration as it is. */
const withDefaults =
  (resource: Resource) =>
  (config: JsonObject): JsonObject => {
    try {
      const object = decodeBody(resource, config as unknown as KubeObject, { fieldValidation: 'Ignore' });
      resource.kind.defaults?.(object);
      return object as unknown as JsonObject;
    } catch {
      return config;
    }
  };

/** Returns the new object, or the new document of a subresource such as scale, and the new managedFields of the object. */
function* applyToLive(
  live: {
    old: KubeObject;
    owners: ManagedFieldsEntry[];
    resource: Resource;
    subresource: SubresourceDefinition | undefined;
  },
  request: ApplyRequest,
): Steps<{ body: KubeObject; owners: ManagedFieldsEntry[] }> {
  const { old, owners, resource, subresource } = live;
  const document = subresource?.document;
  const { apiVersion, schema } = appliedKind(resource, subresource);
  const type = fieldTypeOf(schema);
  const ownersBefore = document === undefined ? owners : ownersOfDocument(owners, document.fields, apiVersion);
  const { object, entries } = yield* applyConfig(document?.read(old) ?? old, ownersBefore, type, request);
  const body = object as unknown as KubeObject;
  if (document === undefined) return { body, owners: entries };
  return { body, owners: ownersOfObject(owners, entries, document.fields, resource.apiVersion) };
}

interface AppliedKind {
  apiVersion: string;
  kind: string;
  schema: string;
}

function appliedKind({ apiVersion, kind }: Resource, subresource: SubresourceDefinition | undefined): AppliedKind {
  const body = subresource?.document === undefined ? undefined : subresource.bodyKind;
  if (body === undefined) return { apiVersion, kind: kind.kind, schema: kind.schema };
  return { apiVersion: apiVersionOf(body.group, body.version), kind: body.kind, schema: body.schema };
}

/** Returns the fields that an apply at this endpoint does not write; undefined if the apply writes all fields. */
function notWritten({ kind }: Resource, subresource: string | undefined): FieldSet {
  if (subresource === 'status') return { 'f:spec': {} };
  return kind.subresources['status'] === undefined ? undefined : { 'f:status': {} };
}

/**
 * Resolves to the client's configuration without defaults, and with each value in its canonical form. Sets an absent name or namespace to
 * the one in the URL. Rejects with 400 BadRequest if the configuration is invalid, and 413 RequestEntityTooLarge if it has too many values.
 */
async function configOf(
  resource: Resource,
  body: unknown,
  at: { namespace: string | undefined; name: string },
  { applied, ...options }: WriteOptions & { applied: AppliedKind; subresource: SubresourceDefinition | undefined },
  betweenSteps: BetweenSteps,
): Promise<JsonObject> {
  if (!isJsonObject(body)) throw badRequest('error decoding patch: the patch must be an object');
  const wrong = typeMetaError(body);
  if (wrong !== undefined) throw badRequest(`couldn't get version/kind; json parse error: ${wrong}`);
  if (!body['kind']) throw badRequest(`Object 'Kind' is missing in '${JSON.stringify(body)}'`);
  if (!body['apiVersion']) throw badRequest(`Object 'apiVersion' is missing in '${JSON.stringify(body)}'`);
  if (body['apiVersion'] !== applied.apiVersion) {
    const text = `Incorrect version specified in apply patch. Specified patch version: ${body['apiVersion']}, expected: ${applied.apiVersion}`;
    throw badRequest(text);
  }
  const metadata = { ...(isJsonObject(body['metadata']) ? body['metadata'] : {}) };
  if (metadata['managedFields'] !== undefined && metadata['managedFields'] !== null) {
    throw badRequest('metadata.managedFields must be nil');
  }
  metadata['name'] ??= at.name;
  if (at.namespace !== undefined) metadata['namespace'] ??= at.namespace;
  const given: JsonObject = { ...body, metadata };
  const decoded = decodeBody(resource, given as unknown as KubeObject, options);
  await betweenSteps();
  checkSamePlace(decoded, at);
  const config = asGiven(decoded as unknown as JsonObject, given) as JsonObject;
  await betweenSteps();
  const repeated = repeatedItem(config, fieldTypeOf(applied.schema));
  if (repeated !== undefined) {
    const named = `${at.namespace === undefined ? '' : `${at.namespace}/`}${at.name}; ${applied.apiVersion}, Kind=${applied.kind}`;
    throw badRequest(`failed to create typed patch object (${named}): ${repeated}`);
  }
  return config;
}

/**
 * Drops the fields that the client omitted or sent as null, so that the client does not become the owner of the empty required fields that
 * decoding adds.
 */
function asGiven(decoded: JsonValue, given: JsonValue): JsonValue {
  if (Array.isArray(decoded) && Array.isArray(given)) {
    return decoded.map((item, index) => asGiven(item, given[index] ?? null));
  }
  if (!isJsonObject(decoded) || !isJsonObject(given)) return decoded;
  const result: JsonObject = {};
  for (const [name, value] of Object.entries(given)) {
    const own = Object.hasOwn(decoded, name) ? decoded[name] : undefined;
    if (value !== null && own !== undefined) setOwn(result, name, asGiven(own, value));
  }
  return result;
}
