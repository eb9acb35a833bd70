/**
 * The options of the authenticator for OpenID Connect. This file is separate from the authenticator, so that commands do not load the
 * libraries of the authenticator.
 */
/** The signature algorithms that tokens of an issuer may use. */
export const SIGNING_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'];

export interface OidcOptions {
  /** The issuer (iss claim), an https URL. */
  issuerUrl: string;
  /** The audience that each token must have, perhaps among others. */
  clientId: string;
  /**
   * The claim that contains the name of the user. OpenID Connect guarantees only for the claim `sub` that no two users have the same value.
   */
  usernameClaim: string;
  /** The prefix of the names of users. */
  usernamePrefix: string;
  /** The claim that contains the groups of the user; undefined if users have none. */
  groupsClaim: string | undefined;
  groupsPrefix: string;
  /** The claims that a token must have, with their values. */
  requiredClaims: Readonly<Record<string, string>>;
  /**
   * The certificates, in PEM, of the authorities that may sign the certificate of the issuer; undefined for the authorities that Node.js
   * trusts.
   */
  caPem: string | undefined;
  /** The algorithms that may sign the tokens: some of SIGNING_ALGORITHMS. */
  signingAlgorithms: readonly string[];
}
