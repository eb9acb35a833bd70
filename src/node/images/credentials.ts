/**
 * The functions are pure. Errors contain no part of a credential, because errors appear in logs and Events.
 * Source: pkg/credentialprovider of v1.33 (formats, matching, order); "Images", "Specifying imagePullSecrets on a Pod".
 */
import type { Secret } from '../../api/generated/types.ts';
import type { RegistryCredential } from '../../runtime/runtime.ts';

interface ConfigEntry {
  username?: string;
  password?: string;
  /** user:password in base64. Unless it is empty, it takes precedence over `username` and `password`. */
  auth?: string;
}
type Config = Record<string, ConfigEntry>;

/** `location`: the registry, repository or pattern that the credential is for, without a scheme, such as *.example.com:5000/team. */
interface Entry extends RegistryCredential {
  location: string;
}

/**
 * Returns the credentials for the repository, such as docker.io/library/busybox, in descending alphabetical order of their locations, so
 * that example.com/team precedes example.com. If no location matches a repository of docker.io, returns the credentials of the default
 * registry. Throws if a secret cannot be parsed.
 */
export function credentialsFor(repository: string, secrets: readonly Secret[]): RegistryCredential[] {
  const entries = secrets.flatMap(entriesOf);
  const fitting = entries.filter(({ location }) => matches(location, repository));
  const ordered = fitting.sort((a, b) => (a.location === b.location ? 0 : a.location < b.location ? 1 : -1));
  const found = ordered.length > 0 || !repository.startsWith('docker.io/') ? ordered : entries.filter(isDefault);
  return found.map(({ username, password }) => ({ username, password }));
}

/** `docker login` stores the credential of the default registry, docker.io, under https://index.docker.io/v1/. */
const isDefault = ({ location }: Entry): boolean => location === 'index.docker.io';

function entriesOf(secret: Secret): Entry[] {
  const config = configOf(secret);
  return Object.entries(config ?? {}).flatMap(([key, entry]) => {
    const location = locationOf(key);
    return location === undefined ? [] : [{ location, ...identityOf(entry, secret) }];
  });
}

