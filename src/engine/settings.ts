/**
 * Resolves the settings of an engine, and reads and writes the engine record. Each setting is the option given to `lifepod up`, else the
 * value recorded in the data folder at the last start, else the default. Because values are recorded, later calls of `lifepod up` and
 * `lifepod down` need only --data-dir. The level and the format of the log, --for-sessions and --shutdown-on-stop are not recorded.
 */
import { hostname } from 'node:os';
import { join } from 'node:path';
import { Option } from 'commander';
import { DEFAULT_MAX_EXTENSION_SECONDS } from '../lifecycle/termination-causes.ts';
import { rangesOverlap } from '../machinery/ip.ts';
import { dns1123SubdomainErrors } from '../machinery/names.ts';
import { readTextIfPresent, realDataDir, realFolder, UserError, writeFileAtomic } from '../platform/files.ts';
import type { LogFormat, LogLevel } from '../platform/log/text-line.ts';
import { type AuditOptions, resolveAuditOptions } from './audit/audit-settings.ts';
import {
  type AuthenticationOptions,
  requireIssuer,
  resolveAuthenticationOptions,
} from './authentication/authentication-settings.ts';
import { requirePodRanges, requireServiceRanges } from './free-ranges.ts';
import { type ImageOptions, type ImageSettings, resolveImageSettings } from './image-settings.ts';
import { type NodeOptions, requireSomePods, requireUsablePids, resolveNodeOptions } from './node-settings.ts';
import { type ApiOptions, type ApiSettings, resolveApiOptions } from './options/api-settings.ts';
import { type EncryptionOptions, resolveEncryptionOptions } from './options/encryption-settings.ts';
import { DEFAULT_RECORD_AGE, DEFAULT_RECORD_SIZE, parseRecordLimits } from './options/record-settings.ts';
import { endpointOf } from './options/runtime-endpoint.ts';
import { gitCommit, LIFEPOD_VERSION } from './version.ts';

export const DEFAULT_DATA_DIR = '/var/lib/lifepod';
export const DEFAULT_PORT = 6443;
/** This range does not overlap the default ranges of common container networks (docker 172.17, podman 10.88, k3s 10.42, flannel 10.244). */
export const DEFAULT_POD_CIDR = '10.222.0.0/16';
export const DEFAULT_SERVICE_CIDR = '10.96.0.0/16';

/**
 * Symbolic links are resolved, so that names and mount points that are derived from the folder always contain the same path. commander does
 * not pass the default value to the parser, so its links are resolved here.
 */
export const dataDirOption = (byDefault = DEFAULT_DATA_DIR): Option =>
  new Option('--data-dir <folder>', 'folder for all data of the engine')
    .default(realFolder(byDefault), JSON.stringify(byDefault))
    .argParser(realDataDir);

export const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];
export const LOG_FORMATS: readonly LogFormat[] = ['text', 'json'];

/** Undefined: the option was not given. */
export interface UpOptions
  extends ApiOptions,
    ImageOptions,
    NodeOptions,
    AuthenticationOptions,
    AuditOptions,
    EncryptionOptions {
  dataDir: string;
  port?: number;
  /**
   * Whether the engine listens on any free port, and leaves the port in the engine record unchanged. Set if the engine is started only
   * to end its Pods, because another program may be using the recorded port.
   */
  anyPort?: boolean;
  /** Whether the last session that uses the engine stops it. */
  forSessions?: boolean;
  podCidr?: string;
  serviceCidr?: string;
  nodeName?: string;
  /** Empty: a private containerd. */
  containerRuntimeEndpoint?: string;
  recordAge?: string;
  recordSize?: string;
  maxGracePeriodExtension?: number;
  podPidsLimit?: number;
  runtimeHandler?: Record<string, string>;
  /** Whether SIGTERM and SIGINT end the Pods before the engine stops, as `lifepod shutdown-node` does. */
  shutdownOnStop?: boolean;
  logLevel?: LogLevel;
  /** The format of the log. The default is `text` for an engine in the foreground, and `json` for an engine in the background. */
  logFormat?: LogFormat;
}

