import { expect, test } from 'vitest';
import type { ContainerState, ContainerStatus, Pod } from '../api/generated/types.ts';
import {
  containerNames,
  imageOf,
  itsImage,
  podContainers,
  ranBefore,
  waitsForItsTurn,
  wantedImage,
} from './pod-containers.ts';

const status = (state: ContainerState, containerID?: string): ContainerStatus => ({
  name: 'bye',
  image: '',
  imageID: '',
  ready: false,
  restartCount: 0,
  state,
  containerID,
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

test('the containers of a Pod are listed in the order in which they run, with their statuses', () => {
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
  ['without a status', pod, true, undefined],
  ['in a running Pod', pod, true, status({ waiting: { reason: 'PodRunning' } })],
  ['in a running Pod without its image', pod, true, status({ waiting: { reason: 'ErrImagePull' } })],
  ['in a terminating Pod before its turn', ENDING, true, status({ waiting: { reason: 'PendingDefer' } })],
  ['that was skipped', ENDING, true, status({ terminated: { reason: 'Skipped', exitCode: 137 } })],
  ['whose image is missing when it is due', ENDING, false, status({ waiting: { reason: 'ErrImagePull' } })],
  ['that runs', ENDING, false, status({ running: {} }, 'containerd://1')],
  ['that waits for its restart', ENDING, false, status({ waiting: { reason: 'CrashLoopBackOff' } }, 'containerd://1')],
  ['that has ended', ENDING, false, status({ terminated: { exitCode: 0 } }, 'containerd://1')],
])('an entry %s waits for its turn: $2', (_what, of, waits, found) => {
  const entry = { kind: 'defer', name: 'bye', status: found } as const;
  expect(waitsForItsTurn(of, entry)).toBe(waits);
});

test('the image of a container is that of its spec or of the container in imageFrom, also after a run with another image', () => {
  const spec = { containers: [{ name: 'app', image: 'db:2' }], deferContainers: [{ name: 'bye', imageFrom: 'app' }] };
  const ran = { ...status({ waiting: { reason: 'ErrImagePull' } }), image: 'db:1' };
  const shown = { containerStatuses: [{ ...ran, name: 'app' }], deferContainerStatuses: [ran] };
  const living: Pod = { ...pod, spec, status: shown };
  expect(imageOf(living, { name: 'app' })).toBe('db:2');
  expect(imageOf(living, { name: 'bye' })).toBe('db:2');
  expect(imageOf(living, { name: 'none' })).toBe('');
});

test.each<[string, boolean, ContainerStatus]>([
  ['that waits for its turn', false, status({ waiting: { reason: 'PendingDefer' } })],
  ['that was skipped', false, status({ terminated: { reason: 'Skipped', exitCode: 137 } })],
  ['that was cut off', true, status({ terminated: { reason: 'Skipped', exitCode: 137 } }, 'containerd://1')],
  ['whose second attempt was skipped', true, { ...status({ terminated: { exitCode: 137 } }), restartCount: 1 }],
  [
    'that waits between two attempts',
    true,
    { ...status({ waiting: { reason: 'ErrImagePull' } }), lastState: { terminated: { exitCode: 1 } } },
  ],
])('an entry %s has run before: %s', (_what, ran, found) => {
  expect(ranBefore(found)).toBe(ran);
});

test.each<[message: string, reference: string, volume?: string]>([
  ['Back-off pulling image "data:1": ErrImagePull: no', 'data:1', 'v'],
  ['failed to pull and unpack image "docker.io/library/data:1": no', 'data:1', 'v'],
  ['Container image "data:1" is not present with pull policy of Never', 'data:1', 'v'],
  ['Back-off pulling image "app:1": ErrImagePull: blob "data:1"', 'app:1'],
  ['Back-off pulling image "Data:1": failed to parse image reference "Data:1"', 'Data:1', 'bad'],
  ['Back-off pulling image "other:1"', 'app:1'],
  ['failed to do request: Head "https://r/v2/": no', 'app:1'],
  ['', 'app:1'],
])('a container that waits with the message %j waits for the image %s', (message, reference, volume) => {
  const volumes = [
    { name: 'token', projected: {} },
    { name: 'v', image: { reference: 'data:1' } },
    { name: 'bad', image: { reference: 'Data:1' } },
  ];
  const status = { state: { waiting: { reason: 'ErrImagePull', message } } };
  const pod = { spec: { containers: [{ name: 'app', image: 'app:1' }], volumes } } as Pod;
  const wanted = wantedImage(pod, { name: 'app', status });
  expect([wanted.reference, wanted.volume?.name]).toEqual([reference, volume]);
  expect(itsImage(pod, { name: 'app', status })).toBe(
    volume === undefined ? 'its image app:1' : `the image ${reference} of its volume ${volume}`,
  );
});

test.each<[reason: string, own: string, ofVolume: string, running: boolean, volume: string | undefined]>([
  ['ErrImagePull', 'IfNotPresent', 'Always', false, 'v'],
  ['ErrImagePull', 'IfNotPresent', 'Always', true, undefined],
  ['ErrImagePull', 'Always', 'Always', false, undefined],
  ['ErrImagePull', 'Always', 'IfNotPresent', false, undefined],
  ['ErrImagePull', 'IfNotPresent', 'IfNotPresent', false, undefined],
  ['ErrImageNeverPull', 'IfNotPresent', 'Never', false, 'v'],
  ['ErrImageNeverPull', 'Never', 'Always', false, undefined],
])(
  '%s of an image with the policy %s in the container and %s in a volume, while another container runs: %s, is about the volume %s',
  (reason, own, ofVolume, isRunning, volume) => {
    const status = { name: 'app', state: { waiting: { reason, message: 'image "i:1"' } } };
    const pod = {
      spec: {
        containers: [{ name: 'app', image: 'i:1', imagePullPolicy: own }, { name: 'other' }],
        volumes: [{ name: 'v', image: { reference: 'i:1', pullPolicy: ofVolume } }],
      },
      status: { containerStatuses: [status, { name: 'other', state: isRunning ? { running: {} } : {} }] },
    } as Pod;
    expect(wantedImage(pod, { name: 'app', status })).toMatchObject({ reference: 'i:1' });
    expect(wantedImage(pod, { name: 'app', status }).volume?.name).toBe(volume);
  },
);
