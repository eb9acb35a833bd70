/**
 * Finds the values of the store that cannot be read, and explains why. Only a value for which no file has the key is lost: a value that is
 * not encrypted, or whose key is in another file, can be read again after a change of the configuration, and must never be deleted.
 */
import { existsSync } from 'node:fs';
import { UserError } from '../../platform/files.ts';
import { workInTurns } from '../../platform/work-in-turns.ts';
import type { Store } from '../../store/store.ts';
import { REGISTRY_PREFIX } from '../cache/keys.ts';
import type { Configuration } from './configuration.ts';
import { decryptJson, UnreadableValueError } from './encrypted-store.ts';
import { keyFilePath } from './key-file.ts';
import { discardCommand, keyOption, readConfiguration } from './read-configuration.ts';
import { PLAIN, type Transformer } from './transformer.ts';

const PAGE = 500;

export interface KeySource {
  dataDir: string;
  /** The file with the keys; '' for the key file in the data folder. */
  configFile: string;
  /** The `configFile` of the last start. */
  formerFile?: string | undefined;
}

/** `plain`: the value is not encrypted. */
export type Curable = 'plain' | { /** A file that has the key, in the form of `configFile`. */ readableWith: string };
/** `lost`: no known file has the key, or the value is damaged. A UserError: a known file, which may have the key, cannot be used. */
export type Cause = Curable | 'lost' | UserError;

/** `configuration`: undefined if there are no encryption keys. */
export async function* unreadableValues(
  store: Store,
  configuration: Configuration | undefined,
): AsyncGenerator<UnreadableValueError> {
  const betweenSteps = workInTurns();
  let after: string | undefined;
  for (let remaining = 1; remaining > 0; ) {
    const page = await store.range({ prefix: REGISTRY_PREFIX, after, limit: PAGE });
    for (const { key, value } of page.items) {
      try {
        decryptJson(configuration?.transformerFor(key) ?? PLAIN, key, value);
      } catch (error) {
        if (!(error instanceof UnreadableValueError)) throw error;
        yield error;
      }
      await betweenSteps();
    }
    ({ remaining } = page);
    after = page.items.at(-1)?.key;
  }
}

/** Resolves to a function that returns the cause of an error. */
export async function createDiagnosis({
  dataDir,
  configFile,
  formerFile = '',
}: KeySource): Promise<(error: UnreadableValueError) => Cause> {
  const files: { file: string; transformers: readonly Transformer[] }[] = [];
  let unusable: UserError | undefined;
  for (const file of new Set([formerFile, '', configFile])) {
    if (!existsSync(pathOf(dataDir, file))) continue;
    try {
      // A key that a file has only for other resources is not lost.
      const { transformers = [] } = (await readConfiguration(dataDir, file)) ?? {};
      files.push({ file, transformers });
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      unusable = error;
    }
  }
  return ({ key, stored }) => {
    if (isReadable(PLAIN, key, stored)) return 'plain';
    const found = files.find(({ transformers }) => transformers.some((each) => isReadable(each, key, stored)));
    if (found !== undefined) return { readableWith: found.file };
    return unusable ?? 'lost';
  };
}

function isReadable(transformer: Transformer, key: string, stored: Uint8Array): boolean {
  try {
    decryptJson(transformer, key, stored);
    return true;
  } catch {
    return false;
  }
}

/** Resolves to the error that says what the user can do about a value that prevents the start. */
export async function unreadable(source: KeySource, error: UnreadableValueError): Promise<UserError> {
  const cause = (await createDiagnosis(source))(error);
  const { dataDir, configFile, formerFile = '' } = source;
  const value = `the value of ${error.key} in the store`;
  const problem = `${value} cannot be read (${error.problem}): its key is not in ${pathOf(dataDir, configFile)}`;
  if (cause instanceof UserError)
    return new UserError(`${problem}, and another file that may have it cannot be used: ${cause.message}`);
  if (cause !== 'lost') return new UserError(`${value} ${problemOf(cause, source)}: ${remedyFor(cause, source)}`);
  return new UserError(
    `${problem}, or the value is damaged. ` +
      `Restore this file or the data folder from a backup; '${discardCommand(dataDir, configFile, formerFile)}' deletes the values that cannot be read`,
  );
}

const pathOf = (dataDir: string, file: string): string => file || keyFilePath(dataDir);

function problemOf(cause: Curable, { dataDir, configFile }: KeySource): string {
  const path = pathOf(dataDir, configFile);
  if (cause === 'plain') return `is not encrypted, but ${path} has no provider identity for it`;
  if (cause.readableWith === configFile) return `is encrypted with a key that ${path} has only for other resources`;
  return `is encrypted with a key that is not in ${path} for this resource, but in ${pathOf(dataDir, cause.readableWith)}`;
}

/** lifepod accepts no change of the key file in the data folder, so the advice differs for this file. */
export function remedyFor(cause: Curable, { dataDir, configFile }: KeySource): string {
  if (cause === 'plain') {
    return configFile === ''
      ? `add identity as the last provider to a copy of ${keyFilePath(dataDir)}, and start lifepod with ${keyOption('COPY')}, which encrypts such values`
      : `add identity to ${configFile} as the last provider of the resource of such values, so that lifepod reads and encrypts them`;
  }
  if (cause.readableWith === configFile) {
    return configFile === ''
      ? `add the resource of such values to a copy of ${keyFilePath(dataDir)}, and start lifepod with ${keyOption('COPY')}`
      : `add the resource of such values to the resources of this key in ${configFile}`;
  }
  const back = `start lifepod with ${keyOption(cause.readableWith)}`;
  return configFile === '' ? back : `add that key to ${configFile} after the new one, or ${back}`;
}