export interface Settings
  extends ApiSettings,
    ImageSettings,
    Required<NodeOptions>,
    Required<AuthenticationOptions>,
    Required<AuditOptions>,
    Required<EncryptionOptions> {
  dataDir: string;
  /** 0 means any free port. */
  port: number;
  /** The port to record; undefined: the port on which the API server listens. */
  recordedPort?: number;
  /** An IPv4 range; an IPv6 range may follow after a comma. */
  podCidr: string;
  /** In the form of `podCidr`. */
  serviceCidr: string;
  nodeName: string;
  /** Undefined if lifepod starts a private containerd. */
  containerRuntimeEndpoint?: string;
  /** How long the record of a deleted Pod is kept, such as 24h or 7d. */
  recordAge: string;
  /** The total size of all records, such as 64Mi. */
  recordSize: string;
  /** Longest time in seconds by which extensions for defer containers, and separately outages, may lengthen a Pod's grace period. */
  maxGracePeriodExtension: number;
  /** Maximum number of processes and threads of each Pod; -1 means no limit. */
  podPidsLimit: number;
  /** By name: the path of a program, or the type of a containerd shim. These are in addition to runc. */
  runtimeHandlers: Record<string, string>;
  logLevel: LogLevel;
}

/** The content of the file engine.json in the data folder. */
export interface EngineRecord
  extends ApiOptions,
    ImageOptions,
    NodeOptions,
    AuthenticationOptions,
    AuditOptions,
    EncryptionOptions {
  version: string;
  /** The hash of the commit from which the engine was built; absent if it is not known. */
  commit?: string | undefined;
  port: number;
  podCidr: string;
  serviceCidr: string;
  nodeName: string;
  containerRuntimeEndpoint?: string;
  recordAge?: string;
  recordSize?: string;
  maxGracePeriodExtension?: number;
  podPidsLimit?: number;
  runtimeHandlers?: Record<string, string>;
  /**
   * `down` after `lifepod down` has finished, so that nothing from this data folder is running; `starting` until a first start has
   * succeeded: later starts do not use the settings of a failed first start (see start/first-start.ts); otherwise `up`.
   */
  state: 'up' | 'down' | 'starting';
  /** The names of the entries of the data folder before the first start; absent unless the state is `starting`. */
  before?: string[];
  /** Present after the engine has ended the Pods for `lifepod shutdown-node` or --shutdown-on-stop, until the next start. */
  shutdown?: ShutdownOutcome;
}

export interface ShutdownOutcome {
  /** The Pods that had not ended when the shutdown ended, although their grace period was over, as NAMESPACE/NAME. */
  podsLeft: string[];
}

const recordPath = (dataDir: string): string => join(dataDir, 'engine.json');

export const kubeconfigPath = (dataDir: string): string => join(dataDir, 'kubeconfig');

export function readEngineRecord(dataDir: string): EngineRecord | undefined {
  const text = readTextIfPresent(recordPath(dataDir));
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as EngineRecord;
  } catch {
    throw new UserError(`${recordPath(dataDir)} is damaged: restore it or choose another --data-dir`);
  }
}

export function writeEngineRecord(dataDir: string, record: EngineRecord): void {
  writeFileAtomic(recordPath(dataDir), `${JSON.stringify(record, undefined, 2)}\n`);
}

export const recordOf = (settings: Settings, port: number): EngineRecord => ({
  version: LIFEPOD_VERSION,
  commit: gitCommit(),
  port: settings.recordedPort ?? port,
  podCidr: settings.podCidr,
  serviceCidr: settings.serviceCidr,
  nodeName: settings.nodeName,
  containerRuntimeEndpoint: settings.containerRuntimeEndpoint,
  recordAge: settings.recordAge,
  recordSize: settings.recordSize,
  maxGracePeriodExtension: settings.maxGracePeriodExtension,
  podPidsLimit: settings.podPidsLimit,
  runtimeHandlers: settings.runtimeHandlers,
  ...resolveApiOptions(settings),
  ...resolveImageSettings(settings),
  ...resolveNodeOptions(settings, undefined),
  ...resolveAuthenticationOptions(settings),
  ...resolveAuditOptions(settings),
  ...resolveEncryptionOptions(settings),
  state: 'up',
});

/**
 * Returns whether resolveSettings() will choose a private containerd; true if the record cannot be read, because a later step of the start
 * reports this error.
 */
export function usesPrivateContainerd({ dataDir, containerRuntimeEndpoint }: UpOptions): boolean {
  if (containerRuntimeEndpoint !== undefined) return containerRuntimeEndpoint === '';
  try {
    const record = readEngineRecord(dataDir);
    return record?.state === 'starting' || record?.containerRuntimeEndpoint === undefined;
  } catch {
    return true;
  }
}

export function recordShutdown(dataDir: string, shutdown: ShutdownOutcome): void {
  const record = readEngineRecord(dataDir);
  if (record !== undefined) writeEngineRecord(dataDir, { ...record, shutdown });
}

