import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, expect, test } from 'vitest';
import { processesNaming } from '../../src/engine/leftovers.ts';
import { LAUNCHER, scratchFolder } from '../support/lifepod.ts';
import { pod, SHARED, WAIT } from '../support/manifests.ts';
import { lifepod, useOwnEngine } from '../support/own-engine.ts';

const scratch = scratchFolder();
afterAll(() => scratch.remove());
/** The file `creating` exists once `slow-runc` is creating a container, and `killed` once the engine has been killed meanwhile. */
const [creating, killed] = [join(scratch.path, 'creating'), join(scratch.path, 'killed')];
useOwnEngine(() => {
  // An OCI runtime whose first `create` of a container that is not a sandbox waits for the kill of the engine, and fails 3 s later.
  const program = join(scratch.path, 'slow-runc');
  const script = `#!/bin/sh
case "$*" in *' create '*)
  bundle=$(echo "$*" | sed 's/.*--bundle \\([^ ]*\\).*/\\1/')
  if [ ! -e ${creating} ] && grep -q '"io.kubernetes.cri.container-type":"container"' $bundle/config.json; then
    touch ${creating}
    until [ -e ${killed} ]; do sleep 0.1; done
    sleep 3
    exit 1
  fi
esac
exec runc "$@"
`;
  writeFileSync(program, script, { mode: 0o700 });
  return { options: ['--runtime-handler', `slow=${program}`] };
});

interface ContainerStatus {
  name: string;
  containerID: string;
  restartCount: number;
  lastState?: { terminated?: { reason?: string } };
}
interface PodStatus {
  podIP: string;
  initContainerStatuses?: ContainerStatus[];
  containerStatuses: ContainerStatus[];
}

const statusOf = async (name: string): Promise<PodStatus> =>
  (await lifepod.get<{ status: PodStatus }>('pod', name)).status;
const waitFor = (name: string, what: string): Promise<string> =>
  lifepod.kubectlOk('wait', `--for=${what}`, `pod/${name}`, '--timeout=100s');
const identity = (statuses: ContainerStatus[] = []): string[] =>
  statuses.map(({ name, containerID, restartCount }) => `${name} ${containerID} ${restartCount}`);

const containerds = () =>
  processesNaming(lifepod.dataDir).filter(({ commandLine }) => /\/?containerd$/.test(commandLine[0] ?? ''));

async function killContainerd(): Promise<void> {
  const [containerd, ...others] = containerds();
  expect(others).toEqual([]);
  process.kill(containerd?.pid ?? 0, 'SIGKILL');
}