/** Returns undefined if the secret is empty or is not of a type for registry credentials. Throws if the secret's content is malformed. */
function configOf(secret: Secret): Config | undefined {
  const { type, data = {} } = secret;
  const read = (key: string): unknown => {
    const text = Buffer.from(data[key] ?? '', 'base64').toString('utf8');
    if (text === '') return undefined;
    try {
      return JSON.parse(text);
    } catch {
      throw unreadable(secret, `${key} is not JSON`);
    }
  };
  const found =
    type === 'kubernetes.io/dockerconfigjson'
      ? (read('.dockerconfigjson') as { auths?: unknown } | null | undefined)?.auths
      : type === 'kubernetes.io/dockercfg'
        ? read('.dockercfg')
        : undefined;
  if (found === undefined || found === null) return undefined;
  const isConfig = isRecord(found) && Object.values(found).every(isRecord);
  if (!isConfig) throw unreadable(secret, 'it does not map registries to credentials');
  return found as Config;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const unreadable = ({ metadata }: Secret, why: string): Error =>
  new Error(`the image pull secret ${JSON.stringify(metadata.name)} cannot be read: ${why}`);

function identityOf({ username, password, auth }: ConfigEntry, secret: Secret): RegistryCredential {
  if (auth === undefined || auth === '') return { username: username ?? '', password: password ?? '' };
  const pair = Buffer.from(String(auth), 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  if (colon === -1) throw unreadable(secret, 'an auth field is not base64 of user:password');
  // Docker pads passwords with zero bytes.
  return { username: pair.slice(0, colon), password: withoutZeros(pair.slice(colon + 1)) };
}

/** Takes linear time. A regular expression can take quadratic time for zero bytes within the text. */
function withoutZeros(text: string): string {
  let [start, end] = [0, text.length];
  while (text[start] === '\0') start += 1;
  while (end > start && text[end - 1] === '\0') end -= 1;
  return text.slice(start, end);
}

/**
 * Converts https://example.com/v1/team/ to example.com/team/, for example. Returns undefined if the host is empty or contains white space.
 */
function locationOf(key: string): string | undefined {
  const [, host = '', path = ''] = /^(?:https?:\/\/)?([^/?#]*)([^?#]*)/.exec(key) ?? [];
  if (host === '' || /\s/.test(host)) return undefined;
  const effective = path.replace(/^\/v[12]\//, '/');
  return effective === '/' ? host : `${host}${effective}`;
}

/** Each label of the location's host can be a pattern. */
function matches(location: string, repository: string): boolean {
  const [wanted, asked] = [parts(location), parts(repository)];
  return (
    wanted.port === asked.port &&
    wanted.labels.length === asked.labels.length &&
    asked.path.startsWith(wanted.path) &&
    wanted.labels.every((pattern, index) => fits(pattern, asked.labels[index] ?? ''))
  );
}

function parts(url: string): { labels: string[]; port: string; path: string } {
  const slash = url.indexOf('/');
  const authority = slash === -1 ? url : url.slice(0, slash);
  const [, host = '', port = ''] = /^(.*?)(?::(\d+))?$/.exec(authority) ?? [];
  return { labels: host.split('.'), port, path: slash === -1 ? '' : url.slice(slash) };
}

/** '*' matches any number of characters; a function tests a single character. */
type Step = '*' | ((character: string) => boolean);

/**
 * Parses the syntax of Go's filepath.Match: *, [a-z], [^a-z], and \ before a literal character. A pattern contains no ?, because
 * locationOf() ends the location at the first one. Returns undefined if the pattern is malformed.
 */
function stepsOf(pattern: string): Step[] | undefined {
  const steps: Step[] = [];
  const next = /\\(.)|\[(\^?)((?:\\.|[^\]\\])+)\]|(\*)|([^[\\])/suy;
  while (next.lastIndex < pattern.length) {
    const found = next.exec(pattern);
    if (found === null) return undefined;
    const [, escaped, not, set, wildcard, plain] = found;
    if (set !== undefined) {
      const isInSet = setOf(set);
      steps.push((character) => isInSet(character) === (not === ''));
    } else if (wildcard !== undefined) steps.push('*');
    else steps.push((character) => character === (escaped ?? plain));
  }
  return steps;
}

function setOf(set: string): (character: string) => boolean {
  const point = (character = ''): number => character.codePointAt(0) ?? 0;
  const ranges = Array.from(set.matchAll(/\\?(.)(?:-\\?(.))?/gsu), ([, low, high]) => [point(low), point(high ?? low)]);
  return (character) => ranges.some(([low = 0, high = 0]) => low <= point(character) && point(character) <= high);
}

/** Longer patterns match nothing, which limits the time for matching. A label of a host has at most 63 characters. */
const MAX_PATTERN_CHARACTERS = 1024;

/**
 * The author of the secret controls the pattern, so the time is limited: it is at most proportional to the length of the pattern times the
 * length of the text.
 */
function fits(pattern: string, text: string): boolean {
  if (pattern.length > MAX_PATTERN_CHARACTERS) return false;
  const steps = stepsOf(pattern);
  if (steps === undefined) return false;
  const characters = [...text];
  let step = 0;
  let star: { step: number; until: number } | undefined;
  for (let at = 0; at < characters.length; ) {
    const current = steps[step];
    if (current === '*') {
      step += 1;
      star = { step, until: at };
    } else if (current?.(characters[at] ?? '') === true) {
      step += 1;
      at += 1;
    } else if (star !== undefined) {
      // Let the last star match one more character. The matches of earlier stars need not change.
      star.until += 1;
      ({ step, until: at } = star);
    } else return false;
  }
  return steps.slice(step).every((rest) => rest === '*');
}
