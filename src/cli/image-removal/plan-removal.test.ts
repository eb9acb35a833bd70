import { expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';
import { hintsFor } from '../hints.ts';
import { planRemovals, refuseUsed, removalLines } from './plan-removal.ts';

const SHA = `sha256:${'5'.repeat(64)}`;
const ID = `sha256:${'abcd'.repeat(16)}`;
const image = (tags: string[], digests: string[] = [], id = ID): ImageInfo => ({ id, tags, digests, sizeBytes: 1 });
const hints = hintsFor({}, {}, undefined, false);
const plan = (images: ImageInfo[], ...references: string[]) =>
  planRemovals(images, references, hints).map(({ names, kept }) => ({ names, kept }));

const [one, two] = ['docker.io/library/app:1', 'docker.io/library/app:2'];
const digest = `docker.io/library/app@${SHA}`;

test.each<[string, ImageInfo, string[], { names: string[]; kept: string[] }]>([
  ['a tag of several', image([one, two]), ['app:1'], { names: [one], kept: [two] }],
  ['the only tag', image([one]), ['app:1'], { names: [one], kept: [] }],
  ['all tags', image([one, two]), ['app:1', two], { names: [one, two], kept: [] }],
  ['the same tag twice', image([one, two]), ['app:1', one], { names: [one], kept: [two] }],
  ['an ID', image([one, two]), [ID], { names: [one, two], kept: [] }],
  ['the beginning of an ID', image([one, two]), ['abcdabcd'], { names: [one, two], kept: [] }],
  ['the beginning of an ID with its algorithm', image([one, two]), ['sha256:abcd'], { names: [one, two], kept: [] }],
  ['a tag and the ID', image([one, two]), ['app:1', 'abcd'], { names: [one, two], kept: [] }],
  ['a digest', image([one, two], [digest]), [`app@${SHA}`], { names: [one, two], kept: [] }],
  ['the only tag of a pulled image', image([one], [digest]), ['app:1'], { names: [one], kept: [] }],
  ['one tag of a pulled image', image([one, two], [digest]), ['app:1'], { names: [one], kept: [two, digest] }],
  [
    'the last tag of a repository',
    image([one, 'b.io/app:1'], [digest, `b.io/app@${SHA}`]),
    ['app:1'],
    { names: [one, digest], kept: ['b.io/app:1', `b.io/app@${SHA}`] },
  ],
  ['the ID of an image without names', image([]), ['abcd'], { names: [ID], kept: [] }],
])('image rm removes what the command names: %s', (_, stored, references, expected) => {
  expect(plan([stored, image(['other.io/x:1'], [], SHA)], ...references)).toEqual([expected]);
});

test('the lines name each removed name, and the names that the image keeps', () => {
  const [removal] = planRemovals([image([one, two])], ['app:1'], hints);
  expect(removal && removalLines(removal)).toEqual([`removed ${one}; the image keeps ${two}`]);
  const [last] = planRemovals([image([one, two])], [ID], hints);
  expect(last && removalLines(last)).toEqual([`removed ${one}`, `removed ${two}`]);
});

const user = { metadata: { name: 'p', namespace: 'default' }, spec: { containers: [{ name: 'a', image: 'app:2' }] } };
/** A Pod whose container runs from the image, although the name in the Pod's spec now belongs to another image. */
const earlier = {
  ...user,
  spec: { containers: [{ name: 'a', image: 'app:3' }] },
  status: { containerStatuses: [{ name: 'a', imageID: ID }] },
};
const idle = { pods: [], foreign: [], sandboxImages: [] };
test.each<[string, Parameters<typeof refuseUsed>[1], string[], RegExp | undefined]>([
  ['the tag that a Pod names', { ...idle, pods: [user as Pod] }, ['app:2'], /app:2 is used by the Pod default\/p/],
  ['another tag of that image', { ...idle, pods: [user as Pod] }, ['app:1'], undefined],
  ['the whole image', { ...idle, pods: [user as Pod] }, [ID], /app:2 is used by the Pod default\/p/],
  [
    'the image of a running container',
    { ...idle, pods: [earlier as Pod] },
    [ID],
    /app:1 is used by the Pod default\/p/,
  ],
  ['one of two tags of that', { ...idle, pods: [earlier as Pod] }, ['app:1'], undefined],
  ['a tag of an image of other programs', { ...idle, foreign: [ID] }, ['app:1'], undefined],
  ['an image of other programs', { ...idle, foreign: [ID] }, [ID], /used by containers of other programs/],
  [
    'the tag of the sandbox image',
    { ...idle, sandboxImages: [one] },
    ['app:1'],
    /app:1 cannot be removed: the sandbox of every Pod uses it/,
  ],
  ['another tag of the sandbox image', { ...idle, sandboxImages: [one] }, ['app:2'], undefined],
])('image rm refuses what is in use, and allows other tags of the image: %s', (_, use, references, refusal) => {
  const act = () => {
    for (const removal of planRemovals([image([one, two])], references, hints)) refuseUsed(removal, use);
  };
  if (refusal === undefined) act();
  else expect(act).toThrow(refusal);
});

test('a tag of a pinned image can be removed as long as the image keeps another tag', () => {
  const pinned: ImageInfo = { ...image([one, two]), pinned: true };
  const act = (reference: string) => () => {
    for (const removal of planRemovals([pinned], [reference], hints)) refuseUsed(removal, idle);
  };
  act('app:1')();
  expect(act(ID)).toThrow(/is pinned/);
});
