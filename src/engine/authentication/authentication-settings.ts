/**
 * Defines and checks the options of `lifepod up` for authentication, which have the names of kube-apiserver's options, and reads the files
 * that the options name.
 * Source: pkg/kubeapiserver/options/authentication.go of v1.33 (names, defaults and rules).
 */
import { X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import type { AuthenticationSettings } from '../../apiserver/auth/authentication/authenticate.ts';
import { type OidcOptions, SIGNING_ALGORITHMS } from '../../apiserver/auth/authentication/oidc-options.ts';
import { readTokenFile } from '../../apiserver/auth/authentication/token-file.ts';
import { readProblem } from '../../machinery/read-problem.ts';
import { UserError } from '../../platform/files.ts';
import { readTextFile } from '../../platform/folders/text-file.ts';

/** An empty text means that the option is not set. */
export interface AuthenticationOptions {
  tokenAuthFile?: string;
  oidcIssuerUrl?: string;
  oidcClientId?: string;
  oidcUsernameClaim?: string;
  oidcUsernamePrefix?: string;
  oidcGroupsClaim?: string;
  oidcGroupsPrefix?: string;
  oidcRequiredClaim?: Record<string, string>;
  oidcCaFile?: string;
  oidcSigningAlgs?: string;
}

type TextKey = Exclude<keyof AuthenticationOptions, 'oidcRequiredClaim'>;

interface TextOption {
  key: TextKey;
  flag: string;
  value: string;
  description: string;
  default: string;
}

const TABLE: readonly TextOption[] = [
  {
    key: 'tokenAuthFile',
    flag: '--token-auth-file',
    value: '<file>',
    description: 'CSV file with tokens, user names, user UIDs and groups, which is read at the start',
    default: '',
  },
  {
    key: 'oidcIssuerUrl',
    flag: '--oidc-issuer-url',
    value: '<url>',
    description: 'OpenID Connect issuer whose ID tokens authenticate users; an https URL',
    default: '',
  },
  {
    key: 'oidcClientId',
    flag: '--oidc-client-id',
    value: '<id>',
    description: 'audience of the ID tokens; required with --oidc-issuer-url',
    default: '',
  },
  {
    key: 'oidcUsernameClaim',
    flag: '--oidc-username-claim',
    value: '<claim>',
    description: 'claim of the ID token with the user name',
    default: 'sub',
  },
  {
    key: 'oidcUsernamePrefix',
    flag: '--oidc-username-prefix',
    value: '<prefix>',
    description: 'prefix of the user names; - means none (default: the issuer and #, none for the claim email)',
    default: '',
  },
  {
    key: 'oidcGroupsClaim',
    flag: '--oidc-groups-claim',
    value: '<claim>',
    description: 'claim of the ID token with the groups of the user',
    default: '',
  },
  {
    key: 'oidcGroupsPrefix',
    flag: '--oidc-groups-prefix',
    value: '<prefix>',
    description: 'prefix of the groups',
    default: '',
  },
  {
    key: 'oidcCaFile',
    flag: '--oidc-ca-file',
    value: '<file>',
    description: "certificates that may sign the issuer's certificate (default: those of Node.js)",
    default: '',
  },
  {
    key: 'oidcSigningAlgs',
    flag: '--oidc-signing-algs',
    value: '<algorithm,...>',
    description: 'algorithms that may sign ID tokens',
    default: 'RS256',
  },
];

const FILES: readonly TextKey[] = ['tokenAuthFile', 'oidcCaFile'];

export function addAuthenticationOptions(command: Command): Command {
  for (const { flag, value, description, default: usual } of TABLE)
    command.option(`${flag} ${value}`, usual === '' ? description : `${description} (default: ${usual})`);
  return command.option(
    '--oidc-required-claim <claim=value>',
    'claim that ID tokens must have with this value; may be repeated',
    addClaim,
  );
}

function addClaim(text: string, others: Record<string, string> = {}): Record<string, string> {
  const [, claim, value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (claim === undefined) throw new InvalidArgumentError('give CLAIM=VALUE.');
  return { ...others, [claim]: value };
}

/** Returns each flag with its value, which is undefined if the option was not given; --oidc-required-claim once for each claim. */
export const authenticationFlags = (options: AuthenticationOptions): [string, string | undefined][] => [
  ...TABLE.map(({ key, flag }): [string, string | undefined] => [flag, options[key]]),
  ...Object.entries(options.oidcRequiredClaim ?? {}).map(([claim, value]): [string, string] => [
    '--oidc-required-claim',
    `${claim}=${value}`,
  ]),
];

/**
 * Returns each value from `options`, else from `record`, else the default; relative paths become absolute. Throws a UserError if a value is
 * invalid.
 */
export function resolveAuthenticationOptions(
  options: AuthenticationOptions,
  record: AuthenticationOptions = {},
): Required<AuthenticationOptions> {
  const texts = Object.fromEntries(
    TABLE.map(({ key, default: usual }) => [key, options[key] ?? record[key] ?? usual]),
  ) as Record<TextKey, string>;
  for (const key of FILES) if (texts[key] !== '') texts[key] = resolve(texts[key]);
  const resolved = { ...texts, oidcRequiredClaim: options.oidcRequiredClaim ?? record.oidcRequiredClaim ?? {} };
  checkOidc(resolved);
  return resolved;
}

function checkOidc({ oidcIssuerUrl, oidcClientId, oidcSigningAlgs }: Required<AuthenticationOptions>): void {
  if ((oidcIssuerUrl === '') !== (oidcClientId === '')) {
    throw new UserError('--oidc-issuer-url and --oidc-client-id belong together: give both, or none of them');
  }
  if (oidcIssuerUrl !== '') checkIssuer(oidcIssuerUrl);
  const unknown = oidcSigningAlgs.split(',').find((name) => !SIGNING_ALGORITHMS.includes(name));
  if (unknown !== undefined) {
    throw new UserError(
      `--oidc-signing-algs ${unknown} is not a known algorithm: give some of ${SIGNING_ALGORITHMS.join(', ')}`,
    );
  }
}

/** Throws a UserError if an option of OpenID Connect is given although no issuer is set: it would have no effect. */
export function requireIssuer(
  options: AuthenticationOptions,
  { oidcIssuerUrl }: Required<AuthenticationOptions>,
): void {
  if (oidcIssuerUrl !== '') return;
  const given = authenticationFlags(options).find(([flag, value]) => flag.startsWith('--oidc-') && value);
  if (given !== undefined)
    throw new UserError(`${given[0]} needs --oidc-issuer-url and --oidc-client-id: give both, or omit ${given[0]}`);
}

/** Source: validateIssuerURL of k8s.io/apiserver/pkg/apis/apiserver/validation of v1.33 (rules). */
function checkIssuer(text: string): void {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:') throw new UserError(`--oidc-issuer-url ${text} is not valid: give an https URL`);
  if (url.username || url.password || url.search || url.hash)
    throw new UserError('--oidc-issuer-url is not valid: the URL must have neither a user, a query nor a fragment');
}

/** Reads the files that the options name. Throws a UserError if a file cannot be read or is malformed. */
export function authenticationSettings(options: Required<AuthenticationOptions>): AuthenticationSettings {
  return {
    ...(options.tokenAuthFile === '' ? {} : { tokenFile: readTokenFile(options.tokenAuthFile) }),
    ...(options.oidcIssuerUrl === '' ? {} : { oidc: oidcOptions(options) }),
  };
}

function oidcOptions(options: Required<AuthenticationOptions>): OidcOptions {
  const { oidcIssuerUrl: issuerUrl, oidcUsernameClaim: usernameClaim, oidcUsernamePrefix, oidcGroupsClaim } = options;
  const usual = usernameClaim === 'email' ? '' : `${issuerUrl}#`;
  return {
    issuerUrl,
    clientId: options.oidcClientId,
    usernameClaim,
    usernamePrefix: oidcUsernamePrefix === '-' ? '' : oidcUsernamePrefix || usual,
    groupsClaim: oidcGroupsClaim || undefined,
    groupsPrefix: options.oidcGroupsPrefix,
    requiredClaims: options.oidcRequiredClaim,
    caPem: options.oidcCaFile === '' ? undefined : readCertificates(options.oidcCaFile),
    signingAlgorithms: options.oidcSigningAlgs.split(','),
  };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

function readCertificates(path: string): string {
  let text: string;
  try {
    text = readTextFile(path);
  } catch (error) {
    throw new UserError(`--oidc-ca-file ${path} ${readProblem(error)}: give a file with certificates in PEM`);
  }
  const certificates = text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0)
    throw new UserError(`--oidc-ca-file ${path} contains no certificate: give a file with certificates in PEM`);
  for (const [index, certificate] of certificates.entries()) checkCertificate(certificate, index + 1, path);
  return text;
}

function checkCertificate(certificate: string, number: number, path: string): void {
  try {
    new X509Certificate(certificate);
  } catch {
    throw new UserError(`--oidc-ca-file ${path} is not valid: certificate ${number} in it is malformed`);
  }
}
