import { expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { SANDBOX_IMAGE } from '../../engine/engine-runtime.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';
import { imagesAsJson, imageTable } from './image-table.ts';

const [one, two] = ['docker.io/library/app:1', 'docker.io/library/app:2'];
const ID = `sha256:${'abcd'.repeat(16)}`;
const DIGEST = `docker.io/library/app@sha256:${'5'.repeat(64)}`;
const stored = (tags: string[], digests: string[] = [], id = ID): ImageInfo => ({
  id,
  tags,
  digests,
  sizeBytes: 2 * 2 ** 20,
});
const podWith = (image: string, name = 'p'): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { containers: [{ name: 'a', image }] },
});
const rowsOf = (images: ImageInfo[], pods: Pod[]) =>
  imageTable(images, pods)
    .slice(1)
    .map((line) => line.split(/ {2,}/));

test('the table has a row for each tag, with the Pods that name it, and says that the tags share the content', () => {
  expect(rowsOf([stored([two, one], [DIGEST])], [podWith('app:2'), podWith('app:2')])).toEqual([
    [one, 'abcdabcdabcd', '2.0 MiB, shared', '0'],
    [two, 'abcdabcdabcd', '2.0 MiB, shared', '2'],
  ]);
});

test('a Pod that names the image by its digest or ID counts in the row of each tag', () => {
  for (const reference of [DIGEST, ID])
    expect(rowsOf([stored([one, two], [DIGEST])], [podWith(reference)]).map((row) => row[3])).toEqual(['1', '1']);
});

test('a digest of a repository without a tag has a row of its own', () => {
  const other = `example.com/app@sha256:${'5'.repeat(64)}`;
  expect(rowsOf([stored([one], [DIGEST, other])], [podWith(other), podWith(DIGEST)])).toEqual([
    [one, 'abcdabcdabcd', '2.0 MiB, shared', '1'],
    [other, 'abcdabcdabcd', '2.0 MiB, shared', '1'],
  ]);
});

test('an image without tags is listed by its digest, and one without names by its ID', () => {
  const images = [stored([], [DIGEST]), stored([], [], `sha256:${'1'.repeat(64)}`)];
  expect(rowsOf(images, [podWith(DIGEST)])).toEqual([
    [DIGEST, 'abcdabcdabcd', '2.0 MiB', '1'],
    [`sha256:${'1'.repeat(64)}`, '111111111111', '2.0 MiB', '0'],
  ]);
});

test('all Pods use the sandbox image', () => {
  expect(rowsOf([stored([SANDBOX_IMAGE])], [podWith('app:1')])[0]?.[3]).toBe('all');
});

test('the JSON has an entry for each image, with all Pods that use it', () => {
  const { images } = JSON.parse(imagesAsJson([stored([one, two])], [podWith('app:1', 'x'), podWith('app:2', 'y')]));
  expect(images).toEqual([
    {
      id: ID,
      tags: [one, two],
      digests: [],
      sizeBytes: 2 * 2 ** 20,
      isSandboxImage: false,
      pods: [
        { namespace: 'default', name: 'x' },
        { namespace: 'default', name: 'y' },
      ],
    },
  ]);
});
