/** containerd has lost the records of containers and sandboxes, while its CRI plugin still lists them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommandOk } from '../../src/platform/processes.ts';
import type { ContainerConfig, SandboxConfig } from '../../src/runtime/runtime.ts';
import { BUSYBOX, type RealRuntime, startRealRuntime } from './containerd-fixture.ts';

const never = new AbortController().signal;
let real: RealRuntime;
let serial = 0;
beforeAll(async () => {
  real = await startRealRuntime();
});
afterAll(() => real?.close());

const ctr = (...words: string[]) =>
  runCommandOk('ctr', ['--address', real.containerd.endpoint.slice('unix://'.length), '-n', 'k8s.io', ...words]);

/** Resolves with a sandbox whose only container has exited. */
async function initialized(): Promise<{ uid: string; sandbox: string; container: string }> {
  const { runtime } = real;
  const uid = `lost-${++serial}`;
  const config: SandboxConfig = {
    pod: { uid, namespace: 'default', name: uid },
    attempt: 0,
    hostname: uid,
    logDirectory: real.where.logDirectory,
    labels: {},
    annotations: {},
  };
  const sandbox = await runtime.runSandbox(config, never);
  const image = await runtime.imageStatus(BUSYBOX, never);
  const init: ContainerConfig = {
    pod: config.pod,
    name: 'init',
    kind: 'init',
    attempt: 0,
    imageId: image?.id ?? '',
    imageName: BUSYBOX,
    command: ['true'],
    env: [],
    mounts: [],
    logPath: `${uid}.log`,
    annotations: {},
    resources: {},
    security: {},
  };
  const container = await runtime.createContainer(sandbox, config, init, never);
  const end = new AbortController();
  const exited = new Promise<void>((resolve, reject) => {
    const look = (): void => {
      runtime.observe(uid, never).then(({ containers }) => {
        if (containers[0]?.state === 'exited') resolve();
      }, reject);
    };
    void runtime.events(look, end.signal);
  });
  await runtime.startContainer(container, never);
  await exited;
  end.abort();
  return { uid, sandbox, container };
}

/**
 * Deletes containerd's record of the container. ctr would fail while the container has a task, so this waits until the CRI plugin has
 * removed the task.
 */
async function loseRecord(container: string): Promise<void> {
  while ((await ctr('tasks', 'ls', '-q')).includes(container));
  await ctr('containers', 'rm', container);
}

const left = async (uid: string) => {
  const { sandboxes, containers } = await real.runtime.observe(uid, never);
  return { sandboxes: sandboxes.length, containers: containers.length };
};

test('a sandbox is removed although the record of an exited container in it is lost', async () => {
  const { uid, sandbox, container } = await initialized();
  await loseRecord(container);
  expect(await left(uid)).toEqual({ sandboxes: 1, containers: 1 });
  await real.runtime.stopSandbox(sandbox, never);
  await real.runtime.removeSandbox(sandbox, never);
  expect(await left(uid)).toEqual({ sandboxes: 0, containers: 0 });
  // The record of the container is deleted as well, so the next start of containerd reports no error about it.
  expect(await ctr('containers', 'ls', '-q')).not.toContain(container);
});

test('a container whose record is lost is removed; stopping it succeeds because it has exited', async () => {
  const { uid, sandbox, container } = await initialized();
  await loseRecord(container);
  await real.runtime.stopContainer(container, 0, never);
  await real.runtime.removeContainer(container, never);
  expect(await left(uid)).toEqual({ sandboxes: 1, containers: 0 });
  await real.runtime.stopSandbox(sandbox, never);
  await real.runtime.removeSandbox(sandbox, never);
});

test('a sandbox whose own record is lost is removed', async () => {
  const { uid, sandbox } = await initialized();
  await ctr('tasks', 'kill', '-s', 'KILL', sandbox);
  await loseRecord(sandbox);
  await real.runtime.stopSandbox(sandbox, never);
  await real.runtime.removeSandbox(sandbox, never);
  expect(await left(uid)).toEqual({ sandboxes: 0, containers: 0 });
});

test('stop and remove succeed for containers and sandboxes that do not exist', async () => {
  const { sandbox, container } = await initialized();
  for (let round = 0; round < 2; round++) {
    await real.runtime.stopContainer(container, 0, never);
    await real.runtime.removeContainer(container, never);
    await real.runtime.stopSandbox(sandbox, never);
    await real.runtime.removeSandbox(sandbox, never);
  }
});
