/**
 * Composes the output of `lifepod image list`. Pure.
 *
 * Invariant: the table has a row for each name with which a Pod can use an image. PODS counts the Pods that use this name, and the word
 * `shared` follows the size if other names keep the content on the disk.
 */
import type { Pod } from '../../api/generated/types.ts';
import { SANDBOX_IMAGE } from '../../engine/engine-runtime.ts';
import { binarySize } from '../../machinery/binary-size.ts';
import { usesOf } from '../../node/images/images-in-use.ts';
import { repositoryOf, storedName } from '../../runtime/images/references.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';
import { tabColumns } from '../describe/tab-columns.ts';
import { namesOf, shortId } from '../image-removal/find-image.ts';

/** Returns the names of the image in the table: its tags and the digests of repositories without a tag; if it has neither, its ID. */
function rowNames(image: ImageInfo): string[] {
  const tagged = new Set(image.tags.map(repositoryOf));
  const digests = image.digests.filter((digest) => !tagged.has(repositoryOf(digest)));
  return image.tags.length > 0 ? [...image.tags, ...digests] : namesOf(image);
}

export function imageTable(images: readonly ImageInfo[], pods: readonly Pod[]): string[] {
  const rows = images.flatMap((image) => {
    const names = rowNames(image);
    const size = `${binarySize(image.sizeBytes)}${names.length > 1 ? ', shared' : ''}`;
    return names.map((name) => {
      const used = name === SANDBOX_IMAGE ? 'all' : String(namersOf(image, pods, name).length);
      return [name, shortId(image), size, used].join('\t');
    });
  });
  return tabColumns(['IMAGE\tID\tSIZE\tPODS', ...rows.sort()]);
}

/**
 * Returns the Pods that use the image by this name. A reference by a digest that has no row counts in all rows of its repository, and a
 * reference by ID in all rows of the image.
 */
function namersOf(image: ImageInfo, pods: readonly Pod[], name: string): Pod[] {
  const names = rowNames(image);
  const isIn = (reference: string): boolean => {
    const stored = storedName(reference);
    if (names.includes(stored)) return stored === name;
    return !stored.includes('@') || repositoryOf(stored) === repositoryOf(name);
  };
  return usersOf(image, pods, isIn);
}

const usersOf = (image: ImageInfo, pods: readonly Pod[], counts = (_reference: string): boolean => true): Pod[] =>
  pods.filter((pod) => usesOf(pod, image).some(counts));

/** Returns `{"images": […]}`, sorted by name. All Pods use the sandbox image. */
export function imagesAsJson(images: readonly ImageInfo[], pods: readonly Pod[]): string {
  const sorted = [...images].sort((a, b) => ((namesOf(a)[0] ?? '') < (namesOf(b)[0] ?? '') ? -1 : 1));
  const entries = sorted.map((image) => {
    const isSandboxImage = image.tags.includes(SANDBOX_IMAGE);
    return {
      id: image.id,
      tags: image.tags,
      digests: image.digests,
      sizeBytes: image.sizeBytes,
      isSandboxImage,
      pods: (isSandboxImage ? pods : usersOf(image, pods)).map(({ metadata: { namespace, name } }) => ({
        namespace,
        name,
      })),
    };
  });
  return JSON.stringify({ images: entries }, undefined, 2);
}
