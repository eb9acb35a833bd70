import { expect, test } from 'vitest';
import type { ContainerState, ContainerStatus, Pod, PodStatus } from '../../api/generated/types.ts';
import { podTrouble } from './pod-troubles.ts';

const statusOf = (name: string, state: ContainerState, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  ...{ name, image: '', imageID: '', ready: true, restartCount: 0, state },
  ...more,
});
const podWith = (status: PodStatus, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n', ...metadata } },
  spec: {
    containers: [{ name: 'app', image: 'db:2' }],
    deferContainers: [
      { name: 'bye', imageFrom: 'app' },
      { name: 'clean', image: 'tools:1' },
    ],
  },
  status,
});
const RUNNING = { phase: 'Running', containerStatuses: [statusOf('app', { running: {} })] };
const waiting = (name: string, reason: string, message?: string): ContainerStatus =>
  statusOf(name, { waiting: { reason, ...(message === undefined ? {} : { message }) } });
const termination = { reason: 'Deleted', startedAt: '', deadline: '' };
const ENDING = { ...RUNNING, phase: 'Terminating', termination };

test.each<[string, Pod, string | undefined]>([
  ['a Pod that runs', podWith(RUNNING), undefined],
  [
    'a Pod whose entries wait',
    podWith({ ...RUNNING, deferContainerStatuses: [waiting('bye', 'PodRunning')] }),
    undefined,
  ],
  [
    'an image of an entry is missing',
    podWith({ ...RUNNING, deferContainerStatuses: [waiting('bye', 'ErrImagePull', 'not\nfound')] }),
    'Pod n/p: Running: no image db:2 for defer container bye: not found',
  ],
  [
    'the image of the second entry is missing',
    podWith({
      ...RUNNING,
      deferContainerStatuses: [waiting('bye', 'PodRunning'), waiting('clean', 'ImagePullBackOff')],
    }),
    'Pod n/p: Running: no image tools:1 for defer container clean: ImagePullBackOff',
  ],
  [
    'images of two entries are missing',
    podWith({
      ...RUNNING,
      deferContainerStatuses: [waiting('bye', 'ErrImagePull'), waiting('clean', 'ImagePullBackOff')],
    }),
    'Pod n/p: Running: no image db:2 for defer container bye (and 1 more): ErrImagePull',
  ],
  [
    'its list runs',
    podWith({ ...ENDING, deferContainerStatuses: [statusOf('bye', { running: {} })] }, { deletionTimestamp: 'x' }),
    undefined,
  ],
  [
    'an entry is tried again',
    podWith({ ...ENDING, deferContainerStatuses: [waiting('bye', 'CrashLoopBackOff')] }, { deletionTimestamp: 'x' }),
    'Pod n/p: Defer:0/2: defer container bye failed and is being retried',
  ],
  [
    'a container waits for its image',
    podWith({ phase: 'Pending', containerStatuses: [waiting('app', 'ErrImagePull', 'not found')] }),
    'Pod n/p: ErrImagePull: not found',
  ],
  [
    'no node takes it',
    podWith({
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', message: '0/1 nodes are available' }],
    }),
    'Pod n/p: Pending: 0/1 nodes are available',
  ],
])('%s', (_, pod, line) => {
  expect(podTrouble(pod)).toBe(line);
});
