/**
 * Determines the user who sends a request. The first authenticator that knows the user decides. A request with invalid credentials gets
 * 401, even for a path that needs no authentication.
 * Source: k8s.io/apiserver/pkg/authentication and pkg/kubeapiserver/authenticator of v1.33 (order and behavior).
 */
import type { IncomingMessage } from 'node:http';
import { unauthorized } from '../../../machinery/status.ts';
import type { Millis } from '../../../machinery/time.ts';
import type { Log } from '../../../platform/platform.ts';
import type { UserInfo } from '../../../ports/request.ts';
import type { TokenJudgement } from '../../../ports/reviews.ts';
import { authenticateToken, bearerTokens, takeTokenProtocols, webSocketTokens } from './bearer-token.ts';
import { bootstrapTokens } from './bootstrap-token.ts';
import { clientCertificates, knownUser } from './client-certificate.ts';
import {
  AUTHENTICATED_GROUP,
  CredentialError,
  firstOf,
  forAudiences,
  type ReadObject,
  type TokenAuthenticator,
} from './credentials.ts';
import { type LabelSecret, legacyTokens } from './legacy-token.ts';
import { oidcTokens } from './oidc.ts';
import type { OidcOptions } from './oidc-options.ts';
import { serviceAccountTokens } from './service-account-token.ts';
import { type TokenKey, tokenVerifier } from './signed-tokens.ts';
import type { TokenFile } from './token-file.ts';

export interface AuthenticationSettings {
  tokenFile?: TokenFile;
  oidc?: OidcOptions;
}

export interface AuthenticationOptions extends AuthenticationSettings {
  /** The public key that verifies the tokens of ServiceAccounts. `issuer` is their issuer, and also the audience of the API. */
  tokenKey: TokenKey;
  issuer: string;
  read: ReadObject;
  labelSecret: LabelSecret;
  now: () => Millis;
  /** The time with which the dates of certificates are compared. */
  certificateNow: () => Millis;
  log: Log;
}

export interface Authentication {
  /**
   * Returns no promise if the user of the connection is known from an earlier request, as for most requests. `anonymous`: whether a request
   * without credentials is allowed. Rejects with 401 Unauthorized if the credentials are invalid, or if there are none and `anonymous` is
   * false. Removes tokens from the subprotocols of the request.
   */
  authenticate(request: IncomingMessage, anonymous: boolean): UserInfo | Promise<UserInfo>;
  /**
   * Judges a token for a TokenReview. `audiences`: the token must be for one of them; if the list is empty, for the audience of the API.
   */
  judgeToken(token: string, audiences: readonly string[]): Promise<TokenJudgement>;
}

export const ANONYMOUS: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

const inGroup = (user: UserInfo): UserInfo =>
  user.groups.includes(AUTHENTICATED_GROUP) ? user : { ...user, groups: [...user.groups, AUTHENTICATED_GROUP] };

export function createAuthentication(options: AuthenticationOptions): Authentication {
  const { issuer, log } = options;
  const audiences = [issuer];
  const tokens = firstOf(tokenAuthenticators(options, audiences), log);
  const requests = firstOf(
    [clientCertificates(options.certificateNow), bearerTokens(tokens, audiences), webSocketTokens(tokens, audiences)],
    log,
  );
  const askAll = async (request: IncomingMessage, anonymous: boolean): Promise<UserInfo> => {
    const found = await requests(request).catch((error: unknown) => {
      log.debug('authentication failed', { error: (error as Error).message });
      throw unauthorized();
    });
    if (found !== undefined) return inGroup(found.user);
    if (anonymous) return ANONYMOUS;
    throw unauthorized();
  };
  return {
    authenticate(request, anonymous) {
      takeTokenProtocols(request);
      // Certificates come first in the list, so a user who is known by certificate needs no other authenticator.
      return knownUser(request.socket, options.certificateNow()) ?? askAll(request, anonymous);
    },
    async judgeToken(token, requested) {
      try {
        const wanted = requested.length === 0 ? audiences : requested;
        const { user, audiences: valid = [] } = await authenticateToken(tokens, token, wanted);
        return { user: inGroup(user), audiences: valid };
      } catch (error) {
        if (error instanceof CredentialError) return { error: error.message };
        throw error;
      }
    },
  };
}

function tokenAuthenticators(options: AuthenticationOptions, audiences: readonly string[]): TokenAuthenticator[] {
  const { tokenFile, oidc } = options;
  const signed = { ...options, audiences, verify: tokenVerifier(options.tokenKey) };
  return [
    ...(tokenFile === undefined ? [] : [forAudiences(audiences, tokenFile)]),
    legacyTokens(signed),
    serviceAccountTokens(signed),
    forAudiences(audiences, bootstrapTokens(options)),
    ...(oidc === undefined ? [] : [forAudiences(audiences, oidcTokens(oidc, options))]),
  ];
}
