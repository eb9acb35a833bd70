/** Finds the kubeconfigs that kubectl reads, and which of them a command of lifepod must use as a plugin of kubectl. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

/** Returns whether lifepod runs as a kubectl plugin: kubectl runs bin/kubectl-lifepod, which sets the variable. */
export const isKubectlPlugin = (env: NodeJS.ProcessEnv): boolean => env['LIFEPOD_KUBECTL_PLUGIN'] === '1';

/** Returns the paths in the variable KUBECONFIG. */
export const listedKubeconfigs = (env: NodeJS.ProcessEnv): string[] =>
  (env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');

/** Returns the kubeconfigs that kubectl reads by itself: those in KUBECONFIG, else ~/.kube/config, whether the files exist or not. */
export function kubectlKubeconfigs(env: NodeJS.ProcessEnv): string[] {
  const listed = listedKubeconfigs(env);
  return listed.length > 0 ? listed : [join(env['HOME'] ?? homedir(), '.kube', 'config')];
}

/**
 * Returns the kubeconfigs of kubectl whose server this command must use; undefined if lifepod is not its plugin, or if kubectl has no
 * server, because there is no kubeconfig. sudo, for example, removes KUBECONFIG.
 */
export function followedKubeconfigs(env: NodeJS.ProcessEnv): string[] | undefined {
  if (!isKubectlPlugin(env)) return undefined;
  const paths = kubectlKubeconfigs(env);
  const isServerKnown = listedKubeconfigs(env).length > 0 || paths.some((path) => existsSync(path));
  return isServerKnown ? paths : undefined;
}
