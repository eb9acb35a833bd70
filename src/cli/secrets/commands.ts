import type { Command } from 'commander';
import { dataDirOption } from '../../engine/settings.ts';

export function addSecretsCommands(program: Command): void {
  const secrets = program.command('secrets').description('manage the encryption of Secrets in the store');
  secrets
    .command('rotate-key')
    .description('replace the key of the running engine, and encrypt all Secrets with the new one')
    .addOption(dataDirOption())
    .action(async (options: { dataDir: string }) => (await import('./rotate-key.ts')).rotateKey(options.dataDir));
  secrets
    .command('discard')
    .description('list the objects of a stopped engine that cannot be decrypted, for example because their key is lost')
    .option('--yes', 'delete them')
    .addOption(dataDirOption())
    .action(async (options: { dataDir: string; yes?: boolean }) =>
      (await import('./discard.ts')).discard(options.dataDir, options.yes === true),
    );
}
