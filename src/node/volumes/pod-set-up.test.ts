import { access, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Pod, Volume } from '../../api/generated/types.ts';
import { CONFIG_MAPS } from '../../api/resources.ts';
import { OutcomeUnknownError } from '../../runtime/runtime.ts';
import { shownRoom } from './file-size-limit.ts';
import { downwardFacts, type PodVolumes, reportStale, type SetUpPorts, setUpVolumes } from './pod-set-up.ts';
import {
  annotationVolume,
  configMapVolume,
  podWith,
  type SetUpFixture,
  setUpFixture,
  tokenVolume,
} from './set-up-fixture.ts';
import { VolumeError } from './volume-error.ts';

const never = new AbortController().signal;
const RETRY = 30_000;
let on: SetUpFixture;
beforeEach(async () => {
  on = await setUpFixture();
});
afterEach(() => on.close());

const volumesOf = (pod: Pod): PodVolumes => ({ pod, keeps: { tokens: new Map(), room: shownRoom() } });
const setUp = (of: PodVolumes | Pod, ports: SetUpPorts = on.ports, signal = never): Promise<number> =>
  setUpVolumes('pod' in of ? of : volumesOf(of), () => true, ports, signal);
const mountFailure = (name: string, cause: string): string =>
  `MountVolume.SetUp failed for volume "${name}" : ${cause}`;
const notFound = (name: string): string => mountFailure(name, `configmap "${name}" not found`);
const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

test('setUpVolumes() sets up only the volumes that the caller selects', async () => {
  await on.write('a', { key: 'of a' });
  const [a, b] = [configMapVolume('a'), configMapVolume('b')];
  const pod = podWith([a, b]);
  expect(await setUpVolumes(volumesOf(pod), ({ name }) => name === 'a', on.ports, never)).toBe(
    Number.POSITIVE_INFINITY,
  );
  expect(await on.text(pod, a, 'key')).toBe('of a');
  expect(await exists(on.folder(pod, b))).toBe(false);
});

test('a Pod without volumes is never set up again', async () => {
  const { spec: _, ...pod } = podWith([]);
  expect(await setUp(pod)).toBe(Number.POSITIVE_INFINITY);
});

test('setUpVolumes() rejects with the reason of a signal that has aborted before the call', async () => {
  const reason = new Error('not wanted');
  await expect(setUp(podWith([]), on.ports, AbortSignal.abort(reason))).rejects.toBe(reason);
});

test('setUpVolumes() sets up eight volumes at the same time and starts no other after an abort', async () => {
  const names = Array.from({ length: 10 }, (_, index) => `v${index}`);
  for (const name of names) await on.write(name, { key: name });
  const reads = on.holdReads();
  const { signal, abort } = abortable();
  const settingUp = setUp(podWith(names.map(configMapVolume)), on.ports, signal);
  const outcome = settingUp.catch((error: unknown) => error);
  await vi.waitFor(() => expect(reads.waiting()).toBe(8));
  abort();
  reads.release();
  expect(await outcome).toBe(signal.reason);
  const read = on.backend.calls.filter((call) => call.startsWith('get configmaps'));
  expect(read.sort()).toEqual(names.slice(0, 8).map((name) => `get configmaps a/${name}`));
});

function abortable(): { signal: AbortSignal; abort(): void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort(new Error('aborted')) };
}

test('a volume that has no files yet fails with the name of the volume and the cause', async () => {
  const error = await setUp(podWith([configMapVolume('a')])).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(VolumeError);
  expect(error).toMatchObject({ message: notFound('a'), reason: 'FailedMount' });
  expect([on.failures, on.warnings]).toEqual([[], []]);
});

test('setUpVolumes() rejects with the error of the first volume and reports the errors of the other volumes', async () => {
  await on.write('b', { key: 'of b' });
  const pod = podWith(['a', 'b', 'c'].map(configMapVolume));
  await expect(setUp(pod)).rejects.toThrow(notFound('a'));
  expect(on.failures).toEqual([notFound('c')]);
  expect(await on.text(pod, configMapVolume('b'), 'key')).toBe('of b');
  const { onFailure: _, ...silent } = on.ports;
  await expect(setUp(pod, silent)).rejects.toThrow(notFound('a'));
});

test('setUpVolumes() reports a failed volume after a second if another volume takes longer', async () => {
  await on.write('slow', { key: 'x' });
  const reads = on.holdReads();
  const unsupported = { name: 'other', nfs: { server: 's', path: '/' } } as Volume;
  const outcome = setUp(podWith([configMapVolume('slow'), unsupported])).catch((error: unknown) => error);
  await vi.waitFor(() => expect(reads.waiting()).toBe(1));
  const message = mountFailure('other', 'volume kind "nfs" is not supported');
  on.timers.advance(1000);
  expect(on.failures).toEqual([message]);
  reads.release();
  expect(await outcome).toMatchObject({ message });
  expect(on.failures).toEqual([message]);
});

test('a volume whose update fails keeps its files, and the update is retried after 30 seconds', async () => {
  await on.write('a', { key: 'old' });
  const volume = configMapVolume('a');
  const pod = podWith([volume]);
  await setUp(pod);
  await on.backend.remove(CONFIG_MAPS, 'a', 'a');
  on.timers.advance(1000);
  expect(await setUp(pod)).toBe(on.timers.now() + RETRY);
  expect(await on.text(pod, volume, 'key')).toBe('old');
  expect([on.failures, on.warnings]).toEqual([[notFound('a')], [notFound('a')]]);
});

