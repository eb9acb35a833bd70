import { type Command, Option } from 'commander';
import { DEFAULT_DATA_DIR } from '../../engine/settings.ts';
import { givenDataDir } from '../../platform/files.ts';

const targetOptions = (namespace: string): Option[] => [
  new Option('-n, --namespace <name>', namespace),
  new Option(
    '--data-dir <folder>',
    `data folder of the engine to use (default: that of the engine in KUBECONFIG, otherwise ${DEFAULT_DATA_DIR})`,
  ).argParser(givenDataDir),
  new Option('--kubeconfig <file>', 'kubeconfig to use instead of the one in the data folder'),
  new Option('--context <name>', 'context of the kubeconfig to use'),
];

/** Adds the options that select the server of a command. `namespace`: the help text of --namespace. */
export function withTarget(command: Command, namespace = `namespace of the Pod (default: the kubeconfig's)`): Command {
  for (const option of targetOptions(namespace)) command.addOption(option);
  return command;
}
