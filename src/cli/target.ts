/**
 * Finds the API server and the namespace for a command such as `lifepod logs`.
 *
 * The rule, the same for root and for other users: --kubeconfig, else --data-dir, else KUBECONFIG, else the engine of the default data
 * folder if it runs and the user has its kubeconfig, else ~/.kube/config. `kubectl lifepod COMMAND` uses the server of kubectl, if kubectl
 * has a kubeconfig. A user who is not root has the kubeconfig of an engine if `lifepod up` has copied it for this user, because only root
 * can read the data folder.
 */
import { existsSync, statSync } from 'node:fs';
import { delimiter } from 'node:path';
import { type HttpClient, httpClient, isOtherServer } from '../client/http-client.ts';
import { readKubeconfigs } from '../client/kubeconfig.ts';
import { isSilence } from '../client/silence.ts';
import { DEFAULT_DATA_DIR, kubeconfigPath } from '../engine/settings.ts';
import { UserError } from '../platform/files.ts';
import { type Hints, hintsFor } from './hints.ts';
import { dataFolderOf } from './kubeconfig/engine-folders.ts';
import { followedKubeconfigs, kubectlKubeconfigs, listedKubeconfigs } from './kubeconfig/kubectl.ts';
import { credentialsRefused, engineHangs, engineSilent, explainUnread, otherServer } from './kubeconfig/lost-engine.ts';
import { isOnlyForRoot, onlyForRoot, ownKubeconfig } from './kubeconfig/own-kubeconfig.ts';
import { engineRunsIn, otherEngines } from './kubeconfig/which-engine.ts';
import { patience, SILENCE_MILLIS } from './progress/slow-answer.ts';
import { printError } from './progress/standard-output.ts';
import { notRunning } from './service/not-running.ts';
import { serviceState } from './service/service-state.ts';

export interface TargetOptions {
  kubeconfig?: string;
  context?: string;
  namespace?: string;
  dataDir?: string;
}

export interface Target {
  client: HttpClient;
  namespace: string;
  server: string;
  /** The data folder of the engine; undefined if it is not known. */
  engineFolder: string | undefined;
  /** The environment and the arguments that make kubectl use the same server. */
  kubectl: { env: NodeJS.ProcessEnv; args: string[] };
  hints: Hints;
}

/**
 * Rejects with a UserError if there is no usable kubeconfig. Prints to standard error which engine is used if no option has selected it and
 * other engines run.
 */
export async function resolveTarget(options: TargetOptions): Promise<Target> {
  const paths = kubeconfigPaths(options, process.env, engineRunsIn);
  const { dataDir } = options;
  const { namespace, ...server } = await readKubeconfigs(paths, options.context).catch((error: unknown) => {
    throw explainUnread(error, paths, dataDir, process.env);
  });
  const engineFolder = dataFolderOf(paths);
  const isGiven = (options.kubeconfig ?? dataDir) !== undefined || followedKubeconfigs(process.env) !== undefined;
  const note = isGiven ? undefined : otherEngines(engineFolder, server.server, process.env);
  if (note !== undefined) printError(`lifepod: ${note}`);
  // The API of a service that is still starting does not answer, so another engine has answered then.
  const isService = (): boolean => engineFolder !== undefined && serviceState(engineFolder) === 'running';
  return {
    client: httpClient({
      ...server,
      ...patience(),
      refused: () => credentialsRefused(server.server, paths, dataDir, process.env),
      unreachable: (error) => {
        if (isSilence(error)) return engineHangs(server.server, SILENCE_MILLIS, paths, dataDir, process.env);
        if (isOtherServer(error)) return otherServer(server.server, paths, dataDir, process.env);
        return error.code === 'ECONNREFUSED' ? engineSilent(server.server, paths, dataDir, process.env) : undefined;
      },
    }),
    server: server.server,
    engineFolder,
    namespace: options.namespace ?? namespace ?? 'default',
    kubectl: {
      env: { ...process.env, KUBECONFIG: paths.join(delimiter) },
      args: options.context === undefined ? [] : ['--context', options.context],
    },
    hints: hintsFor(
      {
        ...options,
        engineFolder,
        isFolderUnknown: engineFolder === undefined,
        server: server.server,
        isOneOfSeveral: note !== undefined,
        isService,
      },
      process.env,
      paths,
    ),
  };
}

/**
 * Returns the paths of the kubeconfigs to read; if there are several, the caller must merge them. Throws a UserError if there is none.
 * `own` returns the copy of an engine's kubeconfig for this user, if there is one.
 */
export function kubeconfigPaths(
  options: TargetOptions,
  env: NodeJS.ProcessEnv,
  engineRuns: (dataDir: string) => boolean,
  own: (dataDir: string) => string | undefined = ownKubeconfig,
  defaultFolder = DEFAULT_DATA_DIR,
): string[] {
  if (options.kubeconfig !== undefined) return [options.kubeconfig];
  if (options.dataDir !== undefined) return [own(options.dataDir) ?? kubeconfigIn(options.dataDir)];
  const followed = followedKubeconfigs(env);
  if (followed !== undefined) return followed;
  const ofKubectl = kubectlKubeconfigs(env);
  if (listedKubeconfigs(env).length > 0) return ofKubectl;
  if (engineRuns(defaultFolder)) {
    const ofEngine = own(defaultFolder);
    if (ofEngine !== undefined) return [ofEngine];
    if (!isOnlyForRoot(defaultFolder)) return [kubeconfigPath(defaultFolder)];
  }
  if (ofKubectl.some((path) => existsSync(path))) return ofKubectl;
  throw onlyForRoot(defaultFolder) ?? new UserError(orSelected(notRunning(defaultFolder, env)));
}

/** Adds the options that select a server. `text` may name --data-dir with the folders of other engines. */
export const orSelected = (text: string): string =>
  `${text}, or name a ${text.includes("'--data-dir ") ? '' : '--data-dir or '}--kubeconfig`;

/** Throws a UserError if the data folder has no kubeconfig, or if only root can read it. */
function kubeconfigIn(dataDir: string): string {
  const forRoot = onlyForRoot(dataDir);
  if (forRoot !== undefined) throw forRoot;
  const path = kubeconfigPath(dataDir);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) throw new UserError(notRunning(dataDir));
  return path;
}
