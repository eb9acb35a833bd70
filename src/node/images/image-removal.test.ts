import { beforeEach, expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod } from '../../api/generated/types.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';
import { DEFAULT_GARBAGE_POLICY, type GarbagePolicy } from './garbage-policy.ts';
import { createImageRemoval, type ImageRemoval, type RemovalOptions } from './image-removal.ts';

const { signal } = new AbortController();
const NEVER_OLD: GarbagePolicy = { ...DEFAULT_GARBAGE_POLICY, minAgeMillis: 100, maxAgeMillis: 0 };
const EXPIRING: GarbagePolicy = { ...NEVER_OLD, maxAgeMillis: 1000 };

let images: ImageInfo[];
let containers: string[];
/** The messages with which the runtime refuses to remove images, by image ID. */
let refusals: Map<string, string>;
/** The IDs of the images that were removed, or whose removal was refused, in order. */
let attempts: string[];
let warnings: object[];
let timers: VirtualTimers;
beforeEach(() => {
  images = [];
  containers = [];
  refusals = new Map();
  attempts = [];
  warnings = [];
  timers = createVirtualTimers();
});

/** Returns an image that a Pod can name as `ID:1`. */
const image = (id: string, more: Partial<ImageInfo> = {}): ImageInfo => ({
  id,
  tags: [`docker.io/library/${id}:1`],
  digests: [],
  sizeBytes: 10,
  ...more,
});
const start = (policy: GarbagePolicy, more: Partial<RemovalOptions> = {}): ImageRemoval =>
  createImageRemoval({
    runtime: {
      listImages: async () => [...images],
      imageStatus: async (id) => images.find((each) => each.id === id),
      async removeImage(id) {
        attempts.push(id);
        const refusal = refusals.get(id);
        if (refusal !== undefined) throw new Error(refusal);
        images = images.filter((each) => each.id !== id);
      },
    },
    inUse: async () => containers,
    pods: () => [],
    keep: [],
    policy,
    timers,
    log: { ...silentLog, warn: (message, details) => warnings.push({ message, ...details }) },
    ...more,
  });
const ids = (): string[] => images.map(({ id }) => id);

test('images that a container, a Pod, the node or the runtime needs are never removed', async () => {
  images = ['container', 'pod', 'node', 'unused'].map((id) => image(id));
  images.push(image('runtime', { pinned: true }));
  containers = ['container'];
  const pods = (): Pod[] => [podOf({ containers: [{ name: 'app', image: 'pod:1' }] })];
  const removal = start(EXPIRING, { pods, keep: ['node:1'] });
  await removal.freeOld(signal);
  timers.advance(5000);
  expect(await removal.freeOld(signal)).toBeUndefined();
  expect(attempts).toEqual(['unused']);
  images.push(image('unused'));
  timers.advance(5000);
  await removal.free(Number.POSITIVE_INFINITY, signal);
  timers.advance(5000);
  expect(await removal.free(Number.POSITIVE_INFINITY, signal)).toEqual({ freedBytes: 10, oldEnoughAt: undefined });
  expect(ids()).toEqual(['container', 'pod', 'node', 'runtime']);
});

test('free() removes images until it has freed the wanted bytes', async () => {
  images = ['a', 'b', 'c', 'd'].map((id) => image(id));
  const removal = start(NEVER_OLD);
  expect(await removal.free(0, signal)).toEqual({ freedBytes: 0, oldEnoughAt: undefined });
  expect(attempts).toEqual([]);
  expect(await removal.free(11, signal)).toEqual({ freedBytes: 20, oldEnoughAt: undefined });
  expect(await removal.free(10, signal)).toEqual({ freedBytes: 10, oldEnoughAt: undefined });
  expect(attempts).toEqual(['a', 'b', 'c']);
  expect(await removal.free(11, signal)).toEqual({ freedBytes: 10, oldEnoughAt: undefined });
  expect(ids()).toEqual([]);
});

test('free() removes the image first that has been unused for the longest time, and then the one that was seen first', async () => {
  const removal = start({ ...NEVER_OLD, minAgeMillis: 0 });
  const look = async (used: string[], ...added: string[]): Promise<void> => {
    images.push(...added.map((id) => image(id)));
    containers = used;
    await removal.freeOld(signal);
    timers.advance(10);
  };
  await look([], 'initial');
  await look(['late', 'early', 'tied'], 'late', 'early', 'tied');
  await look(['late'], 'new');
  await look(['late'], 'newest');
  images.sort((a, b) => (a.id < b.id ? 1 : -1));
  containers = [];
  expect(ids()).toEqual(['tied', 'newest', 'new', 'late', 'initial', 'early']);
  await removal.free(Number.POSITIVE_INFINITY, signal);
  expect(attempts).toEqual(['initial', 'new', 'newest', 'tied', 'early', 'late']);
});

test('free() skips images that were first seen less than minAgeMillis ago, and returns when the first of them is old enough', async () => {
  images = [image('initial')];
  const removal = start(NEVER_OLD);
  await removal.freeOld(signal);
  images.push(image('a'));
  const firstSeen = timers.now();
  await removal.freeOld(signal);
  timers.advance(30);
  images.push(image('b'));
  // The images of the first listing count as old, so they are removed first.
  expect(await removal.free(100, signal)).toEqual({ freedBytes: 10, oldEnoughAt: firstSeen + 100 });
  expect(attempts).toEqual(['initial']);
  timers.advance(69);
  expect(await removal.free(100, signal)).toEqual({ freedBytes: 0, oldEnoughAt: firstSeen + 100 });
  timers.advance(1);
  expect(await removal.free(100, signal)).toEqual({ freedBytes: 10, oldEnoughAt: firstSeen + 130 });
  expect(attempts).toEqual(['initial', 'a']);
});