/** Returns each value from `options`, else from `record`, else the default. Throws a UserError if a value is invalid or must not change. */
export function resolveSettings(options: UpOptions, record: EngineRecord | undefined): Settings {
  const settings: Settings = {
    dataDir: options.dataDir,
    port: options.anyPort === true ? 0 : (options.port ?? record?.port ?? DEFAULT_PORT),
    podCidr: options.podCidr ?? record?.podCidr ?? DEFAULT_POD_CIDR,
    serviceCidr: options.serviceCidr ?? record?.serviceCidr ?? DEFAULT_SERVICE_CIDR,
    nodeName: options.nodeName ?? record?.nodeName ?? hostname().toLowerCase(),
    recordAge: options.recordAge ?? record?.recordAge ?? DEFAULT_RECORD_AGE,
    recordSize: options.recordSize ?? record?.recordSize ?? DEFAULT_RECORD_SIZE,
    maxGracePeriodExtension:
      options.maxGracePeriodExtension ?? record?.maxGracePeriodExtension ?? DEFAULT_MAX_EXTENSION_SECONDS,
    podPidsLimit: options.podPidsLimit ?? record?.podPidsLimit ?? -1,
    runtimeHandlers: options.runtimeHandler ?? record?.runtimeHandlers ?? {},
    ...resolveApiOptions(options, record),
    ...resolveImageSettings(options, record),
    ...resolveNodeOptions(options, record),
    ...resolveAuthenticationOptions(options, record),
    ...resolveAuditOptions(options, record),
    ...resolveEncryptionOptions(options, record),
    logLevel: options.logLevel ?? 'info',
  };
  if (options.anyPort === true && record !== undefined) settings.recordedPort = record.port;
  const endpoint = endpointOf(options.containerRuntimeEndpoint ?? record?.containerRuntimeEndpoint);
  if (endpoint !== undefined) {
    settings.containerRuntimeEndpoint = endpoint;
    if (options.runtimeHandler !== undefined) {
      throw new UserError(
        `--runtime-handler is for the private containerd: configure the handler in the runtime at ${endpoint}, and omit the option`,
      );
    }
  }
  checkUnchanged(settings, record);
  requireSomePods(options);
  requireIssuer(options, settings);
  if (!Number.isInteger(settings.port) || settings.port < 0 || settings.port > 65535) {
    throw new UserError(`--port ${settings.port} is not a port: give a number from 1 to 65535, or 0 for a free one`);
  }
  const { maxGracePeriodExtension } = settings;
  if (!Number.isSafeInteger(maxGracePeriodExtension) || maxGracePeriodExtension < 0) {
    throw new UserError(
      `--max-grace-period-extension ${maxGracePeriodExtension} is not a valid time: give whole seconds, 0 for no extension`,
    );
  }
  requireUsablePids(options);
  const nameErrors = dns1123SubdomainErrors(settings.nodeName);
  if (nameErrors.length > 0) {
    throw new UserError(`--node-name ${JSON.stringify(settings.nodeName)} is not a valid node name: ${nameErrors[0]}`);
  }
  parseRecordLimits(settings.recordAge, settings.recordSize);
  const serviceRanges = requireServiceRanges(settings.serviceCidr);
  if (requirePodRanges(settings.podCidr).some((pods) => serviceRanges.some((other) => rangesOverlap(pods, other)))) {
    throw new UserError(
      `--pod-cidr ${settings.podCidr} and --service-cidr ${settings.serviceCidr} overlap: choose ranges that do not overlap`,
    );
  }
  return settings;
}

/**
 * Throws a UserError if a setting on which stored objects depend differs from the recorded one. A second Service range may be added; a
 * second Pod range may not, because the podCIDRs of a Node cannot change, as in upstream, and running Pods would lack an address.
 */
function checkUnchanged(settings: Settings, record: EngineRecord | undefined): void {
  if (record === undefined) return;
  const fixed = [
    ['--pod-cidr', settings.podCidr, record.podCidr],
    ['--service-cidr', settings.serviceCidr, record.serviceCidr],
    ['--node-name', settings.nodeName, record.nodeName],
  ] as const;
  for (const [option, wanted, recorded] of fixed) {
    if (wanted === recorded || (option === '--service-cidr' && wanted.startsWith(`${recorded},`))) continue;
    throw new UserError(
      `the data folder ${settings.dataDir} was created with ${option} ${recorded}: omit the option or choose another --data-dir`,
    );
  }
}
