import type { ImageInfo, RegistryCredential } from '../../runtime.ts';
import { type Connection, callErrorOf, hasCode } from '../connection.ts';
import type { Labels } from '../labels.ts';
import type { Image, ListedContainer } from '../responses.ts';

const SERVICE = 'runtime.v1.ImageService';

const imageInfo = (image: Image): ImageInfo => {
  const user = image.uid === null ? image.username : String(image.uid.value);
  return {
    id: image.id,
    // containerd 1.6 repeats a tag if the image also has it as a short name.
    tags: [...new Set(image.repoTags)],
    digests: image.repoDigests,
    sizeBytes: image.size,
    ...(user === '' ? {} : { user }),
    ...(image.pinned ? { pinned: true } : {}),
  };
};

const spec = (image: string): object => ({ image: { image } });

export async function imageStatus(
  connection: Connection,
  reference: string,
  signal: AbortSignal,
): Promise<ImageInfo | undefined> {
  const { image } = await connection.unary<{ image: Image | null }>(`${SERVICE}/ImageStatus`, spec(reference), signal);
  return image === null ? undefined : imageInfo(image);
}

export async function listImages(connection: Connection, signal: AbortSignal): Promise<ImageInfo[]> {
  const { images } = await connection.unary<{ images: Image[] }>(`${SERVICE}/ListImages`, {}, signal);
  return images.map(imageInfo);
}

export async function pullImage(
  connection: Connection,
  reference: string,
  credential: RegistryCredential | undefined,
  signal: AbortSignal,
): Promise<string> {
  const request = { ...spec(reference), ...(credential === undefined ? {} : { auth: credential }) };
  try {
    const { imageRef } = await connection.unary<{ imageRef: string }>(`${SERVICE}/PullImage`, request, signal, 0);
    return imageRef;
  } catch (error) {
    // If the runtime itself returned the error, the pull has failed, even if the code usually means that the outcome is unknown: runtimes
    // return the same codes for a timeout of the registry.
    const call = callErrorOf(error);
    throw call?.answered === true ? call : error;
  }
}

/**
 * Resolves with the IDs and names of the images of all containers, including containers of other clients of the runtime. Ignores containers
 * that have all labels of `except`, unless `except` is empty.
 */
export async function imagesInUse(connection: Connection, signal: AbortSignal, except: Labels = {}): Promise<string[]> {
  const { containers } = await connection.unary<{ containers: ListedContainer[] }>(
    'runtime.v1.RuntimeService/ListContainers',
    {},
    signal,
  );
  const wanted = Object.entries(except);
  const counts = ({ labels }: ListedContainer): boolean =>
    wanted.length === 0 || wanted.some(([name, value]) => labels[name] !== value);
  return containers
    .filter(counts)
    .flatMap(({ image, imageRef }) => [image?.image ?? '', imageRef])
    .filter((name) => name !== '');
}

/** Resolves with a folder on the first file system that the runtime reports for images; undefined if the runtime reports none. */
export async function imageFolder(connection: Connection, signal: AbortSignal): Promise<string | undefined> {
  const { imageFilesystems } = await connection.unary<{ imageFilesystems: { fsId: { mountpoint: string } | null }[] }>(
    `${SERVICE}/ImageFsInfo`,
    {},
    signal,
  );
  return imageFilesystems[0]?.fsId?.mountpoint;
}

export async function removeImage(connection: Connection, id: string, signal: AbortSignal): Promise<void> {
  await connection.unary(`${SERVICE}/RemoveImage`, spec(id), signal).catch((error) => {
    if (!hasCode(error, 'NotFound')) throw error;
  });
}
