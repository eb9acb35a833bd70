/** Decides which user a new client certificate names, and how long the certificate is valid. Pure. */
import { dns1123LabelErrors } from '../../machinery/names.ts';
import { formatDuration, type Millis, parseDuration } from '../../machinery/time.ts';
import { UserError } from '../../platform/files.ts';

export interface NewUserOptions {
  user: string;
  group?: readonly string[];
  expires?: string;
  namespace?: string;
  force?: boolean;
}

export interface NewUser {
  name: string;
  groups: string[];
  lifetimeMillis: Millis;
  /** Sentences about rights that the administrator may not have wanted to give. */
  warnings: string[];
}

const ADMINISTRATORS = 'system:masters';
const RESERVED = 'system:';
/** The longest name and the longest organization in a certificate. Source: RFC 5280, appendix A. */
const MAX_LENGTH = 64;
/** The shortest lifetime of a certificate. Source: validation of CertificateSigningRequests of v1.33 (expirationSeconds). */
const SHORTEST_MILLIS = 10 * 60_000;

/** Returns the user that the options describe. `longestMillis` limits the lifetime. Throws a UserError if an option is not valid. */
export function newUser(options: NewUserOptions, longestMillis: Millis): NewUser {
  const { user, group = [], expires, namespace, force = false } = options;
  requireName('--user', user);
  if (namespace !== undefined) requireNamespace(namespace);
  const groups = [...new Set(group)];
  for (const each of groups) requireName('--group', each);
  const isAdministrator = groups.includes(ADMINISTRATORS);
  if (isAdministrator && !force) {
    throw new UserError(
      `the group ${ADMINISTRATORS} gives all rights until the certificate expires, and no RoleBinding limits them: bind the ClusterRole ` +
        'cluster-admin to another group, or add --force',
    );
  }
  if (!force) requireFree(user, groups);
  const wanted = expires === undefined ? longestMillis : requireLifetime(expires);
  return {
    name: user,
    groups,
    lifetimeMillis: Math.min(wanted, longestMillis),
    warnings: [
      ...(isAdministrator
        ? [
            `${user} gets all rights as a member of ${ADMINISTRATORS}, which cannot be taken back before the certificate expires`,
          ]
        : []),
      ...(wanted > longestMillis
        ? [
            `the certificate is valid for ${formatDuration(longestMillis).replace(/(?<=h)0m0s$/, '')}, the longest time that --cluster-signing-duration allows`,
          ]
        : []),
    ],
  };
}

function requireName(option: string, name: string): void {
  const example = option === '--user' ? 'jane' : 'developers';
  if (name.trim() === '') throw new UserError(`${option} has no value: give a name, such as ${option} ${example}`);
  if (/\p{Cc}/u.test(name))
    throw new UserError(`${option} ${JSON.stringify(name)} contains control characters: give a name without them`);
  // Names of groups, for example in a directory service, often contain spaces.
  if (option === '--user' && /\s/u.test(name))
    throw new UserError(
      `${option} ${JSON.stringify(name)} contains spaces: give a name without them, such as ${option} ${name.trim().replaceAll(/\s+/gu, '-')}`,
    );
  if (name.length > MAX_LENGTH)
    throw new UserError(
      `${option} ${JSON.stringify(name)} has ${name.length} characters, but a certificate allows ${MAX_LENGTH}: give a shorter name`,
    );
}

function requireNamespace(name: string): void {
  const [error] = dns1123LabelErrors(name);
  if (error === undefined) return;
  throw new UserError(`--namespace ${JSON.stringify(name)} cannot be the name of a namespace: ${error}`);
}

/** Throws a UserError if a name begins with `system:`, like the names of Kubernetes' own users and groups. */
function requireFree(user: string, groups: readonly string[]): void {
  const reserved = [user, ...groups].find((name) => name.startsWith(RESERVED));
  if (reserved === undefined) return;
  throw new UserError(
    `names that begin with ${RESERVED} have rights of the system, also ${reserved === user ? 'the user' : 'the group'} ${reserved}: choose another name, or add --force`,
  );
}

function requireLifetime(text: string): Millis {
  const millis = parseDuration(text);
  if (millis !== undefined && millis >= SHORTEST_MILLIS) return millis;
  throw new UserError(
    `--expires ${JSON.stringify(text)} is not a valid lifetime of a certificate: give 10m or more, such as 720h for 30 days`,
  );
}
