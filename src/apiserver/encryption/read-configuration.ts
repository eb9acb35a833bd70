import { readProblem } from '../../machinery/read-problem.ts';
import { UserError } from '../../platform/files.ts';
import { readTextFile } from '../../platform/folders/text-file.ts';
import { type Configuration, parseConfiguration } from './configuration.ts';
import { KeyFile } from './key-file.ts';

/**
 * Resolves to the configuration of the data folder, or of `configFile` if it is not ''; to undefined if the data folder has no key. Rejects
 * with a UserError if a file is invalid or `configFile` is missing. `isUsed`: whether values may be encrypted with the keys in
 * `configFile`; the advice in the error depends on this.
 */
export const readConfiguration = async (
  dataDir: string,
  configFile: string,
  isUsed = true,
): Promise<Configuration | undefined> =>
  configFile === '' ? (await KeyFile.read(dataDir))?.configuration : readGiven(configFile, isUsed);

export async function readGiven(path: string, isUsed = true): Promise<Configuration> {
  let text: string;
  try {
    text = readTextFile(path);
  } catch (error) {
    const advice = isUsed
      ? 'restore the file, because the stored Secrets cannot be read without it'
      : 'give a file with an EncryptionConfiguration';
    throw new UserError(`--encryption-provider-config ${path} ${readProblem(error)}: ${advice}`);
  }
  return parseConfiguration(text, path);
}
