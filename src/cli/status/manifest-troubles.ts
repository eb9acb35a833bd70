/** Finds the manifests of static Pods that the node cannot use as they are. Reads the folder of manifests like the node. */
import { join } from 'node:path';
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { Millis } from '../../machinery/time.ts';
import { readManifestFiles } from '../../node/static-pods/folder.ts';
import { readAll } from '../../node/static-pods/manifests.ts';
import { manifestsFolder } from '../../node/static-pods/static-pods.ts';
import type { Explanation } from '../why/subject.ts';

export interface ManifestTrouble {
  /** Empty if the folder itself cannot be read. */
  file: string;
  /** The full name (namespace/name) of the Pod that the node runs without a part of the manifest; undefined if it runs none. */
  pod?: string;
  message: string;
}

export async function manifestTroubles(dataDir: string, nodeName: string, now: Millis): Promise<ManifestTrouble[]> {
  const folder = manifestsFolder(dataDir);
  try {
    const { wanted, remarks } = await readFolder(folder, nodeName, now);
    const podOf = new Map([...wanted.pods].map(([pod, { file }]) => [file, pod]));
    const empty = [...wanted.unreadable].filter((file) => !remarks.has(file));
    return [
      ...[...remarks].flatMap(([file, { reason, ignored }]) => {
        if (wanted.unreadable.has(file)) return [{ file, message: reason }];
        return ignored === undefined ? [] : [{ file, pod: podOf.get(file) ?? '', message: ignored }];
      }),
      ...empty.map((file) => ({ file, message: 'the file is empty' })),
    ];
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? [] : [{ file: '', message: `the folder cannot be read: ${message}` }];
  }
}

const readFolder = async (folder: string, nodeName: string, now: Millis): ReturnType<typeof readAll> =>
  readAll(await readManifestFiles(folder), nodeName, now);

export interface PodManifest {
  path: string;
  /** The unknown fields, which the node ignores; undefined if there are none. */
  ignored: string | undefined;
}

/** Resolves with the manifest of the Pod if it is a static one of the engine in `dataDir` and the node can use its manifest. */
export async function manifestOf(pod: Pod, dataDir: string, now: Millis): Promise<PodManifest | undefined> {
  if (!isMirrorPod(pod)) return undefined;
  const { name, namespace } = pod.metadata;
  const folder = manifestsFolder(dataDir);
  try {
    const { wanted, remarks } = await readFolder(folder, pod.spec?.nodeName ?? '', now);
    const found = wanted.pods.get(`${namespace}/${name}`);
    return found && { path: join(folder, found.file), ignored: remarks.get(found.file)?.ignored };
  } catch {
    // The path only makes the advice more precise.
    return undefined;
  }
}

/** Returns the explanation with what the node ignores in the manifest of the Pod. */
export const withManifest = (explanation: Explanation, manifest: PodManifest | undefined): Explanation =>
  manifest?.ignored === undefined
    ? explanation
    : {
        ...explanation,
        evidence: [
          ...explanation.evidence,
          `its node ignores a part of its manifest ${manifest.path}: ${manifest.ignored}`,
        ],
        actions: [{ description: `correct ${manifest.path}` }, ...explanation.actions],
      };
