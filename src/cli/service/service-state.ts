/** Reads the state of the service that runs an engine, for messages about an engine that does not answer. Source: systemctl(1). */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { readTextIfPresent, realFolder } from '../../platform/files.ts';
import { dataDirOf, ENGINE_UNIT, UNIT_FOLDER } from './units.ts';

/** `starting`: the API does not listen yet. `failing`: the engine has failed, and systemd is about to start it again. */
export type ServiceState = 'starting' | 'running' | 'failing' | 'stopped';

/** A message must not wait long if systemd does not answer. */
const ANSWERED_WITHIN_MILLIS = 10_000;

const showUnit = (): string =>
  spawnSync('systemctl', ['show', '--property=ActiveState,SubState', ENGINE_UNIT], {
    encoding: 'utf8',
    timeout: ANSWERED_WITHIN_MILLIS,
    stdio: ['ignore', 'pipe', 'ignore'],
  }).stdout ?? '';

/** Returns undefined if no service runs the engine of the data folder, or if its state cannot be read. */
export function serviceState(dataDir: string, folder = UNIT_FOLDER, show = showUnit): ServiceState | undefined {
  const unit = readTextIfPresent(join(folder, ENGINE_UNIT));
  if (unit === undefined || dataDirOf(unit) !== realFolder(dataDir)) return undefined;
  const lines = show().split('\n');
  const propertyOf = (key: string): string | undefined =>
    lines.find((line) => line.startsWith(`${key}=`))?.slice(key.length + 1);
  if (propertyOf('SubState')?.startsWith('auto-restart') === true) return 'failing';
  switch (propertyOf('ActiveState')) {
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

/**
 * Returns whether systemd runs the engine now, so that systemctl must stop and restart it. Beside an engine that a user has started, the
 * service is stopped, or fails because the data folder is locked.
 */
export const runsAsService = (dataDir: string, state = serviceState(dataDir)): boolean =>
  state === 'starting' || state === 'running';
