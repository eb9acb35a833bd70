/**
 * The errors of the API: one function per error, which defines the code, the reason, the details and the message.
 * Source: k8s.io/apimachinery/pkg/api/errors (behavior and wording).
 */
import { boundedStatus } from './error-text.ts';
import { type FieldError, fieldErrorCause, listErrors } from './field-error.ts';
import type { Status, StatusDetails } from './meta.ts';

/** An expected failure of an API call. `status` is the response to the client; boundedStatus() limits its length. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: Status;
  constructor(status: Status) {
    const sent = boundedStatus(status);
    super(sent.message ?? sent.reason ?? 'unknown');
    this.status = sent;
  }
  get code(): number {
    return this.status.code ?? 500;
  }
  get reason(): string {
    return this.status.reason ?? '';
  }
}

export const isApiError = (error: unknown, reason?: string): error is ApiError =>
  error instanceof ApiError && (reason === undefined || error.reason === reason);

/** Whether the API rejected a create because the namespace is being deleted. */
export const isNamespaceTerminating = (error: unknown): boolean =>
  isApiError(error, 'Forbidden') &&
  (error.status.details?.causes ?? []).some(({ reason }) => reason === 'NamespaceTerminating');

function failure(code: number, reason: string, message: string, details?: StatusDetails): ApiError {
  return new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    details,
    code,
  });
}

/** `resource`: the plural name. */
export interface GroupResource {
  group: string;
  resource: string;
}

/** Returns, for example, `pods` or `events.events.k8s.io`. */
export const groupResourceText = (ref: GroupResource): string =>
  ref.group === '' ? ref.resource : `${ref.resource}.${ref.group}`;

const about = (ref: GroupResource, name: string): StatusDetails => ({
  name: name || undefined,
  group: ref.group || undefined,
  kind: ref.resource,
});

export const notFound = (ref: GroupResource, name: string): ApiError =>
  failure(404, 'NotFound', `${groupResourceText(ref)} ${JSON.stringify(name)} not found`, about(ref, name));

/** For a path that the server does not serve, such as the path of an unknown resource, subresource or health check. */
export const pathNotFound = (): ApiError =>
  failure(404, 'NotFound', 'the server could not find the requested resource', {});

export const alreadyExists = (ref: GroupResource, name: string): ApiError =>
  failure(409, 'AlreadyExists', `${groupResourceText(ref)} ${JSON.stringify(name)} already exists`, about(ref, name));

export const conflict = (ref: GroupResource, name: string, cause: string): ApiError =>
  failure(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${groupResourceText(ref)} ${JSON.stringify(name)}: ${cause}`,
    about(ref, name),
  );

export const objectModified = (ref: GroupResource, name: string): ApiError =>
  conflict(ref, name, 'the object has been modified; please apply your changes to the latest version and try again');

export function invalidObject(kind: { group: string; kind: string }, name: string, all: FieldError[]): ApiError {
  const { errors, text } = listErrors(all);
  const kindText = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`;
  return failure(422, 'Invalid', `${kindText} ${JSON.stringify(name)} is invalid: ${text}`, {
    name: name || undefined,
    group: kind.group || undefined,
    kind: kind.kind,
    causes: errors.map(fieldErrorCause),
  });
}

export const badRequest = (message: string): ApiError => failure(400, 'BadRequest', message);

export const unauthorized = (message = 'Unauthorized'): ApiError => failure(401, 'Unauthorized', message);

export const forbidden = (ref: GroupResource, name: string, cause: string): ApiError =>
  failure(
    403,
    'Forbidden',
    name === ''
      ? `${groupResourceText(ref)} is forbidden: ${cause}`
      : `${groupResourceText(ref)} ${JSON.stringify(name)} is forbidden: ${cause}`,
    about(ref, name),
  );

export const methodNotAllowed = (): ApiError =>
  failure(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});

export const notAcceptable = (supported: readonly string[]): ApiError =>
  failure(406, 'NotAcceptable', `only the following media types are accepted: ${supported.join(', ')}`);

export const unsupportedMediaType = (supported: readonly string[]): ApiError =>
  failure(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${supported.join(', ')}`,
  );

/** For a list or watch whose resourceVersion or continue token is older than the retained history. */
export const expired = (message: string): ApiError => failure(410, 'Expired', message);

export const tooLargeResourceVersion = (requested: number, current: number): ApiError =>
  failure(504, 'Timeout', `Too large resource version: ${requested}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });

export const entityTooLarge = (cause: string): ApiError =>
  failure(413, 'RequestEntityTooLarge', `Request entity too large: ${cause}`);

export const requestEntityTooLarge = (limitBytes: number): ApiError => entityTooLarge(`limit is ${limitBytes}`);

export const tooManyRequests = (message: string, retryAfterSeconds: number): ApiError =>
  failure(429, 'TooManyRequests', message, { retryAfterSeconds });

export const internalError = (message: string): ApiError =>
  failure(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] });

export const serviceUnavailable = (message: string): ApiError => failure(503, 'ServiceUnavailable', message);

/** For an object that cannot be stored, because the disk is full or all objects together would take too much memory. */
export const insufficientStorage = (message: string): ApiError => failure(507, 'InsufficientStorage', message);
