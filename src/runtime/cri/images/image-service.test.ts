import { expect, test } from 'vitest';
import { OutcomeUnknownError } from '../../runtime.ts';
import { type Connection, RuntimeCallError } from '../connection.ts';
import { imageFolder, imageStatus, imagesInUse, listImages, pullImage, removeImage } from './image-service.ts';

const { signal } = new AbortController();
const image = {
  id: 'sha256:1',
  repoTags: ['a:1'],
  repoDigests: ['a@sha256:2'],
  size: 5,
  uid: null,
  username: '',
  pinned: false,
};

/** `answer`: the result of the calls; an error rejects them. */
function runtime(answer: object) {
  const calls: unknown[][] = [];
  const unary = async (method: string, request: object, _signal: AbortSignal, ...rest: unknown[]) => {
    calls.push([method.replace('runtime.v1.', ''), request, ...rest]);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { calls, connection: { unary } as unknown as Connection };
}

test.each([
  ['has no user', {}, {}],
  ['has the number of its user', { uid: { value: 0 } }, { user: '0' }],
  ['has the number of its user rather than the name', { uid: { value: 7 }, username: 'web' }, { user: '7' }],
  ['has the name of its user', { username: 'web' }, { user: 'web' }],
  ['is pinned', { pinned: true }, { pinned: true }],
])('an image that %s is reported as such', async (_, fields, expected) => {
  const info = { id: 'sha256:1', tags: ['a:1'], digests: ['a@sha256:2'], sizeBytes: 5, ...expected };
  const { calls, connection } = runtime({ image: { ...image, ...fields } });
  expect(await imageStatus(connection, 'a:1', signal)).toEqual(info);
  expect(calls).toEqual([['ImageService/ImageStatus', { image: { image: 'a:1' } }]]);
  expect(await listImages(runtime({ images: [{ ...image, ...fields }] }).connection, signal)).toEqual([info]);
});

test('a tag that the runtime repeats is reported once', async () => {
  const repeated = { ...image, repoTags: ['a:1', 'b:1', 'a:1'] };
  expect((await imageStatus(runtime({ image: repeated }).connection, 'a:1', signal))?.tags).toEqual(['a:1', 'b:1']);
});

test('the status of an image that is not present is undefined', async () => {
  expect(await imageStatus(runtime({ image: null }).connection, 'a:1', signal)).toBeUndefined();
});

test('a pull has no time limit, and sends credentials only if there are any', async () => {
  const { calls, connection } = runtime({ imageRef: 'sha256:1' });
  expect(await pullImage(connection, 'a:1', undefined, signal)).toBe('sha256:1');
  await pullImage(connection, 'a:1', { username: 'me', password: 'secret' }, signal);
  expect(calls).toEqual([
    ['ImageService/PullImage', { image: { image: 'a:1' } }, 0],
    ['ImageService/PullImage', { image: { image: 'a:1' }, auth: { username: 'me', password: 'secret' } }, 0],
  ]);
});

const failed = (answered: boolean) => {
  const cause = new RuntimeCallError('Unavailable', 'no', answered);
  return { cause, unknown: new OutcomeUnknownError(cause.message, { cause }) };
};

test('a pull that the runtime itself reports as failed has a known outcome, whatever the code', async () => {
  const { cause, unknown } = failed(true);
  await expect(pullImage(runtime(unknown).connection, 'a', undefined, signal)).rejects.toBe(cause);
  await expect(pullImage(runtime(cause).connection, 'a', undefined, signal)).rejects.toBe(cause);
});

test('a pull whose connection was lost has an unknown outcome', async () => {
  const { unknown } = failed(false);
  await expect(pullImage(runtime(unknown).connection, 'a', undefined, signal)).rejects.toBe(unknown);
});

test('a pull that was aborted rejects with the reason of the abort', async () => {
  const reason = new Error('aborted');
  await expect(pullImage(runtime(reason).connection, 'a', undefined, signal)).rejects.toBe(reason);
});

const containers = [
  { image: { image: 'a:1' }, imageRef: 'sha256:1', labels: { scope: 'mine', kind: 'demo' } },
  { image: { image: 'b:1' }, imageRef: 'sha256:2', labels: { scope: 'mine' } },
  { image: null, imageRef: 'sha256:3', labels: {} },
  { image: { image: 'd:1' }, imageRef: '', labels: { kind: 'demo' } },
];

test.each([
  ['no labels', undefined, ['a:1', 'sha256:1', 'b:1', 'sha256:2', 'sha256:3', 'd:1']],
  ['an empty set of labels', {}, ['a:1', 'sha256:1', 'b:1', 'sha256:2', 'sha256:3', 'd:1']],
  ['one label', { scope: 'mine' }, ['sha256:3', 'd:1']],
  [
    'two labels, both of which a container must have',
    { scope: 'mine', kind: 'demo' },
    ['b:1', 'sha256:2', 'sha256:3', 'd:1'],
  ],
  ['a label with another value', { scope: 'other' }, ['a:1', 'sha256:1', 'b:1', 'sha256:2', 'sha256:3', 'd:1']],
])(
  'the images in use are the IDs and names of the images of all containers except those with %s',
  async (_, except, used) => {
    expect(await imagesInUse(runtime({ containers }).connection, signal, except)).toEqual(used);
  },
);

test.each([
  ['the first of two file systems', [{ fsId: { mountpoint: '/a' } }, { fsId: { mountpoint: '/b' } }], '/a'],
  ['no file system', [], undefined],
  ['a file system without an ID', [{ fsId: null }], undefined],
])('the folder of the images, if the runtime reports %s', async (_, imageFilesystems, folder) => {
  expect(await imageFolder(runtime({ imageFilesystems }).connection, signal)).toBe(folder);
});

test('the removal of an image that does not exist succeeds, and any other error is thrown', async () => {
  const { calls, connection } = runtime({});
  await removeImage(connection, 'sha256:1', signal);
  expect(calls).toEqual([['ImageService/RemoveImage', { image: { image: 'sha256:1' } }]]);
  await removeImage(runtime(new RuntimeCallError('NotFound', 'no')).connection, 'sha256:1', signal);
  const other = new RuntimeCallError('Unknown', 'no');
  await expect(removeImage(runtime(other).connection, 'sha256:1', signal)).rejects.toBe(other);
});
