import { expect, it } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { ActionOf } from '../../lifecycle/types.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import {
  type ContainerConfig,
  type ImageInfo,
  OutcomeUnknownError,
  type SandboxConfig,
} from '../../runtime/runtime.ts';
import type { PodEnvironment } from '../container/container-config.ts';
import { type ContainerPorts, createContainerActions } from './container-actions.ts';
import type { PodLimits } from './pod-limits.ts';

const { signal } = new AbortController();
const pod = podOf({ containers: [containerOf('app')] });
const info: ImageInfo = { id: 'i', tags: [], digests: [], sizeBytes: 7 };
const about = { container: 'app', attempt: 2, image: 'busybox:1.28' };
const check: ActionOf<'checkImage'> = { kind: 'checkImage', mustExist: false, ...about };
const pull: ActionOf<'pullImage'> = { kind: 'pullImage', ...about };
const start: ActionOf<'startContainer'> = {
  ...about,
  kind: 'startContainer',
  containerKind: 'app',
  sandboxId: 's',
  imageId: 'i',
  backoffSeconds: 20,
};
const absent = { image: { container: 'app', state: { attempt: 2, image: 'busybox:1.28', state: 'absent' } } };
const present = {
  image: { container: 'app', state: { attempt: 2, image: 'busybox:1.28', state: 'present', imageId: 'i' } },
};
const noProgress = (): void => undefined;
const env: PodEnvironment = {
  nodeName: 'n',
  hostIps: [],
  podIps: [],
  allocatable: {},
  services: [],
  memoryCapacityBytes: 1,
  configMap: () => undefined,
  secret: () => undefined,
  volumePath: () => '',
  dns: { clusterDns: [], clusterDomain: 'cluster.local', host: { servers: [], searches: [], options: [] } },
  podDirectory: '/p',
  logsRoot: '/l',
  seccompRoot: '',
};

/** `images`: the runtime finds the first of these for any reference. */
function actionsOf(images: ImageInfo[] = [info]) {
  const timers = createVirtualTimers();
  const calls: unknown[][] = [];
  const failing = new Map<string, Error>();
  const call = async <T>(name: string, args: unknown[], answer: T): Promise<T> => {
    calls.push([name, ...args]);
    const error = failing.get(name);
    if (error !== undefined) throw error;
    return answer;
  };
  const configs: { sandbox: SandboxConfig; container: ContainerConfig }[] = [];
  const ports: ContainerPorts = {
    timers,
    runtime: {
      imageStatus: (reference) => call('status', [reference], images[0]),
      createContainer(sandboxId, sandbox, container) {
        configs.push({ sandbox, container });
        return call('create', [sandboxId], 'c');
      },
      startContainer: (id) => call('start', [id], undefined),
    },
    environment: (_pod, container) => call('environment', [container?.name], env),
    prepareContainer: (_pod, { name }, attempt, facts) => call('prepare', [name, attempt, facts === env], undefined),
    async pullImage(of, reference, progress) {
      timers.advance(30);
      progress({ state: 'waiting' });
      return call('pull', [of === pod, reference], { info, millis: 10 });
    },
  };
  const limits = { ensure: (of: typeof pod) => call('limits', [of === pod], undefined) } as unknown as PodLimits;
  const actions = createContainerActions(ports, limits);
  const names = (): unknown[] => calls.map(([name]) => name);
  return { actions, calls, failing, configs, names, images };
}

it.each<[string, ImageInfo[], object]>([
  ['a present image', [info], present],
  ['an absent image', [], absent],
])('checkImage reports %s', async (_, images, expected) => {
  const { actions, calls } = actionsOf(images);
  expect(await actions.checkImage(check, signal)).toEqual(expected);
  expect(calls).toEqual([['status', 'busybox:1.28']]);
});

it('checkImage reports a present image that must exist', async () => {
  expect(await actionsOf().actions.checkImage({ ...check, mustExist: true }, signal)).toEqual(present);
});

it('checkImage fails if an image that must exist is absent', async () => {
  await expect(actionsOf([]).actions.checkImage({ ...check, mustExist: true }, signal)).rejects.toMatchObject({
    reason: 'ErrImageNeverPull',
    message: 'Container image "busybox:1.28" is not present with pull policy of Never',
  });
});

it('checkImage names the image that it could not inspect', async () => {
  const { actions, failing } = actionsOf();
  failing.set('status', new Error('no disk'));
  await expect(actions.checkImage(check, signal)).rejects.toMatchObject({
    reason: 'ImageInspectError',
    message: 'Failed to inspect image "busybox:1.28": no disk',
  });
});