/** interrupt() sends SIGINT to all processes of the command, as Ctrl+C on a terminal does. */
function upInForeground() {
  const args = ['up', '--data-dir', lifepod.dataDir, ...lifepod.options, '--log-level', 'error'];
  const child = spawn(LAUNCHER, args, { detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
  return {
    errors: child.stderr,
    interrupt: () => process.kill(-(child.pid ?? 0), 'SIGINT'),
    ended: once(child, 'exit'),
  };
}

test('after kill -9 of the engine, a running init container is adopted and continues, and no init container runs twice', async () => {
  const proceed = 'until [ -e /work/proceed ]; do usleep 50000; done';
  await lifepod.apply(
    pod('during-init', {
      init: [
        { name: 'first', script: 'echo first >>/work/ran', ...SHARED.mount },
        { name: 'second', script: `echo second >>/work/ran; echo waiting; ${proceed}`, ...SHARED.mount },
      ],
      app: [{ name: 'app', script: `cat /work/ran; ${WAIT}`, ...SHARED.mount }],
      // The test creates a file after the crash, which lets the second init container end.
      spec: { volumes: [{ name: 'work', hostPath: { path: `${lifepod.dataDir}/shared`, type: 'DirectoryOrCreate' } }] },
    }),
  );
  await waitFor('during-init', 'jsonpath={.status.initContainerStatuses[1].state.running}');
  const before = await statusOf('during-init');
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  expect(identity((await statusOf('during-init')).initContainerStatuses)).toEqual(
    identity(before.initContainerStatuses),
  );
  expect(await lifepod.kubectlOk('logs', 'during-init', '-c', 'second')).toBe('waiting\n');
  writeFileSync(`${lifepod.dataDir}/shared/proceed`, '');
  await waitFor('during-init', 'condition=Ready');
  expect(await lifepod.kubectlOk('logs', 'during-init', '-c', 'app')).toBe('first\nsecond\n');
  expect(identity((await statusOf('during-init')).initContainerStatuses)).toEqual(
    identity(before.initContainerStatuses),
  );
});

test.each([1, 2, 3])(
  'after kill -9 of the engine when %i of 4 init containers have completed, each completes once',
  async (completed) => {
    const name = `between-${completed}`;
    const step = (index: number): { name: string; script: string } => ({
      name: `init-${index}`,
      script: `usleep 100000; echo ${index} >>/work/ran`,
      ...SHARED.mount,
    });
    const seen = lifepod.until(['get', 'pods', '-w', '--field-selector', `metadata.name=${name}`], (line) =>
      line.includes(`Init:${completed}/4`),
    );
    const killed = seen.then(() => lifepod.kill('SIGKILL'));
    await lifepod.apply(
      pod(name, {
        init: [1, 2, 3, 4].map(step),
        app: [{ name: 'app', script: `cat /work/ran; ${WAIT}`, ...SHARED.mount }],
        spec: { volumes: SHARED.volumes },
      }),
    );
    await killed;
    await lifepod.up();
    await waitFor(name, 'condition=Ready');
    expect(await lifepod.kubectlOk('logs', name, '-c', 'app')).toBe('1\n2\n3\n4\n');
    // If the engine dies while a container starts, containerd kills the process. Such a start is not counted as a failure.
    const counts = (await statusOf(name)).initContainerStatuses?.map(({ restartCount }) => restartCount);
    expect(counts).toEqual([0, 0, 0, 0]);
  },
);

test.each([
  ['the engine', 'cut', () => lifepod.kill('SIGKILL')],
  ['the engine and containerd', 'cut-twice', () => Promise.all([lifepod.kill('SIGKILL'), killContainerd()])],
])(
  'after kill -9 of %s while a container is created, the container runs once, also with restartPolicy Never',
  async (_, name, kill) => {
    for (const file of [creating, killed]) rmSync(file, { force: true });
    await lifepod.apply({
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: 'slow' },
      handler: 'slow',
    });
    const created = new Promise<void>((resolve) => {
      const watcher = watch(scratch.path, (_, file) => {
        if (file !== 'creating') return;
        watcher.close();
        resolve();
      });
    });
    const app = [{ name: 'app', script: 'echo ran' }];
    await lifepod.apply(pod(name, { app, spec: { runtimeClassName: 'slow', restartPolicy: 'Never' } }));
    await created;
    await kill();
    writeFileSync(killed, '');
    await lifepod.up();
    await waitFor(name, 'jsonpath={.status.phase}=Succeeded');
    expect((await statusOf(name)).containerStatuses).toMatchObject([{ restartCount: 0 }]);
    expect(await lifepod.kubectlOk('logs', name)).toBe('ran\n');
  },
);

test('after kill -9 of the engine, a running app is adopted without a restart, keeps its address, and its log is readable', async () => {
  await lifepod.apply(pod('during-app', { app: [{ name: 'app', script: `echo begun; ${WAIT}` }] }));
  await waitFor('during-app', 'condition=Ready');
  await lifepod.kubectlOk('create', 'configmap', 'acknowledged', '--from-literal=kept=yes');
  const before = await statusOf('during-app');
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  await waitFor('during-app', 'condition=Ready');
  const after = await statusOf('during-app');
  expect(identity(after.containerStatuses)).toEqual(identity(before.containerStatuses));
  expect(after.podIP).toBe(before.podIP);
  expect(await lifepod.kubectlOk('logs', 'during-app')).toBe('begun\n');
  expect(await lifepod.kubectlOk('get', 'configmap', 'acknowledged', '-o', 'jsonpath={.data.kept}')).toBe('yes');
});

test('an app that ends while the engine is down is noticed at the next start', async () => {
  await lifepod.apply(
    pod('ends-alone', {
      app: [{ name: 'app', script: 'sleep 1; echo ended; exit 5' }],
      spec: { restartPolicy: 'Never' },
    }),
  );
  await waitFor('ends-alone', 'jsonpath={.status.containerStatuses[0].state.running}');
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  await waitFor('ends-alone', 'jsonpath={.status.phase}=Failed');
  expect(await statusOf('ends-alone')).toMatchObject({
    containerStatuses: [{ state: { terminated: { exitCode: 5 } } }],
  });
});

test('a delete acknowledged before a kill -9 is carried out after it', async () => {
  await lifepod.apply(pod('deleted', { app: [{ name: 'app', script: 'trap "" TERM; sleep 3600' }] }));
  await waitFor('deleted', 'condition=Ready');
  await lifepod.kubectlOk('delete', 'pod', 'deleted', '--grace-period=4', '--wait=false');
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  await lifepod.kubectlOk('wait', '--for=delete', 'pod/deleted', '--timeout=30s');
});

test('SIGTERM to the engine and Ctrl+C in the foreground leave Pods running, and the next start adopts them', async () => {
  const marker = '27182818';
  await lifepod.apply(pod('stays', { app: [{ name: 'app', script: `sleep ${marker} & ${WAIT}` }] }));
  await waitFor('stays', 'condition=Ready');
  const before = await statusOf('stays');
  await lifepod.kill('SIGTERM');
  expect(processesNaming(marker)).toHaveLength(1);

  const lock = watch(join(lifepod.dataDir, 'lock'));
  const starting = upInForeground();
  await once(lock, 'change');
  lock.close();
  starting.interrupt();
  expect(await text(starting.errors)).toMatch(/^lifepod: stopped by SIGINT; Pods continue to run: [^\n]+\n$/);
  expect(await starting.ended).toEqual([130, null]);
  expect(containerds()).toEqual([]);

  const running = upInForeground();
  const [line] = (await once(running.errors, 'data')) as [Buffer];
  expect(line.toString()).toContain(' is ready after ');
  running.interrupt();
  expect(await running.ended).toEqual([0, null]);
  expect(containerds()).toEqual([]);
  expect(processesNaming(marker)).toHaveLength(1);

  await lifepod.up();
  await waitFor('stays', 'condition=Ready');
  expect(identity((await statusOf('stays')).containerStatuses)).toEqual(identity(before.containerStatuses));
});

test('the engine restarts a containerd killed with SIGKILL and adopts the Pods again', async () => {
  await lifepod.apply(pod('survivor'));
  await waitFor('survivor', 'condition=Ready');
  const before = await statusOf('survivor');
  await killContainerd();
  await lifepod.apply(pod('newcomer', { init: [{ name: 'first', script: 'true' }] }));
  await waitFor('newcomer', 'condition=Ready');
  expect(identity((await statusOf('survivor')).containerStatuses)).toEqual(identity(before.containerStatuses));
  await lifepod.kubectlOk('delete', 'pod', 'survivor', 'newcomer');
});
