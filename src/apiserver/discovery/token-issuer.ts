/**
 * Serves the documents with which other programs verify ServiceAccount tokens.
 * Source: pkg/serviceaccount/openidmetadata.go and pkg/routes/openidmetadata.go of v1.33; OpenID Connect Discovery 1.0.
 */

import { sendBody } from '../http/answers.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Pki } from '../pki/pki.ts';
import { publicKeySet, tokenKeyOf } from '../pki/tokens.ts';

const CONFIGURATION_PATH = '/.well-known/openid-configuration';
const KEYS_PATH = '/openid/v1/jwks';

export const isIssuerPath = (path: string): boolean => path === CONFIGURATION_PATH || path === KEYS_PATH;

/** Responds with the document at the path of the request, for which isIssuerPath() must be true. */
export type ServeIssuer = (exchange: Exchange) => Promise<void>;

export function issuerDocuments(pki: Pick<Pki, 'serviceAccountKey'>, issuer: string): ServeIssuer {
  const configuration = JSON.stringify({
    issuer,
    jwks_uri: `${issuer}${KEYS_PATH}`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [tokenKeyOf(pki).algorithm],
  });
  return async (exchange) => {
    exchange.response.setHeader('Cache-Control', 'public, max-age=3600');
    if (exchange.path === CONFIGURATION_PATH) return sendBody(exchange, 200, 'application/json', configuration);
    return sendBody(exchange, 200, 'application/jwk-set+json', JSON.stringify(await publicKeySet(pki)));
  };
}
