import { readProblem } from '../../machinery/read-problem.ts';
import { readTextIfPresent, UserError } from '../../platform/files.ts';
import { readTextFile } from '../../platform/folders/text-file.ts';
import { type Configuration, parseConfiguration } from './configuration.ts';
import { keyFilePath } from './key-file.ts';

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
  if (configFile !== '') return readGiven(configFile, isUsed);
  const path = keyFilePath(dataDir);
  const text = readTextIfPresent(path);
  return text === undefined ? undefined : parseConfiguration(text, path);
}

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
