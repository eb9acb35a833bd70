import { join } from 'node:path';
import type { Volume } from '../../api/generated/types.ts';
import { keepPayload, type Payload, writePayload } from './atomic-writer.ts';
import { type ClaimSource, setUpClaim } from './claim.ts';
import { makeFolder, setUpEmptyDir } from './empty-dir.ts';
import { setUpHostPath } from './host-path.ts';
import { IMAGE_FOLDER, setUpImage, type VolumeImages } from './image.ts';
import type { PodMemory } from './pod-memory.ts';
import {
  collectConfigMap,
  collectDownward,
  collectProjected,
  collectSecret,
  type PayloadSource,
} from './projected-files.ts';
import { isInMemory } from './references.ts';
import { VolumeError } from './volume-error.ts';

const EMPTY_DIR_FOLDER = 'kubernetes.io~empty-dir';
/** The folder of the emptyDir volumes, relative to the Pod's folder. Containers can write to these volumes. */
export const EMPTY_DIRS = join('volumes', EMPTY_DIR_FOLDER);

/** Upstream's plugin names. A claim has the name of the plugin for local volumes, even if its PersistentVolume is a hostPath. */
const folderNames: Readonly<Record<string, string>> = {
  emptyDir: EMPTY_DIR_FOLDER,
  configMap: 'kubernetes.io~configmap',
  secret: 'kubernetes.io~secret',
  downwardAPI: 'kubernetes.io~downward-api',
  projected: 'kubernetes.io~projected',
  hostPath: 'kubernetes.io~host-path',
  persistentVolumeClaim: 'kubernetes.io~local-volume',
  ephemeral: 'kubernetes.io~local-volume',
  image: IMAGE_FOLDER,
};

/** A volume without a source is an emptyDir, the default of the API. */
const volumeKind = (volume: Volume): string =>
  Object.entries(volume).find(([key, value]) => key !== 'name' && value !== undefined && value !== null)?.[0] ??
  'emptyDir';

/** The Pod's folder on disk, and its folder in the tmpfs that pod-memory.ts manages. */
export interface PodDirectories {
  disk: string;
  memory: string;
}

export function folderOf({ disk, memory }: PodDirectories, volume: Volume): string {
  const kind = volumeKind(volume);
  const folder = folderNames[kind];
  if (folder === undefined) throw new VolumeError(volume.name, `volume kind ${JSON.stringify(kind)} is not supported`);
  return join(isInMemory(volume) ? memory : disk, 'volumes', folder, volume.name);
}

export interface VolumePlace extends Pick<ClaimSource, 'warn' | 'alone'> {
  volume: Volume;
  folder: string;
  images: VolumeImages | undefined;
  memory: PodMemory;
}

/** Resolves to the time at which to replace the volume's first token, in milliseconds since the epoch; undefined if it has no token. */
export async function setUpVolume(
  source: PayloadSource,
  { volume, folder, images, memory, ...claims }: VolumePlace,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { client, pod, facts } = source;
  const write = async (payload: Payload): Promise<void> => {
    source.room.take(volume, sizesOf(payload));
    if (isInMemory(volume)) await memory.ready();
    await makeFolder(folder);
    await writePayload(folder, payload, source.now(), pod.spec?.securityContext?.fsGroup);
  };
  if (volume.hostPath !== undefined) {
    await setUpHostPath(volume.hostPath);
  } else if (volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined) {
    await setUpClaim({ client, pod, nodeName: facts.nodeName, ...claims }, volume, folder, signal);
  } else if (volume.image !== undefined) {
    if (images === undefined) throw new Error('image volumes are not supported');
    await setUpImage(images, pod, volume, folder, signal);
  } else if (volume.projected !== undefined) {
    const { files, refreshAt } = await collectProjected(
      source,
      volume.projected.sources ?? [],
      volume.projected.defaultMode,
    );
    await write(files);
    return refreshAt;
  } else if (volume.secret !== undefined) {
    const files = await collectSecret(source, { ...volume.secret, name: volume.secret.secretName ?? '' });
    await write(files);
  } else if (volume.configMap !== undefined) {
    const files = await collectConfigMap(source, { ...volume.configMap, name: volume.configMap.name ?? '' });
    await write(files);
  } else if (volume.downwardAPI !== undefined) {
    await write(collectDownward(source, volume.downwardAPI.items ?? [], volume.downwardAPI.defaultMode));
  } else {
    await setUpEmptyDir(folder, volume.emptyDir ?? {}, { pod, allocatable: facts.allocatable }, signal);
  }
  return undefined;
}

const sizesOf = (payload: Payload): number[] => [...payload.values()].map(({ data }) => data.length);

/**
 * Keeps the files of a volume whose update has failed. In a projected volume, the files of downwardAPI sources are still updated if the
 * files then fit the size limit. Resolves to whether the volume was ever written.
 */
export async function keepVolume(source: PayloadSource, volume: Volume, folder: string): Promise<boolean> {
  const kept = await keepPayload(folder);
  if (kept === undefined) return false;
  const { room } = source;
  room.keep(
    volume,
    [...kept.values()].map(({ size }) => size),
  );
  const items = (volume.projected?.sources ?? []).flatMap(({ downwardAPI }) => downwardAPI?.items ?? []);
  if (items.length === 0) return true;
  const shown = collectDownward(source, items, volume.projected?.defaultMode);
  const others = [...kept].filter(([path]) => !shown.has(path));
  const sizes = [...others.map(([, { size }]) => size), ...sizesOf(shown)];
  if (!room.fits(volume, sizes)) return true;
  room.keep(volume, sizes);
  const files = new Map(shown);
  for (const [path, { mode, uid, read }] of others) {
    files.set(path, { data: await read(), mode, uid });
  }
  await writePayload(folder, files, source.now(), source.pod.spec?.securityContext?.fsGroup);
  return true;
}
