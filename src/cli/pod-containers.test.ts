import { expect, test } from 'vitest';
import type { ContainerState, ContainerStatus, Pod } from '../api/generated/types.ts';
import { containerNames, imageOf, podContainers, ranBefore, waitsForItsTurn } from './pod-containers.ts';

const status = (state: ContainerState, containerID?: string): ContainerStatus => ({
  name: 'bye',
  image: '',
  imageID: '',
  ready: false,
  restartCount: 0,
  state,
  ...(containerID === undefined ? {} : { containerID }),
});
const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'pod' },
  spec: {
    ephemeralContainers: [{ name: 'shell', image: 'i' }],
    deferContainers: [
      { name: 'bye', image: 'i' },
      { name: 'clean', image: 'i' },
    ],
    containers: [
      { name: 'app', image: 'i' },
      { name: 'web', image: 'i' },
    ],
    initContainers: [{ name: 'init', image: 'i' }],
  },
  status: { deferContainerStatuses: [status({ waiting: { reason: 'PodRunning' } })] },
};

test('the containers stand in the order of the life of their Pod, with their statuses', () => {
  expect(podContainers(pod).map(({ kind, name }) => `${kind} ${name}`)).toEqual([
    'init init',
    'app app',
    'app web',
    'defer bye',
    'defer clean',
    'ephemeral shell',
  ]);
  expect(podContainers(pod)[3]?.status?.name).toBe('bye');
  expect(podContainers(pod)[4]?.status).toBeUndefined();
  expect(containerNames(pod)).toBe('app, web, shell (ephem), init (init), bye (defer), clean (defer)');
});

const ENDING: Pod = { ...pod, status: { termination: { reason: 'Deleted', startedAt: '', deadline: '' } } };

test.each<[string, Pod, boolean, ContainerStatus | undefined]>([
  ['no status yet', pod, true, undefined],
  ['before the end of its Pod', pod, true, status({ waiting: { reason: 'PodRunning' } })],
  ['its image is missing before the end of its Pod', pod, true, status({ waiting: { reason: 'ErrImagePull' } })],
  ['before its turn', ENDING, true, status({ waiting: { reason: 'PendingDefer' } })],
  ['skipped', ENDING, true, status({ terminated: { reason: 'Skipped', exitCode: 137 } })],
  ['its image is missing', ENDING, false, status({ waiting: { reason: 'ErrImagePull' } })],
  ['runs', ENDING, false, status({ running: {} }, 'containerd://1')],
  ['waits for its restart', ENDING, false, status({ waiting: { reason: 'CrashLoopBackOff' } }, 'containerd://1')],
  ['has ended', ENDING, false, status({ terminated: { exitCode: 0 } }, 'containerd://1')],
])('%s: waits for its turn', (_what, of, waits, found) => {
  const entry = { kind: 'defer', name: 'bye', ...(found === undefined ? {} : { status: found }) } as const;
  expect(waitsForItsTurn(of, entry)).toBe(waits);
});

test('the image of a container: the one that it ran, else that of its spec, else that of the container it names', () => {
  const spec = { containers: [{ name: 'app', image: 'db:2' }], deferContainers: [{ name: 'bye', imageFrom: 'app' }] };
  const living: Pod = { ...pod, spec, status: {} };
  expect(imageOf(living, { name: 'app' })).toBe('db:2');
  expect(imageOf(living, { name: 'bye' })).toBe('db:2');
  expect(imageOf(living, { name: 'none' })).toBe('');
  const ran = { deferContainerStatuses: [{ ...status({ running: {} }), image: 'db:1' }] };
  expect(imageOf({ ...living, status: ran }, { name: 'bye' })).toBe('db:1');
});

test.each<[string, boolean, ContainerStatus]>([
  ['nothing has begun', false, status({ waiting: { reason: 'PendingDefer' } })],
  ['it was skipped', false, status({ terminated: { reason: 'Skipped', exitCode: 137 } })],
  ['it was cut off', true, status({ terminated: { reason: 'Skipped', exitCode: 137 } }, 'containerd://1')],
  ['its second attempt was skipped', true, { ...status({ terminated: { exitCode: 137 } }), restartCount: 1 }],
  [
    'it waits between two attempts',
    true,
    { ...status({ waiting: { reason: 'ErrImagePull' } }), lastState: { terminated: { exitCode: 1 } } },
  ],
])('a run of a container has begun: %s: %s', (_what, ran, found) => {
  expect(ranBefore(found)).toBe(ran);
});
