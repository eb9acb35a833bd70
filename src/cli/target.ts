/**
 * Finds the API server and the namespace for a command such as `lifepod logs`.
 *
 * `lifepod COMMAND` uses the engine of the default data folder if one is running. Otherwise, and for `kubectl lifepod COMMAND`, the command
 * uses the server that kubectl would use. The options --kubeconfig and, after it, --data-dir take precedence over both. A user who is not
 * root uses the kubeconfig that `lifepod up` has copied for this user, because only root can read the data folder.
 */
import { existsSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type HttpClient, httpClient } from '../client/http-client.ts';
import { readKubeconfigs } from '../client/kubeconfig.ts';
import { DEFAULT_DATA_DIR, isKubectlPlugin, kubeconfigPath } from '../engine/settings.ts';
import { dataDirOwner, UserError } from '../platform/files.ts';
import { type Hints, hintsFor } from './hints.ts';
import { dataFolderOf } from './kubeconfig/engine-folders.ts';
import { engineSilent, explainUnread } from './kubeconfig/lost-engine.ts';
import { onlyForRoot, ownKubeconfig } from './kubeconfig/own-kubeconfig.ts';
import { notRunning } from './service/not-running.ts';

/** The options that were given on the command line. An option that was not given is undefined. */
export interface TargetOptions {
  kubeconfig?: string;
  context?: string;
  namespace?: string;
  dataDir?: string;
}

export interface Target {
  client: HttpClient;
  namespace: string;
  /** The address of the server, such as `https://127.0.0.1:6443`. */
  server: string;
  /** The environment and the arguments that make kubectl use the same server. */
  kubectl: { env: NodeJS.ProcessEnv; args: string[] };
  /** Composes commands for messages, which use the same server. */
  hints: Hints;
}

/** Reads the kubeconfigs that kubeconfigPaths() selects. Rejects with a UserError if there is no usable one. */
export async function resolveTarget(options: TargetOptions): Promise<Target> {
  const paths = kubeconfigPaths(options, process.env, engineRunsIn);
  const { dataDir } = options;
  const { namespace, ...server } = await readKubeconfigs(paths, options.context).catch((error: unknown) => {
    throw explainUnread(error, paths, dataDir, process.env);
  });
  return {
    client: httpClient({
      ...server,
      unreachable: ({ code }) =>
        code === 'ECONNREFUSED' ? engineSilent(server.server, paths, dataDir, process.env) : undefined,
    }),
    server: server.server,
    namespace: options.namespace ?? namespace ?? 'default',
    kubectl: {
      env: { ...process.env, KUBECONFIG: paths.join(delimiter) },
      args: options.context === undefined ? [] : ['--context', options.context],
    },
    hints: hintsFor({ ...options, engineFolder: dataFolderOf(paths) }, process.env, paths),
  };
}

/**
 * Returns the paths of the kubeconfigs to read; if there are several, the caller must merge them. Throws a UserError if there is none. `own`
 * returns the copy of an engine's kubeconfig for this user, if there is one.
 */
export function kubeconfigPaths(
  options: TargetOptions,
  env: NodeJS.ProcessEnv,
  engineRuns: (dataDir: string) => boolean,
  own: (dataDir: string) => string | undefined = ownKubeconfig,
): string[] {
  if (options.kubeconfig !== undefined) return [options.kubeconfig];
  if (options.dataDir !== undefined) return [own(options.dataDir) ?? kubeconfigIn(options.dataDir)];
  const ofEngine = isKubectlPlugin(env) ? undefined : own(DEFAULT_DATA_DIR);
  if (ofEngine !== undefined) return [ofEngine];
  if (!isKubectlPlugin(env) && engineRuns(DEFAULT_DATA_DIR)) return [kubeconfigPath(DEFAULT_DATA_DIR)];
  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  if (listed.length > 0) return listed;
  const usual = join(env['HOME'] ?? homedir(), '.kube', 'config');
  if (existsSync(usual)) return [usual];
  throw (
    onlyForRoot(DEFAULT_DATA_DIR) ??
    new UserError(`${notRunning(DEFAULT_DATA_DIR, env)}, or name a --data-dir or --kubeconfig`)
  );
}

/** Returns the path of the administrator's kubeconfig. Throws a UserError if there is none, or if only root can read it. */
function kubeconfigIn(dataDir: string): string {
  const forRoot = onlyForRoot(dataDir);
  if (forRoot !== undefined) throw forRoot;
  const path = kubeconfigPath(dataDir);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) throw new UserError(notRunning(dataDir));
  return path;
}

/**
 * Returns whether an engine has locked the data folder. Returns false also if the user may not read the folder, or if dataDirOwner()
 * throws a UserError, for example because `lifepod down` has locked the folder.
 */
function engineRunsIn(dataDir: string): boolean {
  try {
    return dataDirOwner(dataDir) !== undefined;
  } catch (error) {
    if (error instanceof UserError || (error as NodeJS.ErrnoException).code === 'EACCES') return false;
    throw error;
  }
}
