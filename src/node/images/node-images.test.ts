import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod, Secret } from '../../api/generated/types.ts';
import { SECRETS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import type { ContainerRuntime, ImageChange, ImageInfo } from '../../runtime/runtime.ts';
import { DEFAULT_GARBAGE_POLICY } from './garbage-policy.ts';
import { createNodeImages, type NodeImages, type NodeImagesOptions } from './node-images.ts';

/** With this policy, no image is removed because of its age or of the usage of the disk. */
const policy = { ...DEFAULT_GARBAGE_POLICY, highThreshold: 100, minAgeMillis: 0 };
const image = (name: string): ImageInfo => ({
  id: name,
  tags: [`docker.io/library/${name}:1`],
  digests: [],
  sizeBytes: 7,
});

let folder: string;
let stop: AbortController;
let timers: VirtualTimers;
let backend: RegistryBackend;
let calls: string[];
let images: ImageInfo[];
let events: { name: string; kind: string | undefined; type: string; reason: string; message: string }[];
/** Reports a change of the runtime's images; undefined if the runtime is not watched. */
let change: ((change: ImageChange | undefined) => void) | undefined;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-images-'));
  stop = new AbortController();
  timers = createVirtualTimers();
  backend = await registryBackend({ timers });
  [calls, images, events, change] = [[], ['kept', 'used', 'unused'].map(image), [], undefined];
});
afterEach(() => {
  stop.abort();
  rmSync(folder, { recursive: true, force: true });
});