it.each(['checkImage', 'pullImage'] as const)('%s refuses a malformed image name without a call', async (kind) => {
  const { actions, calls } = actionsOf();
  const image = 'Bad//name';
  const result =
    kind === 'checkImage'
      ? actions.checkImage({ ...check, image }, signal)
      : actions.pullImage({ ...pull, image }, pod, noProgress, signal);
  await expect(result).rejects.toMatchObject({ reason: 'InvalidImageName' });
  expect(calls).toEqual([]);
});

it('pullImage reports the durations with and without waiting, the size and the progress', async () => {
  const { actions, calls } = actionsOf();
  const seen: unknown[] = [];
  const pulled = { millis: 10, withWaitingMillis: 30, sizeBytes: 7 };
  expect(await actions.pullImage(pull, pod, (progress) => void seen.push(progress), signal)).toEqual({
    image: { container: 'app', state: { ...present.image.state, pulled } },
  });
  expect(seen).toEqual([{ state: 'waiting' }]);
  expect(calls).toEqual([['pull', true, 'busybox:1.28']]);
});

it('a refused pull fails with the message of the registry', async () => {
  const { actions, failing } = actionsOf();
  failing.set('pull', new Error('denied'));
  await expect(actions.pullImage(pull, pod, noProgress, signal)).rejects.toMatchObject({
    reason: 'ErrImagePull',
    message: 'denied',
  });
});

it('a start prepares the container after the limits and the image are known, then creates and starts it', async () => {
  const { actions, calls, configs } = actionsOf();
  expect(await actions.start(start, pod, signal)).toEqual({});
  expect(calls).toEqual([
    ['environment', 'app'],
    ['status', 'i'],
    ['limits', true],
    ['prepare', 'app', 2, true],
    ['create', 's'],
    ['start', 'c'],
  ]);
  expect(configs).toMatchObject([
    {
      sandbox: { attempt: 0, pod: { name: 'web' } },
      container: {
        name: 'app',
        kind: 'app',
        attempt: 2,
        imageId: 'i',
        imageName: 'busybox:1.28',
        annotations: { 'lifepod/backoff-seconds': '20' },
      },
    },
  ]);
  expect(configs[0]?.container).not.toHaveProperty('targetContainerId');
});

it('a start passes the container whose process namespace is shared to the runtime', async () => {
  const { actions, configs } = actionsOf();
  await actions.start({ ...start, targetId: 'target' }, pod, signal);
  expect(configs[0]?.container.targetContainerId).toBe('target');
});

it('a start of a container that is not in the spec fails without a call', async () => {
  const { actions, calls } = actionsOf();
  await expect(actions.start({ ...start, container: 'gone' }, pod, signal)).rejects.toMatchObject({
    reason: 'CreateContainerConfigError',
    message: 'no container gone in the spec',
  });
  expect(calls).toEqual([]);
});

it('a start whose image was removed reports it as absent and creates nothing', async () => {
  const { actions, names } = actionsOf([]);
  expect(await actions.start(start, pod, signal)).toEqual(absent);
  expect(names()).toEqual(['environment', 'status', 'limits']);
});

it.each(['checkImage', 'pullImage'] as const)('a start uses the image that an earlier %s found', async (kind) => {
  const { actions, names } = actionsOf();
  if (kind === 'checkImage') await actions.checkImage(check, signal);
  else await actions.pullImage(pull, pod, noProgress, signal);
  await actions.start(start, pod, signal);
  await actions.start(start, pod, signal);
  expect(names().slice(1)).not.toContain('status');
});

it.each([
  [new Error('no such image'), { reason: 'CreateContainerError', message: 'no such image' }],
  [new OutcomeUnknownError('no answer'), { name: 'OutcomeUnknownError' }],
])('after a failed creation, the next start looks the image up again: %s', async (error, expected) => {
  const { actions, failing, names, images, calls } = actionsOf();
  await actions.checkImage(check, signal);
  failing.set('create', error);
  await expect(actions.start(start, pod, signal)).rejects.toMatchObject(expected);
  expect(names()).not.toContain('start');
  failing.clear();
  images.length = 0;
  calls.length = 0;
  expect(await actions.start(start, pod, signal)).toEqual(absent);
  expect(names()).toContain('status');
});

it('a container that was created and does not start fails with its own reason', async () => {
  const { actions, failing } = actionsOf();
  failing.set('start', new Error('no such command'));
  await expect(actions.start(start, pod, signal)).rejects.toMatchObject({
    reason: 'RunContainerError',
    message: 'no such command',
  });
});

it.each(['environment', 'limits', 'prepare'])('no container is created if the step %s fails', async (step) => {
  const { actions, failing, names } = actionsOf();
  failing.set(step, new Error('broken'));
  await expect(actions.start(start, pod, signal)).rejects.toThrow('broken');
  expect(names()).not.toContain('create');
});
