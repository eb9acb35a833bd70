import type { Command } from 'commander';
import { dataDirOption } from '../../engine/settings.ts';
import type { KubeconfigOptions } from './kubeconfig.ts';

export function addKubeconfigCommand(program: Command): void {
  program
    .command('kubeconfig')
    .description(
      'print the shell command that lets the user who types it (also with sudo) use kubectl as administrator; with --user: create a ' +
        'kubeconfig with a new client certificate for another user, who has the rights that RBAC gives',
    )
    .summary('let this user or another one of the machine use kubectl')
    .addOption(dataDirOption())
    .option('--user <name>', 'name of the other user')
    .option('--group <name>', 'group of the other user; may be repeated', (group, others: string[] = []) => [
      ...others,
      group,
    ])
    .option(
      '--expires <duration>',
      'lifetime of the certificate, such as 720h (default and maximum: --cluster-signing-duration)',
    )
    .option('-n, --namespace <name>', 'namespace for commands of the other user that name none (default: default)')
    .option('--output <file>', 'file to create, with mode 0600, instead of standard output')
    .option(
      '--owner <user>',
      'user of this machine (login name, UID or UID:GID) who gets the file, and with whose rights it is created',
    )
    .option('--force', 'allow names that begin with system:, and the group system:masters')
    .action(async (options: KubeconfigOptions) => (await import('./kubeconfig.ts')).kubeconfig(options));
}
