/** Makes `kubectl lifepod COMMAND` use the data folder of the engine whose server kubectl uses. */
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Command } from 'commander';
import { isKubectlPlugin } from '../../engine/settings.ts';
import { dataFolderOf } from './engine-folders.ts';

/** Without --data-dir, a command that needs the data folder would otherwise use the default one, for example to end the Pods there. */
export function followKubectl(program: Command, env: NodeJS.ProcessEnv = process.env): void {
  if (!isKubectlPlugin(env)) return;
  program.hook('preAction', (_program, command) => {
    const folder = command.getOptionValueSource('dataDir') === 'default' ? folderOfKubectl(env) : undefined;
    if (folder !== undefined) command.setOptionValue('dataDir', folder);
  });
}

/** Returns undefined if kubectl uses several kubeconfigs, or the server of another program or machine. */
function folderOfKubectl(env: NodeJS.ProcessEnv): string | undefined {
  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  return dataFolderOf(listed.length > 0 ? listed : [join(env['HOME'] ?? homedir(), '.kube', 'config')]);
}
