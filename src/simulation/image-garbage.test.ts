/** Tests the removal of unused images in virtual time. */

import { describe, expect, it } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { startImageGarbageCollection } from '../node/images/garbage-collection.ts';
import type { GarbagePolicy } from '../node/images/garbage-policy.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import type { ImageInfo } from '../runtime/runtime.ts';

const START = 1_700_000_000_000;
const MINUTE = 60_000;
/** A node with a disk of 1000 bytes. `images`: the size of each image in bytes. `other`: the size of all other files; default: 0. */
function node(given: { images: Record<string, number>; other?: number; policy?: Partial<GarbagePolicy> }) {
  const timers = createVirtualTimers(START);
  const ending = new AbortController();
  const images = new Map<string, ImageInfo>();
  const removed: { image: string; at: number }[] = [];
  const warnings: string[] = [];
  const state = { pods: [] as Pod[], containers: [] as string[], pinned: '', refuses: '' };
  const add = (name: string, sizeBytes: number): void =>
    void images.set(name, { id: `sha256:${name}`, tags: [`docker.io/library/${name}:1`], digests: [], sizeBytes });
  for (const [name, sizeBytes] of Object.entries(given.images)) add(name, sizeBytes);
  const garbage = startImageGarbageCollection({
    runtime: {
      listImages: async () =>
        [...images].map(([name, image]) => (name === state.pinned ? { ...image, pinned: true as const } : image)),
      imageStatus: async (id) => images.get(id.replace('sha256:', '')),
      removeImage: async (id) => {
        const name = id.replace('sha256:', '');
        if (name === state.refuses) throw new Error(`${name} stays`);
        images.delete(name);
        removed.push({ image: name, at: timers.now() - START });
      },
    },
    inUse: async () => state.containers.map((name) => `sha256:${name}`),
    disk: async () => {
      const used = [...images.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, given.other ?? 0);
      return { capacityBytes: 1000, availableBytes: 1000 - used };
    },
    pods: () => state.pods,
    keep: ['pause:1'],
    policy: { highThreshold: 85, lowThreshold: 80, minAgeMillis: 2 * MINUTE, maxAgeMillis: 0, ...given.policy },
    warn: (reason, message) => void warnings.push(`${reason}: ${message}`),
    timers,
    log: silentLog,
    signal: ending.signal,
  });
  const pass = (millis: number): Promise<boolean> => timers.run(() => false, START + millis);
  return { garbage, state, add, removed, warnings, pass, end: () => ending.abort(), names: () => [...images.keys()] };
}

const podOf = (spec: Pod['spec']): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  ...(spec ? { spec } : {}),
});

describe('below the high threshold', () => {
  it('below the high threshold, no image is removed', async () => {
    const { removed, warnings, pass } = node({ images: { a: 400, b: 440 } });
    await pass(11 * MINUTE);
    expect([removed, warnings]).toEqual([[], []]);
  });
});

describe('with a maximum age', () => {
  it('an image unused for the maximum age is removed, regardless of the disk usage; time before the start does not count', async () => {
    const { state, garbage, add, removed, pass, names } = node({
      images: { pause: 1, used: 1, left: 1 },
      policy: { maxAgeMillis: 60 * MINUTE },
    });
    state.containers = ['used', 'left'];
    await pass(7 * MINUTE);
    add('came', 1);
    state.containers = ['used'];
    garbage.check();
    await pass(120 * MINUTE);
    // The check of the fifth minute was the last one that found the image `left` in use.
    expect(removed).toEqual([
      { image: 'left', at: 65 * MINUTE },
      { image: 'came', at: 67 * MINUTE },
    ]);
    expect(names()).toEqual(['pause', 'used']);
  });

  it('the removal of an image that was too old and could not be removed is retried at the next check', async () => {
    const { state, removed, pass } = node({ images: { a: 1, b: 1 }, policy: { maxAgeMillis: 60 * MINUTE } });
    state.refuses = 'a';
    await pass(61 * MINUTE);
    state.refuses = '';
    await pass(66 * MINUTE);
    expect(removed).toEqual([
      { image: 'b', at: 60 * MINUTE },
      { image: 'a', at: 65 * MINUTE },
    ]);
  });
});

