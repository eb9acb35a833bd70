/** Makes `kubectl lifepod COMMAND` use the data folder of the engine whose server kubectl uses. */
import { delimiter } from 'node:path';
import type { Command } from 'commander';
import { UserError } from '../../platform/files.ts';
import { followedKubeconfigs } from './kubectl.ts';

/**
 * Without --data-dir, a command that needs the data folder would otherwise use the default one, for example to end the Pods there, although
 * kubectl uses another server. The command fails with a UserError if the folder is not known.
 */
export function followKubectl(program: Command, env: NodeJS.ProcessEnv = process.env): void {
  const paths = followedKubeconfigs(env);
  if (paths === undefined) return;
  program.hook('preAction', async (_program, command) => {
    if (command.getOptionValueSource('dataDir') !== 'default') return;
    const { dataFolderOf } = await import('./engine-folders.ts');
    const folder = dataFolderOf(paths);
    if (folder === undefined)
      throw new UserError(
        `kubectl uses the kubeconfig ${paths.join(delimiter)}, which does not show the data folder of an engine on this machine: give --data-dir FOLDER`,
      );
    command.setOptionValue('dataDir', folder);
  });
}