test('setUpVolumes() rejects if an emptyDir volume fails, even if a container has created ..data in the volume', async () => {
  const volume: Volume = { name: 'scratch', emptyDir: { medium: 'Paper' } };
  const pod = podWith([volume]);
  await mkdir(join(on.folder(pod, volume), '..data'), { recursive: true });
  await expect(setUp(pod)).rejects.toThrow(mountFailure('scratch', 'unknown storage medium "Paper"'));
  expect(on.warnings).toEqual([]);
});

test('an unknown outcome and an abort are thrown unchanged, even if the volume has files', async () => {
  await on.write('a', { key: 'old' });
  const pod = podWith([configMapVolume('a')]);
  await setUp(pod);
  const unknown = new OutcomeUnknownError('no response');
  on.backend.failNext('get configmaps', unknown);
  await expect(setUp(pod)).rejects.toBe(unknown);
  const { signal, abort } = abortable();
  const cause = new Error('the read was cut');
  on.backend.get = async () => {
    abort();
    throw cause;
  };
  await expect(setUp(pod, on.ports, signal)).rejects.toBe(cause);
  expect([on.failures, on.warnings]).toEqual([[], []]);
});

test('the error of an image volume keeps its own reason, message and image', async () => {
  const error = new VolumeError('image', 'cannot pull', 'ErrImagePull', 'image:1');
  const images = {
    status: () => Promise.reject(error),
    mounts: async () => [],
  } as unknown as NonNullable<SetUpPorts['images']>;
  const pod = podWith([{ name: 'image', image: { reference: 'image:1' } }]);
  await expect(setUp(pod, { ...on.ports, images })).rejects.toBe(error);
  await expect(setUp(pod)).rejects.toThrow(mountFailure('image', 'image volumes are not supported'));
});

test('the first token that must be replaced determines when the volumes are set up again', async () => {
  on.issueTokens();
  const [hour, day, none] = [tokenVolume('hour', 3600), tokenVolume('day', 80_000), annotationVolume('none')];
  const volumes = volumesOf(podWith([day, none, hour]));
  const start = on.timers.now();
  expect(await setUp(volumes)).toBe(start + 2_700_000);
  on.timers.advance(1_000_000);
  expect(await setUp(volumes)).toBe(start + 2_700_000);
  expect((await on.text(volumes.pod, hour, 'token')).startsWith('token-')).toBe(true);
  on.timers.advance(1_700_000);
  expect(await setUp(volumes)).toBe(on.timers.now() + 2_700_000);
  expect(await on.text(volumes.pod, hour, 'token')).toBe('token-3');
});

const SIZE = 150_000;
/** Two such volumes with values of SIZE bytes exceed the limit of 16 MiB. */
function largeVolume(name: string): Volume {
  const items = Array.from({ length: 60 }, (_, index) => ({ path: `${index}`, key: 'key' }));
  return { name, projected: { sources: [{ configMap: { name, items } }] } };
}

test('a volume that becomes too large is retried after 30 seconds only if it fits once all volumes are updated', async () => {
  const [a, b] = [largeVolume('a'), largeVolume('b')];
  const volumes = volumesOf(podWith([a, b]));
  /** `sizeOfA`, `sizeOfB`: the sizes of the values. Resolves to the time at which to retry, and the sizes of the files afterwards. */
  const run = async (sizeOfA: number, sizeOfB: number): Promise<number[]> => {
    await on.write('a', { key: 'x'.repeat(sizeOfA) });
    await on.write('b', { key: 'x'.repeat(sizeOfB) });
    const at = await setUp(volumes);
    const texts = await Promise.all([a, b].map((volume) => on.text(volumes.pod, volume, '0')));
    return [at, ...texts.map(({ length }) => length)];
  };
  expect(await run(0, SIZE)).toEqual([Number.POSITIVE_INFINITY, 0, SIZE]);
  expect(await run(SIZE, SIZE)).toEqual([Number.POSITIVE_INFINITY, 0, SIZE]);
  expect(on.failures).toEqual([expect.stringContaining('may show at most 16 MiB')]);
  // Volume a is set up first, and does not fit before volume b has become smaller.
  expect(await run(SIZE, 1)).toEqual([on.timers.now() + RETRY, 0, 1]);
  expect(await run(SIZE, 1)).toEqual([Number.POSITIVE_INFINITY, SIZE, 1]);
});

test('reportStale() logs each error, and reports only errors of volumes', () => {
  const pod = podWith([]);
  const start = on.timers.now();
  expect(reportStale(pod, new Error('plain'), on.ports)).toBe(start + RETRY);
  expect(reportStale(pod, new VolumeError('v', 'stale'), on.ports)).toBe(start + RETRY);
  expect(on.warnings).toEqual(['plain', mountFailure('v', 'stale')]);
  expect(on.failures).toEqual([mountFailure('v', 'stale')]);
  const { onFailure: _, ...silent } = on.ports;
  expect(reportStale(pod, new VolumeError('v', 'stale'), silent)).toBe(start + RETRY);
});

test('the facts for volumes contain the name and the resources of the node but no addresses', () => {
  const facts = { nodeName: 'n', hostIps: [], podIps: [], allocatable: {} };
  expect(downwardFacts(on.ports)).toEqual(facts);
  const allocatable = { cpu: '2' };
  expect(downwardFacts({ ...on.ports, allocatable })).toEqual({ ...facts, allocatable });
});