const runtime = {
  async imageChanges(listener: NonNullable<typeof change>, signal: AbortSignal) {
    expect(signal).toBe(stop.signal);
    change = listener;
  },
  async listImages() {
    calls.push('list');
    return images;
  },
  imagesInUse: async () => [],
  imageFolder: async () => undefined,
  async removeImage(id: string) {
    calls.push(`remove ${id}`);
    images = images.filter((each) => each.id !== id);
  },
  pullImage(reference: string, credential: { username: string } | undefined, signal: AbortSignal) {
    calls.push(`pull ${reference} ${credential?.username ?? 'anonymously'}`);
    return new Promise<string>((resolve, reject) => {
      if (reference.startsWith('quick')) resolve(reference);
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  },
  imageStatus: async (reference: string) => image(reference),
};
const start = (more: Partial<NodeImagesOptions> = {}, without: (keyof typeof runtime)[] = []): NodeImages =>
  createNodeImages({
    client: clientOf(backend),
    runtime: {
      ...runtime,
      ...Object.fromEntries(without.map((name) => [name, undefined])),
    } as unknown as ContainerRuntime,
    nodeName: 'n',
    dataDir: folder,
    events: {
      event: ({ kind, metadata: { name } }, type, reason, message) =>
        void events.push({ name, kind, type, reason, message }),
      flushed: async () => undefined,
    },
    kept: { find: async () => undefined },
    signal: stop.signal,
    pods: () => [podOf({ containers: [{ name: 'app', image: 'used:1' }] })],
    appeared: (name) => void calls.push(`appeared ${name}`),
    timers,
    log: silentLog,
    ...more,
  });
/** Lets all work end that does not wait for a timer, a pull or the disk. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
};
const newCalls = async (): Promise<string[]> => {
  await settled();
  return calls.splice(0);
};

test('an image that appears is reported to the listeners and then to the node, and a removed one only to the listeners', async () => {
  const node = start();
  node.onChange(() => calls.push('one'));
  node.onChange(() => calls.push('two'));
  expect(change).toBeUndefined();
  node.follow();
  change?.({ name: 'new:1', present: true });
  expect(await newCalls()).toEqual(['one', 'two', 'appeared new:1']);
  change?.({ name: 'new:1', present: false });
  expect(await newCalls()).toEqual(['one', 'two']);
  change?.(undefined);
  expect(await newCalls()).toEqual(['one', 'two', 'appeared undefined']);
});

test('the garbage collection checks the images after its start, after an image has appeared and after a Pod was removed', async () => {
  let [begun, ended] = [0, 0];
  // At the end of each check, the garbage collection sets the timer for the next one.
  const counting: typeof timers = {
    ...timers,
    at(...call) {
      ended++;
      return timers.at(...call);
    },
  };
  const node = start({ timers: counting, imageGarbage: { policy, keep: [] } });
  const checked = async (): Promise<string[]> => {
    await settled();
    begun += calls.filter((call) => call === 'list').length;
    await vi.waitFor(() => expect(ended).toBe(begun));
    return newCalls();
  };
  node.follow();
  node.podGone();
  change?.({ name: 'early:1', present: true });
  expect(await checked()).toEqual(['appeared early:1']);
  node.collect();
  expect(await checked()).toEqual(['list']);
  change?.({ name: 'new:1', present: true });
  expect(await checked()).toEqual(['appeared new:1', 'list']);
  change?.({ name: 'new:1', present: false });
  expect(await checked()).toEqual([]);
  change?.(undefined);
  expect(await checked()).toEqual(['appeared undefined', 'list']);
  node.podGone();
  expect(await checked()).toEqual(['list']);
});

test('removeUnused() removes the images that neither a Pod nor the settings name, and returns their size', async () => {
  const node = start({ imageGarbage: { policy, keep: ['kept:1'] } });
  expect(await node.removeUnused(stop.signal)).toBe(0);
  node.collect();
  await newCalls();
  expect(await node.removeUnused(stop.signal)).toBe(7);
  expect(calls).toEqual(['list', 'remove unused']);
});

test('without settings for garbage collection, no image is listed or removed', async () => {
  const node = start();
  node.follow();
  node.collect();
  node.podGone();
  expect(await node.removeUnused(stop.signal)).toBe(0);
  expect(await newCalls()).toEqual([]);
});

test.each(['imagesInUse', 'imageFolder'] as const)(
  'the images of a runtime without %s() are not garbage-collected, because they are on no disk',
  async (method) => {
    const node = start({ imageGarbage: { policy, keep: [] } }, [method]);
    node.collect();
    node.podGone();
    expect(await node.removeUnused(stop.signal)).toBe(0);
    expect(await newCalls()).toEqual([]);
  },
);

test('a disk that remains too full is reported as an Event of the node', async () => {
  images = images.filter(({ id }) => id === 'used');
  const full = { ...policy, highThreshold: 0, lowThreshold: 0 };
  start({ imageGarbage: { policy: full, keep: [] } }).collect();
  await vi.waitFor(() => expect(events).not.toEqual([]));
  expect(events).toEqual([
    {
      name: 'n',
      kind: 'Node',
      type: 'Warning',
      reason: 'FreeDiskSpaceFailed',
      message: expect.stringMatching(/^Failed to garbage collect required amount of images\. .* only found 0 bytes /),
    },
  ]);
});

test('a runtime without image events can be followed, and the end of the events with an error is logged', async () => {
  const errors: object[] = [];
  const log = { ...silentLog, error: (message: string, details: object = {}) => errors.push({ message, ...details }) };
  start({ log }, ['imageChanges']).follow();
  await settled();
  expect(errors).toEqual([]);
  const broken = { imageChanges: () => Promise.reject(new Error('cut')) } as Partial<ContainerRuntime>;
  start({ log, runtime: broken as ContainerRuntime }).follow();
  await settled();
  expect(errors).toEqual([{ message: 'image events ended', error: 'Error: cut' }]);
});

test.each([
  [undefined, 5],
  [1, 1],
  [7, 7],
])('with maxParallelImagePulls %s, %i images are pulled at the same time', async (maxParallelImagePulls, expected) => {
  const node = start({ maxParallelImagePulls });
  const states: string[] = [];
  for (let i = 0; i < 9; i++)
    node.pull(podOf(), `slow-${i}:1`, ({ state }) => states.push(state), stop.signal).catch(() => undefined);
  await settled();
  expect(calls).toHaveLength(expected);
  expect(states).toEqual(Array(9 - expected).fill('waiting'));
});

test("a pull uses the Pod's secrets or their copies, and an Event of the Pod names the secrets that are missing", async () => {
  const auth = (username: string): Secret => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: username, namespace: 'a' },
    type: 'kubernetes.io/dockerconfigjson',
    data: {
      '.dockerconfigjson': Buffer.from(
        JSON.stringify({ auths: { 'docker.io': { username, password: 'x' } } }),
      ).toString('base64'),
    },
  });
  await backend.set(SECRETS, auth('stored'));
  const find = (async (_pod: Pod, resource: string, name: string) =>
    resource === 'secrets' && name === 'copied' ? auth('copied') : undefined) as NodeImagesOptions['kept']['find'];
  const node = start({ kept: { find } });
  const pull = async (reference: string, ...names: string[]) => {
    const pod = podOf({ imagePullSecrets: names.map((name) => ({ name })) });
    pod.metadata.namespace = 'a';
    const { info } = await node.pull(pod, reference, () => undefined, stop.signal);
    expect(info.id).toBe(reference);
  };
  await pull('quick:1', 'stored');
  await pull('quick:2', 'copied');
  expect(events).toEqual([]);
  await pull('quick:3', 'missing');
  expect(calls).toEqual(['pull quick:1 stored', 'pull quick:2 copied', 'pull quick:3 anonymously']);
  expect(events).toEqual([
    {
      name: 'web',
      kind: 'Pod',
      type: 'Warning',
      reason: 'FailedToRetrieveImagePullSecret',
      message: 'Unable to retrieve some image pull secrets (missing); attempting to pull the image may not succeed.',
    },
  ]);
});
