/** Reads the state of the service that runs an engine, for messages about an engine that does not answer. Source: systemctl(1). */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { readTextIfPresent, realFolder } from '../../platform/files.ts';
import { dataDirOf, ENGINE_UNIT, UNIT_FOLDER } from './units.ts';

/** `starting`: the API does not listen yet. `failing`: the engine has failed, and systemd is about to start it again. */
export type ServiceState = 'starting' | 'running' | 'failing' | 'stopped';

export interface ServiceReading {
  state: ServiceState;
  /** The process that systemd runs as the service; 0 if there is none. */
  pid: number;
}

/** A message must not wait long if systemd does not answer. */
const ANSWERED_WITHIN_MILLIS = 10_000;

const showUnit = (): string =>
  spawnSync('systemctl', ['show', '--property=ActiveState,SubState,MainPID', ENGINE_UNIT], {
    encoding: 'utf8',
    timeout: ANSWERED_WITHIN_MILLIS,
    stdio: ['ignore', 'pipe', 'ignore'],
  }).stdout ?? '';

/** Returns undefined if no service is installed for the data folder, or if its state cannot be read. */
export function readService(dataDir: string, folder = UNIT_FOLDER, show = showUnit): ServiceReading | undefined {
  const unit = readTextIfPresent(join(folder, ENGINE_UNIT));
  if (unit === undefined || dataDirOf(unit) !== realFolder(dataDir)) return undefined;
  const lines = show().split('\n');
  const propertyOf = (key: string): string | undefined =>
    lines.find((line) => line.startsWith(`${key}=`))?.slice(key.length + 1);
  const state = stateOf(propertyOf('ActiveState'), propertyOf('SubState'));
  return state && { state, pid: Number(propertyOf('MainPID') ?? 0) };
}

function stateOf(active: string | undefined, sub = ''): ServiceState | undefined {
  if (sub.startsWith('auto-restart')) return 'failing';
  switch (active) {
    case 'activating':
    case 'reloading':
    case 'refreshing':
      return 'starting';
    case 'active':
      return 'running';
    case 'deactivating':
    case 'inactive':
    case 'failed':
      return 'stopped';
    default:
      return undefined;
  }
}

/** Returns undefined like readService(). Beside an engine that a user has started, this is not the state of that engine. */
export const serviceState = (dataDir: string): ServiceState | undefined => readService(dataDir)?.state;

/**
 * Returns whether systemd runs the engine with the PID, so that systemctl must stop and restart it. Beside an engine that a user has
 * started, the service is stopped, or starts again and again and fails because the data folder is locked.
 */
export const runsAsService = (dataDir: string, pid: number, service = readService(dataDir)): boolean =>
  service?.pid === pid;
