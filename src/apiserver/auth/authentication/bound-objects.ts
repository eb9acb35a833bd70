import { SECRETS } from '../../../api/resources.ts';
import { isApiError } from '../../../machinery/status.ts';
import type { Log } from '../../../platform/platform.ts';
import { apiFor } from '../../../ports/api-for.ts';
import type { ResourceBackend } from '../../../ports/backend.ts';
import { API_SERVER } from '../../../ports/request.ts';
import { CredentialError, type ReadObject } from './credentials.ts';
import type { LabelSecret } from './legacy-token.ts';

/**
 * Returns a function that reads the objects to which credentials are bound. The returned function rejects with a CredentialError if the API
 * server refuses the read, so that the credentials are not valid.
 */
export function createObjectReader(backend: ResourceBackend): ReadObject {
  const api = apiFor(backend, API_SERVER);
  return async (resource, namespace, name) => {
    if (name === '') return undefined;
    try {
      return await api.get(resource, namespace, name);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      if (isApiError(error)) throw new CredentialError(error.message);
      throw error;
    }
  };
}

/** The returned function labels Secrets in the background. A failed write is only logged, and does not make the credentials invalid. */
export function createSecretLabeler(backend: ResourceBackend, log: Log): LabelSecret {
  const api = apiFor(backend, API_SERVER);
  return (namespace, name, label, value) => {
    const patch = { metadata: { labels: { [label]: value } } };
    api.patch(SECRETS, namespace, name, 'application/merge-patch+json', patch).catch((error: Error) => {
      log.warn('cannot label the Secret of a token', { namespace, name, error: error.message });
    });
  };
}
