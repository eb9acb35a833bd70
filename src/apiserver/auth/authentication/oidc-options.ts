/** The configuration of the OpenID Connect issuer, apart from the authenticator, so that commands do not load its libraries. */
export const SIGNING_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'];

export interface OidcOptions {
  /** The issuer (iss claim), an https URL. */
  issuerUrl: string;
  /** One of the audiences of the tokens. */
  clientId: string;
  /** The claim that contains the name of the user. The name is unique only for `sub`. */
  usernameClaim: string;
  /** The prefix of the names of users. */
  usernamePrefix: string;
  /** The claim that contains the groups of the user; undefined if users have none. */
  groupsClaim: string | undefined;
  groupsPrefix: string;
  /** The claims that a token must have, with their values. */
  requiredClaims: Readonly<Record<string, string>>;
  /** The certificates of the authorities that may sign that of the issuer, in PEM; undefined for those of Node.js. */
  caPem: string | undefined;
  /** The algorithms that may sign the tokens: some of SIGNING_ALGORITHMS. */
  signingAlgorithms: readonly string[];
}
