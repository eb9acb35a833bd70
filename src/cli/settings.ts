/**
 * What an engine runs with: the options of `lifepod up`, what the data folder remembers of the last time, the defaults.
 * The data folder remembers, so that `lifepod up` and `lifepod down` need no option but --data-dir the second time.
 */
import { hostname } from 'node:os';
import { join } from 'node:path';
import { dns1123SubdomainErrors } from '../machinery/names.ts';
import { overlaps } from '../network/cidr.ts';
import { readTextIfPresent, UserError, writeFileAtomic } from '../platform/files.ts';
import { requireCidr } from './cidr.ts';

export const DEFAULT_DATA_DIR = '/var/lib/lifepod';
export const DEFAULT_PORT = 6443;
/** Not the range of another widespread container network (docker 172.17, podman 10.88, k3s 10.42, flannel 10.244). */
export const DEFAULT_POD_CIDR = '10.222.0.0/16';
export const DEFAULT_SERVICE_CIDR = '10.96.0.0/16';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** As given on the command line; all but the data folder optional. */
export interface UpOptions {
  dataDir: string;
  port?: number;
  podCidr?: string;
  serviceCidr?: string;
  nodeName?: string;
  containerRuntimeEndpoint?: string;
  logLevel?: LogLevel;
}

export interface Settings {
  dataDir: string;
  /** 0: any free one. */
  port: number;
  podCidr: string;
  serviceCidr: string;
  nodeName: string;
  /** Of the machine's runtime; absent: a private containerd. */
  containerRuntimeEndpoint?: string;
  logLevel: LogLevel;
}

/** <data-dir>/engine.json */
export interface EngineRecord {
  /** Of the lifepod that wrote it. */
  version: string;
  port: number;
  podCidr: string;
  serviceCidr: string;
  nodeName: string;
  containerRuntimeEndpoint?: string;
  /** `down`: `lifepod down` came to its end, nothing of this data folder runs. */
  state: 'up' | 'down';
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

/** Joins options, record and defaults. Throws a UserError where they do not fit. */
export function resolveSettings(options: UpOptions, record: EngineRecord | undefined): Settings {
  const settings: Settings = {
    dataDir: options.dataDir,
    port: options.port ?? record?.port ?? DEFAULT_PORT,
    podCidr: options.podCidr ?? record?.podCidr ?? DEFAULT_POD_CIDR,
    serviceCidr: options.serviceCidr ?? record?.serviceCidr ?? DEFAULT_SERVICE_CIDR,
    nodeName: options.nodeName ?? record?.nodeName ?? hostname().toLowerCase(),
    logLevel: options.logLevel ?? 'info',
  };
  const endpoint = options.containerRuntimeEndpoint ?? record?.containerRuntimeEndpoint;
  if (endpoint !== undefined) settings.containerRuntimeEndpoint = endpoint;
  checkUnchanged(settings, record);
  if (!Number.isInteger(settings.port) || settings.port < 0 || settings.port > 65535) {
    throw new UserError(`--port ${settings.port} is not a port: give a number from 1 to 65535, or 0 for a free one`);
  }
  const nameErrors = dns1123SubdomainErrors(settings.nodeName);
  if (nameErrors.length > 0) {
    throw new UserError(`--node-name ${JSON.stringify(settings.nodeName)} is not a node's name: ${nameErrors[0]}`);
  }
  const podCidr = requireCidr('--pod-cidr', settings.podCidr, 28);
  const serviceCidr = requireCidr('--service-cidr', settings.serviceCidr, 28);
  if (overlaps(podCidr, serviceCidr)) {
    throw new UserError(
      `--pod-cidr ${settings.podCidr} and --service-cidr ${settings.serviceCidr} overlap: choose two apart`,
    );
  }
  return settings;
}

/** What objects in the store already rely on cannot change. */
function checkUnchanged(settings: Settings, record: EngineRecord | undefined): void {
  if (record === undefined) return;
  const fixed = [
    ['--pod-cidr', settings.podCidr, record.podCidr],
    ['--service-cidr', settings.serviceCidr, record.serviceCidr],
    ['--node-name', settings.nodeName, record.nodeName],
  ] as const;
  for (const [option, wanted, recorded] of fixed) {
    if (wanted === recorded) continue;
    throw new UserError(
      `the data folder ${settings.dataDir} was made with ${option} ${recorded}: leave the option away or choose another --data-dir`,
    );
  }
}
