import type { IncomingMessage } from 'node:http';
import type { KubeObject, ResourceRef } from '../../../machinery/meta.ts';
import type { Log } from '../../../platform/platform.ts';
import type { UserInfo } from '../../../ports/request.ts';

export interface Authenticated {
  user: UserInfo;
  /** The requested audiences for which the credentials are valid. Absent for credentials that are not tokens. */
  audiences?: readonly string[];
}

/** Thrown for invalid credentials. The message contains no credential. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError';
}

/**
 * Returns undefined, or resolves to undefined, if the request has no credentials of the authenticator's kind. Throws a CredentialError, or
 * rejects with it, if these credentials are not valid.
 */
export type RequestAuthenticator = (
  request: IncomingMessage,
) => Authenticated | undefined | Promise<Authenticated | undefined>;

/** Like RequestAuthenticator. The token must be for at least one of `audiences`. */
export type TokenAuthenticator = (
  token: string,
  audiences: readonly string[],
) => Promise<Authenticated | undefined> | Authenticated | undefined;

export type ReadObject = (
  resource: ResourceRef,
  namespace: string | undefined,
  name: string,
) => Promise<KubeObject | undefined>;

export const AUTHENTICATED_GROUP = 'system:authenticated';

/** The key of `extra` that identifies the credential of a user. Source: k8s.io/apiserver/pkg/authentication/user of v1.33. */
export const CREDENTIAL_ID = 'authentication.kubernetes.io/credential-id';

/**
 * Returns a function that asks the authenticators in order until one returns a user. If none does, the function rejects with a
 * CredentialError that contains the messages of all errors, or resolves to undefined if there are none. Source:
 * k8s.io/apiserver/pkg/authentication/request/union of v1.33.
 */
export function firstOf<Given extends unknown[]>(
  authenticators: readonly ((...given: Given) => Authenticated | undefined | Promise<Authenticated | undefined>)[],
  log: Log,
): (...given: Given) => Promise<Authenticated | undefined> {
  return async (...given) => {
    const messages = new Set<string>();
    for (const authenticate of authenticators) {
      try {
        const found = await authenticate(...given);
        if (found !== undefined) return found;
      } catch (error) {
        if (!(error instanceof CredentialError)) log.error('an authenticator failed', { error: textOf(error) });
        messages.add(error instanceof CredentialError ? error.message : 'an authenticator failed');
      }
    }
    const [only, ...more] = messages;
    if (only === undefined) return undefined;
    throw new CredentialError(more.length === 0 ? only : `[${[...messages].join(', ')}]`);
  };
}

const textOf = (error: unknown): string => (error as Error)?.stack ?? String(error);

/**
 * Adapts an authenticator of tokens without audiences: such a token is valid for the audiences of the API. Source:
 * authenticator.WrapAudienceAgnosticToken of v1.33.
 */
export const forAudiences =
  (
    ofApi: readonly string[],
    authenticate: (token: string) => UserInfo | undefined | Promise<UserInfo | undefined>,
  ): TokenAuthenticator =>
  async (token, requested) => {
    const audiences = ofApi.filter((each) => requested.includes(each));
    const user = audiences.length === 0 ? undefined : await authenticate(token);
    return user && { user, audiences };
  };
