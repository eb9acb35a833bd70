/** Defines and checks the options of `lifepod up` for the API server. Determines the addresses and the certificate names of the server. */
import { kubernetesServiceAddresses } from '../../apiserver/admission/service-range.ts';
import { formatIp, isMapped, parseIp } from '../../machinery/ip.ts';
import { dns1123SubdomainErrors, wildcardSubdomainErrors } from '../../machinery/names.ts';
import { type Millis, parseDuration } from '../../machinery/time.ts';
import { familyOf, NFT_WORDS } from '../../network/families.ts';
import { podRanges } from '../../network/pod-network/ranges.ts';
import { UserError } from '../../platform/files.ts';

/** As given on the command line: lists have commas. */
export interface ApiOptions {
  bindAddress?: string;
  tlsSan?: string;
  maxRequestsInflight?: string;
  maxMutatingRequestsInflight?: string;
  clusterSigningDuration?: string;
  /** `true` or `false`. */
  disableHttp2Serving?: string;
}

export type ApiSettings = Required<ApiOptions>;

interface Settings extends Pick<ApiSettings, 'bindAddress' | 'tlsSan'> {
  podCidr: string;
  serviceCidr: string;
  nodeName: string;
  /** The port in the engine record; defined only if the engine is started only to end its Pods. */
  recordedPort?: number;
}

/** The default of --cluster-signing-duration. Source: the option of kube-controller-manager of v1.33. */
const DEFAULT_SIGNING_DURATION = '8760h';
/** The shortest lifetime of certificates that is accepted. A renewal takes less than a second, but clients also need time. */
const LEAST_SIGNING_MILLIS = 10_000;

export const API_FLAGS: readonly [flag: string, key: keyof ApiSettings, value: string, description: string][] = [
  [
    '--bind-address',
    'bindAddress',
    '<address,...>',
    'addresses on which the API listens for other machines, or 0.0.0.0 for all of IPv4 (default: none)',
  ],
  ['--tls-san', 'tlsSan', '<name,...>', "further names and addresses in the API's certificate (default: none)"],
  [
    '--max-requests-inflight',
    'maxRequestsInflight',
    '<number>',
    'how many requests the API handles at a time, in addition to --max-mutating-requests-inflight (default: 400)',
  ],
  [
    '--max-mutating-requests-inflight',
    'maxMutatingRequestsInflight',
    '<number>',
    'how many requests, of any kind, are added to --max-requests-inflight (default: 200)',
  ],
  [
    '--cluster-signing-duration',
    'clusterSigningDuration',
    '<duration>',
    `longest lifetime of certificates that lifepod signs, its own included (default: ${DEFAULT_SIGNING_DURATION})`,
  ],
  [
    '--disable-http2-serving',
    'disableHttp2Serving',
    '[true|false]',
    'serve the API only with HTTP/1.1 (default: false)',
  ],
];

/** The kubeconfig contains this address. */
export const HOST = '127.0.0.1';

const { IPv4, IPv6 } = NFT_WORDS;
const UNSPECIFIED: readonly string[] = [IPv4.anyAddress, IPv6.anyAddress];

/**
 * Returns each value from `options`, else from `record`, else the default; lists without duplicates and with their addresses in canonical
 * form. Throws a UserError if a value is invalid.
 */
export function resolveApiOptions(options: ApiOptions, record: ApiOptions = {}): ApiSettings {
  const settings = {
    bindAddress: eachOf(options.bindAddress ?? record.bindAddress ?? '', requireAddress),
    tlsSan: eachOf(options.tlsSan ?? record.tlsSan ?? '', requireName),
    clusterSigningDuration: requireDuration(
      options.clusterSigningDuration ?? record.clusterSigningDuration ?? DEFAULT_SIGNING_DURATION,
    ),
    maxRequestsInflight: options.maxRequestsInflight ?? record.maxRequestsInflight ?? '400',
    maxMutatingRequestsInflight: options.maxMutatingRequestsInflight ?? record.maxMutatingRequestsInflight ?? '200',
    disableHttp2Serving: requireBoolean(options.disableHttp2Serving ?? record.disableHttp2Serving ?? 'false'),
  };
  requestsInFlight(settings);
  return settings;
}

type InFlightSettings = Pick<ApiSettings, 'maxRequestsInflight' | 'maxMutatingRequestsInflight'>;

/**
 * Returns the sum of both options: how many requests the API server handles at a time, from all users together. Throws a UserError if an
 * option is not a number, or the sum is 0. Source: v1.33 with API Priority and Fairness, which adds the options in the same way.
 */
