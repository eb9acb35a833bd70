/** Makes `kubectl lifepod COMMAND` use the data folder of the engine whose server kubectl uses. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Command } from 'commander';
import { isKubectlPlugin } from '../../engine/settings.ts';
import { UserError } from '../../platform/files.ts';
import { dataFolderOf } from './engine-folders.ts';

/**
 * Without --data-dir, a command that needs the data folder would otherwise use the default one, for example to end the Pods there, although
 * kubectl uses another server. The command fails with a UserError if the folder is not known.
 */
export function followKubectl(program: Command, env: NodeJS.ProcessEnv = process.env): void {
  if (!isKubectlPlugin(env)) return;
  program.hook('preAction', (_program, command) => {
    if (command.getOptionValueSource('dataDir') !== 'default') return;
    const paths = kubeconfigsOf(env);
    if (paths.length === 0) return;
    const folder = dataFolderOf(paths);
    if (folder === undefined)
      throw new UserError(
        `kubectl uses the kubeconfig ${paths.join(delimiter)}, which does not show the data folder of an engine on this machine: give --data-dir FOLDER`,
      );
    command.setOptionValue('dataDir', folder);
  });
}

/** Returns the kubeconfigs that kubectl reads; none if the user has none. */
function kubeconfigsOf(env: NodeJS.ProcessEnv): string[] {
  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  const usual = join(env['HOME'] ?? homedir(), '.kube', 'config');
  return listed.length > 0 ? listed : [usual].filter((path) => existsSync(path));
}
