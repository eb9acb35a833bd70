/** An image is only a reference, from which its ID is derived. */
import type { ContainerRuntime, ImageInfo } from '../runtime.ts';
import type { Calls } from './calls.ts';

export interface ImageOptions {
  /** The images that are present at the start; absent: none. */
  images?: string[];
  /** Absent: every image can be pulled. */
  pullable?: (reference: string) => boolean;
}

type ImageCalls = Pick<ContainerRuntime, 'imageStatus' | 'pullImage' | 'listImages' | 'removeImage'> & {
  addImage(reference: string): void;
};

export function imageCalls({ images: present = [], pullable }: ImageOptions, calls: Calls): ImageCalls {
  const images = new Set(present);
  return {
    imageStatus: (reference, signal) =>
      calls.run('imageStatus', signal, () =>
        [...images].map(imageInfo).find(({ id, tags }) => id === reference || tags.includes(reference)),
      ),
    pullImage: (reference, _credential, signal) =>
      calls.run('pullImage', signal, () => {
        if (pullable?.(reference) === false) throw new Error(`${reference}: not found`);
        images.add(reference);
        return imageInfo(reference).id;
      }),
    listImages: async () => [...images].map(imageInfo),
    removeImage: async (id) => {
      for (const reference of images) if (imageInfo(reference).id === id) images.delete(reference);
    },
    addImage: (reference) => void images.add(reference),
  };
}

const imageInfo = (reference: string): ImageInfo => ({
  id: `sha256:${reference}`,
  tags: [reference],
  digests: [],
  sizeBytes: 1000,
});
