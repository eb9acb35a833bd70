/** CRI's ImageService. */
import type { ImageInfo, SandboxConfig } from '../runtime.ts';
import { type Connection, hasCode } from './connection.ts';
import type { Labels } from './labels.ts';
import { sandboxMessage } from './requests.ts';
import type { Image } from './responses.ts';

const SERVICE = 'runtime.v1.ImageService';

const imageInfo = (image: Image): ImageInfo => {
  const user = image.uid === null ? image.username : String(image.uid.value);
  return {
    id: image.id,
    tags: image.repoTags,
    digests: image.repoDigests,
    sizeBytes: image.size,
    ...(user === '' ? {} : { user }),
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
  sandbox: SandboxConfig | undefined,
  scope: Labels,
  signal: AbortSignal,
): Promise<string> {
  const request = {
    ...spec(reference),
    ...(sandbox === undefined ? {} : { sandboxConfig: sandboxMessage(sandbox, scope) }),
  };
  const { imageRef } = await connection.unary<{ imageRef: string }>(`${SERVICE}/PullImage`, request, signal, 0);
  return imageRef;
}

export async function removeImage(connection: Connection, id: string, signal: AbortSignal): Promise<void> {
  await connection.unary(`${SERVICE}/RemoveImage`, spec(id), signal).catch((error) => {
    if (!hasCode(error, 'NotFound')) throw error;
  });
}
