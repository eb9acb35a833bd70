import type { Command } from 'commander';
import { dataDirOption } from '../../engine/settings.ts';

export function addBackupCommands(program: Command): void {
  program
    .command('backup')
    .description(
      'write the store, keys, settings and static Pods of a data folder to a file, also while the engine runs',
    )
    .summary('write the store, keys, settings and static Pods to a file')
    .argument('<file>', 'the file to create, such as lifepod.tar.gz')
    .option('--force', 'replace an older backup with this name, once the new one is complete')
    .addOption(dataDirOption())
    .action(async (file: string, options: { dataDir: string; force?: boolean }) =>
      (await import('./backup.ts')).backup(file, options),
    );
  program
    .command('restore')
    .description('restore a backup to the data folder of a stopped engine')
    .argument('<file>', "a file that 'lifepod backup' has written")
    .option('--force', 'replace the data of a folder that is not empty; its former data is kept in a folder')
    .addOption(dataDirOption())
    .action(async (file: string, options: { dataDir: string; force?: boolean }) =>
      (await import('./restore.ts')).restore(file, options),
    );
}
