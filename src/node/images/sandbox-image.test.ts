import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';
import { notReadyWithoutSandboxImage, trialFailure } from './sandbox-image.ts';

const PULL =
  'failed to pull image "r/p:1": failed to pull and unpack image "r/p:1": failed to resolve reference "r/p:1": no host';
const PROBLEM = 'the container runtime has no sandbox image, and cannot pull it: r/p:1: no host';

/**
 * The runtime does not report which sandbox image it needs, has no image, and cannot run a sandbox. `network`: the problems that the
 * runtime reports itself.
 */
function setUp(network: string[] = []) {
  const [timers, images] = [createVirtualTimers(), [] as ImageInfo[]];
  const calls = { trials: 0, changed: Promise.withResolvers<void>() };
  const notReady = notReadyWithoutSandboxImage({
    runtime: {
      notReady: async () => network,
      imageStatus: async () => undefined,
      listImages: async () => images,
      observeAll: async () => new Map(),
      runSandbox: async () => {
        calls.trials++;
        throw new Error(`failed to get sandbox image "r/p:1": ${PULL}`);
      },
      stopSandbox: async () => undefined,
      removeSandbox: async () => undefined,
    },
    image: undefined,
    cgroupDriver: undefined,
    timers,
    signal: new AbortController().signal,
    changed: () => calls.changed.resolve(),
  });
  return { timers, images, calls, read: () => notReady(new AbortController().signal) };
}

test('the check reports why the sandbox image cannot be pulled, and tries again only after 10 s', async () => {
  const { timers, calls, read } = setUp();
  expect(await read()).toEqual([
    "the container runtime pulls its sandbox image: the one that its configuration names (containerd: 'containerd config dump', under sandbox)",
  ]);
  await calls.changed.promise;
  expect([await read(), calls.trials]).toEqual([[PROBLEM], 1]);
  timers.advance(10_000);
  await read();
  expect(calls.trials).toBe(2);
});

test('the check of the sandbox image stops once the image has been seen', async () => {
  const { images, calls, read } = setUp();
  images.push({ id: 'sha256:1', tags: ['r/p:1'], digests: [], sizeBytes: 1, pinned: true });
  expect(await read()).toEqual([]);
  images.pop();
  expect([await read(), calls.trials]).toEqual([[], 0]);
});

test('the check of the sandbox image reports a network that is not ready first, without a trial', async () => {
  const { calls, read } = setUp(['no network']);
  expect([await read(), calls.trials]).toEqual([['no network'], 0]);
});

test('the check of the sandbox image reports a failure that is not about the image unchanged', () => {
  expect(trialFailure(new Error('no runc'))).toBe('the container runtime cannot run a sandbox: no runc');
});
