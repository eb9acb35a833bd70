import type { Command } from 'commander';
import { ENCRYPTION_FLAG } from '../../engine/options/encryption-settings.ts';
import { dataDirOption } from '../../engine/settings.ts';
import type { DiscardOptions } from './discard.ts';

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
    .option(
      `${ENCRYPTION_FLAG} <file>`,
      "file with the keys for the next start; '' for the key in the data folder (default: the file of the last start)",
    )
    .addOption(dataDirOption())
    .action(async (options: DiscardOptions) => (await import('./discard.ts')).discard(options));
}
