/** This file is separate from the authenticator, so that commands do not load the libraries of the authenticator. */
export const SIGNING_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'];

export interface OidcOptions {
  /** The iss claim, an https URL. */
  issuerUrl: string;
  /** The audience that each token must have, perhaps among others. */
  clientId: string;
  /**
   * The claim that contains the name of the user. OpenID Connect guarantees only for the claim `sub` that no two users have the same value.
   */
  usernameClaim: string;
  usernamePrefix: string;
  groupsClaim: string | undefined;
  groupsPrefix: string;
  requiredClaims: Readonly<Record<string, string>>;
  /** Authorities, in PEM, that may sign the certificate of the issuer; undefined for those that Node.js trusts. */
  caPem: string | undefined;
  /** Some of SIGNING_ALGORITHMS. */
  signingAlgorithms: readonly string[];
}
