/** Selects the data folder whose engine `lifepod status` reports on, besides the API. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DEFAULT_DATA_DIR, isKubectlPlugin, kubeconfigPath } from '../../engine/settings.ts';
import { dataDirOwner } from '../../platform/files.ts';
import { kubeconfigPaths, type TargetOptions } from '../target.ts';

export interface SelectedEngine {
  /** Undefined if only the API can be read. */
  dataDir: string | undefined;
  /** Sentences about what cannot be read. */
  unread: string[];
}

const OTHER_MACHINE =
  "the engine's memory, disk, certificates and static manifests: 'lifepod status' reports them on the engine's machine";

/**
 * Returns the folder of --data-dir, else that of the kubeconfig that the command uses, else the default folder. `kubectl lifepod`, and
 * a user who may not read the folder but has a kubeconfig, get no folder.
 */
export function selectEngine(options: TargetOptions, env: NodeJS.ProcessEnv): SelectedEngine {
  const { kubeconfig, context, dataDir } = options;
  if (dataDir !== undefined) return { dataDir, unread: [] };
  const isAboutServer = kubeconfig !== undefined || context !== undefined || isKubectlPlugin(env);
  if (!isAboutServer && stateOf(DEFAULT_DATA_DIR) === 'running') return { dataDir: DEFAULT_DATA_DIR, unread: [] };
  const folder = context === undefined ? folderOf(pathsOf(options, env, isAboutServer)) : undefined;
  if (folder !== undefined && stateOf(folder) !== 'unreadable') return { dataDir: folder, unread: [] };
  if (isAboutServer) return { dataDir: undefined, unread: [OTHER_MACHINE] };
  const isUnreadable = stateOf(DEFAULT_DATA_DIR) === 'unreadable';
  if (isUnreadable && pathsOf(options, env, false).length > 0)
    return {
      dataDir: undefined,
      unread: [
        `${DEFAULT_DATA_DIR}: permission denied: 'sudo lifepod status' reports memory, disk, certificates and static manifests`,
      ],
    };
  return { dataDir: DEFAULT_DATA_DIR, unread: [] };
}

/** Returns the kubeconfigs that the options select. If there are none, throws a UserError if `isRequired`, else returns none. */
function pathsOf(options: TargetOptions, env: NodeJS.ProcessEnv, isRequired: boolean): string[] {
  try {
    return kubeconfigPaths(options, env, () => false);
  } catch (error) {
    if (isRequired) throw error;
    return [];
  }
}

/** Returns the data folder of the engine that has written the kubeconfig; undefined if another program has, or if it cannot be seen. */
function folderOf(paths: readonly string[]): string | undefined {
  const [path, ...others] = paths;
  if (path === undefined || others.length > 0) return undefined;
  const folder = dirname(resolve(path));
  return resolve(path) === kubeconfigPath(folder) && existsSync(`${folder}/engine.json`) ? folder : undefined;
}

function stateOf(dataDir: string): 'running' | 'stopped' | 'unreadable' {
  try {
    return dataDirOwner(dataDir) === undefined ? 'stopped' : 'running';
  } catch (error) {
    // `lifepod down` has locked the folder, which readEngine() reports.
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'unreadable' : 'stopped';
  }
}
