import type { SubresourceDefinition } from '../../api/kind.ts';
import { decode, placeError, typeMetaError, unknownFieldText } from '../../api/schema.ts';
import type { KubeObject, ObjectMeta } from '../../machinery/meta.ts';
import { type ApiError, badRequest } from '../../machinery/status.ts';
import type { WriteOptions } from '../../ports/backend.ts';
import { apiVersionOf, type Resource } from './resources.ts';

export interface DecodeOptions extends Pick<WriteOptions, 'fieldValidation' | 'onWarning'> {
  /** Absent for the main resource. */
  subresource?: SubresourceDefinition;
  /**
   * Creates the error for a body with a field of the wrong type or, with Strict validation, an unknown field. `cause`: the error of the
   * decoder. The default is 400 BadRequest.
   */
  refuse?: (cause: string) => ApiError;
}

/**
 * Returns a copy of `body` without unknown fields. The caller may modify the copy. Throws 400 BadRequest if the apiVersion or kind is
 * wrong, 413 RequestEntityTooLarge if the body has more than MAX_VALUES values, or the error that options.refuse() creates.
 * Source: v1.33 (wording).
 */
export function decodeBody(
  { kind: own }: Pick<Resource, 'kind'>,
  body: KubeObject,
  options: DecodeOptions,
): KubeObject {
  const { group, schema, kind, version } = options.subresource?.bodyKind ?? own;
  const apiVersion = apiVersionOf(group, version);
  const wrong = typeMetaError(body as unknown as Record<string, unknown>);
  if (wrong !== undefined) throw badRequest(`couldn't get version/kind; json parse error: ${wrong}`);
  const given = body.kind || kind;
  const unfit = (cause: string) =>
    badRequest(`${given} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${cause}`);
  const refuse = options.refuse ?? unfit;
  if (body.apiVersion && body.apiVersion !== apiVersion) {
    const text = `the API version in the data (${body.apiVersion}) does not match the expected API version (${apiVersion})`;
    throw badRequest(text);
  }
  if (given !== kind) throw unfit(`converting (${version}.${given}) to (${version}.${kind}): unknown conversion`);
  const { value, unknownFields, typeErrors } = decode(schema, body);
  if (typeErrors[0] !== undefined) throw refuse(typeErrors[0]);
  const { fieldValidation = 'Warn', onWarning } = options;
  const unknown = unknownFields.map(unknownFieldText);
  if (unknown.length > 0 && fieldValidation === 'Strict') throw refuse(`strict decoding error: ${unknown.join(', ')}`);
  if (fieldValidation === 'Warn') for (const text of unknown) onWarning?.(text);
  const object = value as unknown as KubeObject;
  object.apiVersion = apiVersion;
  object.kind = kind;
  object.metadata ??= { name: '' };
  return object;
}

/**
 * Throws 400 BadRequest if the object has another name or namespace than the URL. Ignores a name or namespace that is not a string:
 * decoding rejects it. Source: upstream's checkName (wording).
 */
export function checkSamePlace(object: KubeObject, at: { namespace: string | undefined; name: string }): void {
  if (placeError({ ...object }) !== undefined) return;
  const { name = '', namespace = '' } = (object.metadata ?? {}) as Partial<ObjectMeta>;
  if (name !== at.name) {
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${at.name})`);
  }
  if (at.namespace && namespace && namespace !== at.namespace) {
    const text = `the namespace of the object (${namespace}) does not match the namespace on the request (${at.namespace})`;
    throw badRequest(text);
  }
}
