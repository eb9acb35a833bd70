import { expect, test } from 'vitest';
import type { ContainerState, ContainerStatus, Pod, PodStatus } from '../../api/generated/types.ts';
import { podTrouble } from './pod-troubles.ts';

const statusOf = (name: string, state: ContainerState, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name,
  image: '',
  imageID: '',
  ready: true,
  restartCount: 0,
  state,
  ...more,
});
const podWith = (status: PodStatus, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n', ...metadata },
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
  statusOf(name, { waiting: { reason, message } });
const termination = { reason: 'Deleted', startedAt: '', deadline: '' };
const ENDING = { ...RUNNING, phase: 'Terminating', termination };

test.each<[string, Pod, string | undefined]>([
  ['a running Pod', podWith(RUNNING), undefined],
  [
    'a running Pod whose defer containers wait',
    podWith({ ...RUNNING, deferContainerStatuses: [waiting('bye', 'PodRunning')] }),
    undefined,
  ],
  [
    'a missing image of a defer container',
    podWith({ ...RUNNING, deferContainerStatuses: [waiting('bye', 'ErrImagePull', 'not\nfound')] }),
    'Pod n/p: Running: no image db:2 for defer container bye: not found',
  ],
  [
    'a missing image of the second defer container',
    podWith({
      ...RUNNING,
      deferContainerStatuses: [waiting('bye', 'PodRunning'), waiting('clean', 'ImagePullBackOff')],
    }),
    'Pod n/p: Running: no image tools:1 for defer container clean: ImagePullBackOff',
  ],
  [
    'missing images of two defer containers',
    podWith({
      ...RUNNING,
      deferContainerStatuses: [waiting('bye', 'ErrImagePull'), waiting('clean', 'ImagePullBackOff')],
    }),
    'Pod n/p: Running: no image db:2 for defer container bye (and 1 more): ErrImagePull',
  ],
  [
    'a terminating Pod whose defer container runs',
    podWith({ ...ENDING, deferContainerStatuses: [statusOf('bye', { running: {} })] }, { deletionTimestamp: 'x' }),
    undefined,
  ],
  [
    'a defer container that is retried',
    podWith({ ...ENDING, deferContainerStatuses: [waiting('bye', 'CrashLoopBackOff')] }, { deletionTimestamp: 'x' }),
    'Pod n/p: Defer:0/2: defer container bye failed and is being retried',
  ],
  [
    'a container that waits for its image',
    podWith({ phase: 'Pending', containerStatuses: [waiting('app', 'ErrImagePull', 'not found')] }),
    'Pod n/p: ErrImagePull: not found',
  ],
  [
    'an unschedulable Pod',
    podWith({
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', message: '0/1 nodes are available' }],
    }),
    'Pod n/p: Pending: 0/1 nodes are available',
  ],
])('lifepod status shows for %s: $2', (_, pod, line) => {
  expect(podTrouble(pod)).toBe(line);
});
