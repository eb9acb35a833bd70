/**
 * Makes the files of an image available as mounts, through a view in containerd's snapshots service: containerd's CRI plugin can mount
 * images into containers only since containerd 2.1. The view has the label of a root of containerd's garbage collection, so that containerd
 * keeps the layers of the image as long as the view exists.
 */
import { formatTime } from '../../../machinery/time.ts';
import type { Timers } from '../../../platform/platform.ts';
import { runCommandOk } from '../../../platform/processes.ts';
import { ctrFor } from '../../containerd/ctr.ts';
import { listNames } from '../../images/failed-import.ts';
import type { ContainerRuntime, RuntimeMount } from '../../runtime.ts';
import { type Connection, hasCode } from '../connection.ts';
import { imageFolder } from './image-service.ts';

const SNAPSHOTS = 'containerd.services.snapshots.v1.Snapshots';
/** Matches the folder of the image file system, which contains the name of the snapshotter that the CRI plugin uses. */
const SNAPSHOTTER_FOLDER = /\/io\.containerd\.snapshotter\.v1\.([^/]+)$/;
const DEFAULT_SNAPSHOTTER = 'overlayfs';

type ImageMountCalls = Required<Pick<ContainerRuntime, 'imageMounts' | 'releaseImageMounts'>>;

interface MountSource {
  connection: Connection;
  /** The address of containerd's socket in the form unix:///PATH. */
  endpoint: string;
  timers: Timers;
}

export function imageMountCalls(source: MountSource): ImageMountCalls {
  const { connection, timers } = source;
  let known: string | undefined;
  const snapshotter = async (signal: AbortSignal): Promise<string> => {
    known ??= SNAPSHOTTER_FOLDER.exec((await imageFolder(connection, signal)) ?? '')?.[1] ?? DEFAULT_SNAPSHOTTER;
    return known;
  };
  return {
    async imageMounts(imageId, key, signal) {
      const parent = await topLayer(connection, imageId, signal);
      const labels = { 'containerd.io/gc.root': formatTime(timers.now()) };
      const snapshot = { snapshotter: await snapshotter(signal), key };
      const view = async (): Promise<{ mounts: RuntimeMount[] }> =>
        connection
          .unary<{ mounts: RuntimeMount[] }>(`${SNAPSHOTS}/View`, { ...snapshot, parent, labels }, signal)
          .catch((error: unknown) => {
            if (!hasCode(error, 'AlreadyExists')) throw error;
            return connection.unary<{ mounts: RuntimeMount[] }>(`${SNAPSHOTS}/Mounts`, snapshot, signal);
          });
      const { mounts } = await view().catch(async (error: unknown) => {
        if (!hasCode(error, 'NotFound')) throw error;
        await unpack(source, imageId, snapshot.snapshotter, signal);
        return view();
      });
      return mounts.map(({ type, source: from, options }) => ({ type, source: from, options }));
    },
    async releaseImageMounts(key, signal) {
      await connection
        .unary(`${SNAPSHOTS}/Remove`, { snapshotter: await snapshotter(signal), key }, signal)
        .catch((error: unknown) => {
          if (!hasCode(error, 'NotFound')) throw error;
        });
    },
  };
}

/**
 * Resolves with the name of the image's topmost snapshot, which contains the files of all layers of the image. Rejects if the runtime does
 * not report the layers.
 */
async function topLayer(connection: Connection, imageId: string, signal: AbortSignal): Promise<string> {
  const request = { image: { image: imageId }, verbose: true };
  const answer = await connection.unary<{ info: Record<string, string> }>(
    'runtime.v1.ImageService/ImageStatus',
    request,
    signal,
  );
  const { chainID } = JSON.parse(answer.info['info'] ?? '{}') as { chainID?: string };
  if (chainID === undefined) throw new Error(`the runtime does not report the layers of the image ${imageId}`);
  return chainID;
}

/**
 * Unpacks the layers of an image, as CRI does when it creates a container. An archive that is being imported has its names before its
 * layers are unpacked, and `ctr images import --no-unpack` leaves them packed. Several clients may unpack an image at the same time: each
 * skips the layers that another one has committed.
 */
async function unpack(
  { connection, endpoint }: MountSource,
  imageId: string,
  snapshotter: string,
  signal: AbortSignal,
): Promise<void> {
  // CRI assigns the ID of each image as a name.
  const digest = (await listNames(connection, signal)).find(({ name }) => name === imageId)?.target?.digest;
  if (digest === undefined) throw new Error(`the image ${imageId} no longer exists`);
  const { program, args } = ctrFor(endpoint);
  await runCommandOk(program, [...args, 'snapshots', 'unpack', '--snapshotter', snapshotter, digest], { signal });
}
