import { expect, test } from 'vitest';
import type { ContainerState, ContainerStatus, Pod } from '../api/generated/types.ts';
import { containerNames, podContainers, waitsForItsTurn } from './pod-containers.ts';

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

test.each<[string, boolean, ContainerStatus | undefined]>([
  ['no status yet', true, undefined],
  ['before the end of its Pod', true, status({ waiting: { reason: 'PodRunning' } })],
  ['before its turn', true, status({ waiting: { reason: 'PendingDefer' } })],
  ['skipped', true, status({ terminated: { reason: 'Skipped', exitCode: 137 } })],
  ['its image is missing', false, status({ waiting: { reason: 'ErrImagePull' } })],
  ['runs', false, status({ running: {} }, 'containerd://1')],
  ['waits for its restart', false, status({ waiting: { reason: 'CrashLoopBackOff' } }, 'containerd://1')],
  ['has ended', false, status({ terminated: { exitCode: 0 } }, 'containerd://1')],
])('%s: waits for its turn: %s', (_what, waits, found) => {
  expect(waitsForItsTurn({ kind: 'defer', name: 'bye', ...(found === undefined ? {} : { status: found }) })).toBe(
    waits,
  );
});
