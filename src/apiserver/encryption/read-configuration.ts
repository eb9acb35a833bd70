import { readProblem } from '../../machinery/read-problem.ts';
import { readTextIfPresent, UserError } from '../../platform/files.ts';
import { readTextFile } from '../../platform/folders/text-file.ts';
import { rootCommand, shellQuoted } from '../../platform/programs/typed-program.ts';
import { type Configuration, parseConfiguration } from './configuration.ts';
import { keyFilePath } from './key-file.ts';

/** `file`: the file with the keys; '' for the key file in the data folder. */
export const keyOption = (file: string): string => `--encryption-provider-config ${shellQuoted(file)}`;

/** Returns the command that deletes the values that a start with the keys in `configFile` cannot read. */
export const discardCommand = (dataDir: string, configFile: string, formerFile?: string): string =>
  rootCommand(configFile === formerFile ? 'secrets discard' : `secrets discard ${keyOption(configFile)}`, dataDir);

/**
 * Resolves to the configuration of the data folder, or of `configFile` if it is not ''; to undefined if the data folder has no key. Rejects
 * with a UserError if a file is invalid or `configFile` is missing. Changes no file, and accepts a key file of the data folder that a user
 * has changed, unlike KeyFile.read(). `isUsed`: whether values may be encrypted with the keys in `configFile`; the advice in the error
 * depends on this.
 */
export async function readConfiguration(
  dataDir: string,
  configFile: string,
  isUsed = true,
): Promise<Configuration | undefined> {
  if (configFile !== '') return readGiven(dataDir, configFile, isUsed);
  const path = keyFilePath(dataDir);
  const text = readTextIfPresent(path);
  return text === undefined ? undefined : parseConfiguration(text, path);
}

async function readGiven(dataDir: string, path: string, isUsed: boolean): Promise<Configuration> {
  let text: string;
  try {
    text = readTextFile(path);
  } catch (error) {
    const advice = isUsed
      ? `restore the file, because the stored Secrets cannot be read without it. If it is lost, '${discardCommand(dataDir, '')}' lists the values that are lost with it`
      : 'give a file with an EncryptionConfiguration';
    throw new UserError(`--encryption-provider-config ${path} ${readProblem(error)}: ${advice}`);
  }
  return parseConfiguration(text, path);
}
