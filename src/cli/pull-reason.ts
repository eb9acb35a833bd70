/**
 * Shortens the message about a failed pull to its reason. Pure.
 * Source: the messages of containerd 1.7 and 2.x, which put the reason after the messages of all calls that failed.
 */
import { registryProblem } from './registries/registry-problem.ts';

const QUOTED = '"(?:[^"\\\\]|\\\\.)*"';
/** The prefixes that each call adds to the error of the call below it. */
const PREFIXES = new RegExp(
  `^(?:${[
    `Back-off pulling image ${QUOTED}: `,
    `Failed to pull image ${QUOTED}: `,
    '(?:ErrImagePull|ImagePullBackOff|ImageInspectError|RegistryUnavailable|SignatureValidationFailed): ',
    'image pull failed for \\S+ because ',
    'rpc error: code = \\w+ desc = ',
    `failed to (?:pull and unpack|pull|resolve|unpack) image(?: ${QUOTED})?: `,
    `failed to resolve reference ${QUOTED}: `,
    'failed to (?:copy|do request|authorize|get fetcher|fetch (?:anonymous|oauth) token): ',
    'failed to (?:extract|apply) layer(?: [\\w:]+)?: ',
    'httpReadSeeker: failed open: ',
    `(?:Head|Get|Post) ${QUOTED}: `,
    // Matches the reference of an image only if `not found` is the rest of the message.
    '\\S+/\\S+: (?=not found$)',
  ].join('|')})`,
);
const PROXY = 'proxyconnect tcp: ';
const MOST_CHARACTERS = 200;

/**
 * LOOKUP matches a name that cannot be resolved, DIAL an address that cannot be reached. Source: DNSError and OpError of Go's package net.
 */
const LOOKUP = /\bdial tcp: lookup ([^\s:]+)/;
const DIAL =
  /\bdial tcp (\S+): (?:connect: )?(connection refused|network is unreachable|no route to host|connection timed out|i\/o timeout)/;
const REFUSED = 'connection refused';

function unreachable(message: string): string | undefined {
  if (isProxyFailure(message)) return undefined;
  const [, name] = LOOKUP.exec(message) ?? [];
  if (name !== undefined) return `the name of its registry, ${name}, cannot be resolved: is this machine offline?`;
  const [, address, error] = DIAL.exec(message) ?? [];
  if (error === undefined) return undefined;
  // Users know the name of a registry in the URL rather than its address.
  const [, host = address] = /"https?:\/\/([^/"]+)[^"]*": dial tcp/.exec(message) ?? [];
  return `its registry ${host} cannot be reached: ${error}${error === REFUSED ? '' : '; is this machine offline?'}`;
}

/** Returns the address of a registry on this machine that refuses connections, such as `127.0.0.1:5000`; undefined for other failures. */
export function stoppedRegistry(message = ''): string | undefined {
  const [, address = '', error] = isProxyFailure(message) ? [] : (DIAL.exec(message) ?? []);
  return error === REFUSED && /^(127\.|\[::1\])/.test(address) ? address : undefined;
}

/** Returns whether the registry cannot be reached or its name cannot be resolved; false if the proxy cannot be reached. */
export const isUnreachable = (message: string | undefined): boolean => unreachable(message ?? '') !== undefined;

/**
 * Returns the reason in the message of a failed pull, such as `not found`, without a full stop; empty if the message is missing or only
 * says that the pull will be repeated.
 */
export function pullReason(message: string | undefined): string {
  let rest = (message ?? '').replaceAll(/\s+/g, ' ').trim();
  for (let found = PREFIXES.exec(rest); found !== null; found = PREFIXES.exec(rest)) rest = rest.slice(found[0].length);
  const offline = unreachable(message ?? '');
  if (offline !== undefined) return offline;
  const answered = isProxyFailure(message) ? undefined : registryProblem(message)?.text;
  if (answered !== undefined) return answered;
  if (new RegExp(`^Back-off pulling image ${QUOTED}$`).test(rest)) return '';
  const reason = (
    rest.startsWith(PROXY) ? `the engine's proxy cannot be used: ${rest.slice(PROXY.length)}` : rest
  ).replace(/\.$/, '');
  return reason.length > MOST_CHARACTERS ? `${reason.slice(0, MOST_CHARACTERS - 1)}…` : reason;
}

export const isProxyFailure = (message: string | undefined): boolean => (message ?? '').includes(PROXY);
