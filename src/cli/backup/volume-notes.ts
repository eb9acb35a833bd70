/** Says after a restore where the files of the PersistentVolumes of the class local-path are, because a backup does not contain them. */
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { PersistentVolume } from '../../api/generated/types.ts';
import { PERSISTENT_VOLUMES } from '../../api/resources.ts';
import { resourcePrefix } from '../../apiserver/cache/keys.ts';
import { decryptJson, UnreadableValueError } from '../../apiserver/encryption/encrypted-store.ts';
import { readConfiguration } from '../../apiserver/encryption/read-configuration.ts';
import { PLAIN } from '../../apiserver/encryption/transformer.ts';
import { LOCAL_PATH_PROVISIONER, PROVISIONED_BY } from '../../controllers/persistent-volumes/local-path.ts';
import { UserError } from '../../platform/files.ts';
import { openLmdbStore } from '../../store/lmdb/lmdb-store.ts';

const MAX_NAMED = 5;

/**
 * Resolves with the paths of the volumes in the store of the folder, which no engine uses. `configFile`: the file with the keys that
 * decrypt objects; '' for the key file in the folder. Omits volumes that cannot be read.
 */
export async function volumePaths(folder: string, configFile: string): Promise<string[]> {
  // On another machine, the administrator may not have copied the file with the keys yet.
  const configuration = await readConfiguration(folder, configFile).catch((error: unknown) => {
    if (error instanceof UserError) return undefined;
    throw error;
  });
  const store = await openLmdbStore({ directory: join(folder, 'store') });
  try {
    const { group, resource } = PERSISTENT_VOLUMES;
    const { items } = await store.range({ prefix: resourcePrefix(group, resource) });
    return items.flatMap(({ key, value }) => {
      try {
        const volume = decryptJson(configuration?.transformerFor(key) ?? PLAIN, key, value) as PersistentVolume;
        return pathOf(volume) ?? [];
      } catch (error) {
        if (error instanceof UnreadableValueError) return [];
        throw error;
      }
    });
  } finally {
    await store.close();
  }
}

const pathOf = ({ metadata, spec }: PersistentVolume): string | undefined =>
  metadata.annotations?.[PROVISIONED_BY] === LOCAL_PATH_PROVISIONER ? spec?.local?.path : undefined;

/** Returns sentences about volumes whose folders are missing, or are outside of this data folder. */
export function volumeNotes(paths: readonly string[], dataDir: string): string[] {
  const missing = paths.filter((path) => !existsSync(path));
  const own = join(resolve(dataDir), 'volumes');
  const elsewhere = Map.groupBy(
    paths.filter((path) => !missing.includes(path) && dirname(path) !== own),
    (path) => dirname(path),
  );
  const notes = [...elsewhere].map(([folder, { length }]) =>
    length === 1
      ? `1 PersistentVolume keeps its files in ${folder}, outside of this data folder: its Pods write there, and its folder is not deleted with its claim`
      : `${length} PersistentVolumes keep their files in ${folder}, outside of this data folder: their Pods write there, and their folders are not deleted with their claims`,
  );
  if (missing.length === 0) return notes;
  const more = missing.length > MAX_NAMED ? ` and ${missing.length - MAX_NAMED} more` : '';
  const which =
    missing.length === 1
      ? 'the folder of 1 PersistentVolume is'
      : `the folders of ${missing.length} PersistentVolumes are`;
  const remedy = missing.length === 1 ? 'it before its Pods' : 'them before their Pods';
  return [
    ...notes,
    `${which} missing, because a backup does not contain the files of volumes: copy or create ${remedy} can start: ${missing.slice(0, MAX_NAMED).join(', ')}${more}`,
  ];
}
