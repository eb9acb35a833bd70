/** Finds the manifests of static Pods that the node cannot use, for `lifepod status`. Reads the folder of manifests like the node. */
import type { Millis } from '../../machinery/time.ts';
import { readManifestFiles } from '../../node/static-pods/folder.ts';
import { readAll } from '../../node/static-pods/manifests.ts';
import { manifestsFolder } from '../../node/static-pods/static-pods.ts';

export interface ManifestTrouble {
  /** Empty if the folder itself cannot be read. */
  file: string;
  message: string;
}

export async function manifestTroubles(dataDir: string, nodeName: string, now: Millis): Promise<ManifestTrouble[]> {
  const folder = manifestsFolder(dataDir);
  try {
    const { wanted, remarks } = await readAll(await readManifestFiles(folder), nodeName, now);
    return [...remarks].flatMap(([file, { reason }]) =>
      wanted.unreadable.has(file) ? [{ file, message: reason }] : [],
    );
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? [] : [{ file: '', message: `the folder cannot be read: ${message}` }];
  }
}