export function requestsInFlight({ maxRequestsInflight, maxMutatingRequestsInflight }: InFlightSettings): number {
  const all = requireCount('--max-requests-inflight', maxRequestsInflight);
  const mutating = requireCount('--max-mutating-requests-inflight', maxMutatingRequestsInflight);
  if (all + mutating > 0) return all + mutating;
  throw new UserError(
    '--max-requests-inflight and --max-mutating-requests-inflight are both 0: give at least one of them, such as 400 and 200',
  );
}

function requireCount(flag: string, text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new UserError(
    `${flag} ${JSON.stringify(text)} is not a valid number of requests: give one from 0 to 999999, such as 400`,
  );
}

/** Returns 0 if the setting is not a duration. */
export const signingMillis = ({ clusterSigningDuration }: Pick<ApiSettings, 'clusterSigningDuration'>): Millis =>
  parseDuration(clusterSigningDuration) ?? 0;

function requireDuration(text: string): string {
  const millis = signingMillis({ clusterSigningDuration: text });
  if (millis >= LEAST_SIGNING_MILLIS) return text;
  throw new UserError(
    `--cluster-signing-duration ${JSON.stringify(text)} is not a valid lifetime of certificates: give 10s or more, such as ${DEFAULT_SIGNING_DURATION} for a year`,
  );
}

const listOf = (text: string): string[] => (text === '' ? [] : text.split(','));

const eachOf = (text: string, check: (each: string) => string): string =>
  [...new Set(listOf(text).map((each) => check(each.trim())))].join();

function requireBoolean(text: string): string {
  if (text === 'true' || text === 'false') return text;
  throw new UserError(`--disable-http2-serving ${JSON.stringify(text)} is neither true nor false: give one of them`);
}

function requireAddress(text: string): string {
  const ip = parseIp(text);
  if (ip === undefined || isMapped(ip) || /^fe[89ab]/i.test(text)) {
    throw new UserError(
      `--bind-address ${JSON.stringify(text)} is not an address on which the API can listen: give addresses of this machine, such as 192.0.2.10, with commas between them, or 0.0.0.0 for all of IPv4`,
    );
  }
  return formatIp(ip);
}

function requireName(text: string): string {
  const ip = parseIp(text);
  if (ip !== undefined && !isMapped(ip) && !UNSPECIFIED.includes(formatIp(ip))) return formatIp(ip);
  const errors = text.startsWith('*.') ? wildcardSubdomainErrors(text) : dns1123SubdomainErrors(text);
  if (ip !== undefined || errors.length > 0) {
    throw new UserError(
      `--tls-san ${JSON.stringify(text)} is neither a host name nor an address: give some such as api.example.com,192.0.2.10`,
    );
  }
  return text;
}

/** The Service `kubernetes` leads Pods to this address of the node. */
export const addressForPods = ({ podCidr }: Pick<Settings, 'podCidr'>): string => podRanges(podCidr)[0].gateway;

/**
 * Returns the addresses on which the API server listens. The API server is reachable at HOST through the first one. An unspecified address
 * includes all other addresses of its family; `::` includes those of both families.
 */
export function listenAddresses({
  bindAddress,
  podCidr,
  recordedPort,
}: Pick<Settings, 'bindAddress' | 'podCidr' | 'recordedPort'>): [string, ...string[]] {
  // With `recordedPort`, the engine only ends its Pods. A bind address that the machine no longer has must not prevent that.
  const asked = recordedPort === undefined ? listOf(bindAddress) : [];
  if (asked.includes(IPv6.anyAddress)) return [IPv6.anyAddress];
  if (asked.includes(IPv4.anyAddress))
    return [IPv4.anyAddress, ...asked.filter((address) => familyOf(address) === 'IPv6')];
  return [HOST, ...new Set([addressForPods({ podCidr }), ...asked.filter((address) => address !== HOST)])];
}

/** Returns the names and addresses in the certificate of the API server that depend on settings. */
export function certificateNames(settings: Settings): { hostnames: string[]; ips: string[] } {
  const { nodeName, serviceCidr, bindAddress, tlsSan } = settings;
  const given = listOf(tlsSan);
  return {
    hostnames: [nodeName, ...given.filter((name) => parseIp(name) === undefined)],
    ips: [
      ...kubernetesServiceAddresses(serviceCidr),
      addressForPods(settings),
      ...listOf(bindAddress).filter((address) => !UNSPECIFIED.includes(address)),
      ...given.filter((name) => parseIp(name) !== undefined),
    ],
  };
}