test('the age of an image that was removed and pulled again begins with the new pull', async () => {
  images = [image('removed'), image('lost')];
  const removal = start(NEVER_OLD);
  await removal.freeOld(signal);
  await removal.free(10, signal);
  expect(attempts).toEqual(['removed']);
  // Another client of the runtime removes the image `lost` before the next listing.
  images = [];
  await removal.freeOld(signal);
  images = [image('removed'), image('lost')];
  expect(await removal.free(100, signal)).toEqual({ freedBytes: 0, oldEnoughAt: timers.now() + 100 });
});

test('the age of an image that was removed and pulled again between two listings begins with the new pull', async () => {
  images = [image('removed')];
  const removal = start(NEVER_OLD);
  await removal.free(10, signal);
  images = [image('removed')];
  expect(await removal.free(100, signal)).toEqual({ freedBytes: 0, oldEnoughAt: timers.now() + 100 });
});

test('free() tries all images even if some cannot be removed, and rejects with the reasons', async () => {
  images = ['a', 'b', 'c', 'd'].map((id) => image(id));
  refusals = new Map([
    ['a', 'it is busy'],
    ['c', 'it is locked'],
  ]);
  const removal = start(NEVER_OLD);
  await expect(removal.free(100, signal)).rejects.toThrow(
    'wanted to free 100 bytes, but freed 20 bytes space with errors in image deletion: it is busy, it is locked',
  );
  expect(attempts).toEqual(['a', 'b', 'c', 'd']);
  // The ages of the images whose removal failed are unchanged, so both images can be removed now.
  refusals.clear();
  expect(await removal.free(100, signal)).toEqual({ freedBytes: 20, oldEnoughAt: undefined });
});

test('freeOld() removes images that have been unused for maxAgeMillis, and returns when the next one reaches that age', async () => {
  images = ['unused', 'used'].map((id) => image(id));
  containers = ['used'];
  const began = timers.now();
  const removal = start(EXPIRING);
  expect(await removal.freeOld(signal)).toBe(began + 1000);
  timers.advance(400);
  images.push(image('new'));
  expect(await removal.freeOld(signal)).toBe(began + 1000);
  timers.advance(599);
  expect(await removal.freeOld(signal)).toBe(began + 1000);
  expect(attempts).toEqual([]);
  timers.advance(1);
  expect(await removal.freeOld(signal)).toBe(began + 1400);
  expect(attempts).toEqual(['unused']);
  containers = [];
  timers.advance(400);
  expect(await removal.freeOld(signal)).toBe(began + 2000);
  expect(attempts).toEqual(['unused', 'new']);
  timers.advance(600);
  expect(await removal.freeOld(signal)).toBeUndefined();
  expect(ids()).toEqual([]);
});

test('freeOld() removes no image if maxAgeMillis is 0, but records when images were seen and used', async () => {
  images = ['a', 'b'].map((id) => image(id));
  containers = ['a'];
  const removal = start({ ...NEVER_OLD, minAgeMillis: 0 });
  expect(await removal.freeOld(signal)).toBeUndefined();
  timers.advance(1_000_000);
  containers = [];
  expect(await removal.freeOld(signal)).toBeUndefined();
  expect(attempts).toEqual([]);
  await removal.free(10, signal);
  expect(attempts).toEqual(['b']);
});

test('freeOld() logs an image that cannot be removed, and continues with the others', async () => {
  images = ['a', 'b'].map((id) => image(id));
  refusals.set('a', 'it is busy');
  const removal = start(EXPIRING);
  await removal.freeOld(signal);
  timers.advance(1000);
  expect(await removal.freeOld(signal)).toBeUndefined();
  expect(attempts).toEqual(['a', 'b']);
  expect(warnings).toEqual([
    { message: 'cannot remove an image that has been unused for too long', image: 'a', error: 'it is busy' },
  ]);
});

test('an abort during a removal rejects with its reason, and no further image is removed', async () => {
  for (const method of ['free', 'freeOld'] as const) {
    images = ['a', 'b'].map((id) => image(id));
    attempts = [];
    const stop = new AbortController();
    const removal = start(EXPIRING, {
      runtime: {
        listImages: async () => images,
        imageStatus: async () => undefined,
        async removeImage(id) {
          attempts.push(id);
          stop.abort(new Error('the node ends'));
          throw new Error('cut');
        },
      },
    });
    await removal.freeOld(stop.signal);
    timers.advance(1000);
    const removed = method === 'free' ? removal.free(100, stop.signal) : removal.freeOld(stop.signal);
    await expect(removed, method).rejects.toThrow('the node ends');
    expect(attempts, method).toEqual(['a']);
    expect(warnings).toEqual([]);
  }
});

test('an image that gets another name, or a Pod that needs it, while others are removed is kept', async () => {
  for (const method of ['free', 'freeOld'] as const) {
    const pods: Pod[] = [];
    images = ['a', 'b', 'c', 'd'].map((id) => image(id));
    const removal = start(EXPIRING, {
      pods: () => pods,
      runtime: {
        listImages: async () => images,
        imageStatus: async (id) => images.find((each) => each.id === id),
        async removeImage(id) {
          images = images
            .filter((each) => each.id !== id)
            .map((each) =>
              each.id === 'b' ? image('b', { tags: ['docker.io/library/b:1', 'example.com/new:1'] }) : each,
            );
          if (pods.length === 0) pods.push(podOf({ containers: [{ name: 'app', image: 'c:1' }] }));
        },
      },
    });
    await removal.freeOld(signal);
    timers.advance(1000);
    if (method === 'freeOld') await removal.freeOld(signal);
    else expect(await removal.free(100, signal)).toMatchObject({ freedBytes: 20 });
    expect(ids(), method).toEqual(['b', 'c']);
  }
});