describe('above the high threshold', () => {
  it('above the high threshold, the least recently used images are removed until the low threshold is reached', async () => {
    const { state, garbage, add, removed, pass } = node({ images: { a: 200, b: 200, c: 200 } });
    state.containers = ['a', 'b'];
    await pass(5 * MINUTE);
    state.containers = ['a'];
    await pass(10 * MINUTE);
    state.containers = [];
    add('new', 320);
    garbage.check();
    await pass(10 * MINUTE + 1);
    // 920 of 1000 bytes are used, more than the high threshold of 85%. The low threshold of 80% is 800 bytes.
    expect(removed.map(({ image }) => image)).toEqual(['c']);
    add('newer', 200);
    garbage.check();
    await pass(10 * MINUTE + 2);
    expect(removed.map(({ image }) => image)).toEqual(['c', 'b']);
  });

  it('images in use are kept: by containers, by Pods that name them, by the node, by the runtime itself', async () => {
    const images = { pause: 1, run: 100, app: 100, defer: 100, files: 100, pinned: 50, idle: 450 };
    const { state, garbage, pass, names } = node({ images, policy: { lowThreshold: 0 } });
    state.containers = ['run'];
    state.pinned = 'pinned';
    state.pods = [
      podOf({
        containers: [{ name: 'app', image: 'app:1' }],
        deferContainers: [{ name: 'last', image: 'defer:1' }],
        volumes: [{ name: 'files', image: { reference: 'files:1' } }],
      }),
    ];
    garbage.check();
    await pass(1);
    expect(names()).toEqual(['pause', 'run', 'app', 'defer', 'files', 'pinned']);
  });

  it('a young image is removed once it is old enough; images present at the start count as old', async () => {
    const { garbage, add, removed, pass } = node({ images: { old: 100 }, other: 800, policy: { lowThreshold: 1 } });
    await pass(MINUTE);
    add('young', 100);
    garbage.check();
    await pass(20 * MINUTE);
    expect(removed).toEqual([
      { image: 'old', at: 0 },
      { image: 'young', at: 3 * MINUTE },
    ]);
  });

  it('each round reports once that it cannot free enough, the second one also that the collection failed', async () => {
    const { garbage, warnings, pass } = node({ images: { a: 100 }, other: 860 });
    garbage.check();
    await pass(MINUTE);
    garbage.check();
    await pass(2 * MINUTE);
    const failure = (wanted: number, found: number): string =>
      `Failed to garbage collect required amount of images. Attempted to free ${wanted} bytes, but only found ${found} bytes eligible to free.`;
    expect(warnings).toEqual([`FreeDiskSpaceFailed: ${failure(160, 100)}`]);
    await pass(6 * MINUTE);
    expect(warnings.slice(1)).toEqual([`FreeDiskSpaceFailed: ${failure(60, 0)}`, `ImageGCFailed: ${failure(60, 0)}`]);
  });

  it('an image that cannot be removed does not prevent the removal of others', async () => {
    const { state, warnings, removed, pass } = node({ images: { a: 450, b: 450 }, policy: { lowThreshold: 1 } });
    state.refuses = 'a';
    await pass(1);
    expect(removed.map(({ image }) => image)).toEqual(['b']);
    await pass(6 * MINUTE);
    expect(warnings).toEqual([]);
  });
});

it('on demand, all unused images are removed, regardless of the thresholds', async () => {
  const { garbage, state, pass, names } = node({ images: { a: 1, b: 2, c: 3 } });
  state.containers = ['b'];
  await pass(1);
  expect(await garbage.removeUnused(new AbortController().signal)).toBe(4);
  expect(names()).toEqual(['b']);
});

it('the collection makes no further checks once its signal has aborted', async () => {
  const { pass, end, warnings } = node({ images: {}, other: 990 });
  await pass(1);
  end();
  await pass(60 * MINUTE);
  expect(warnings.length).toBe(1);
});
