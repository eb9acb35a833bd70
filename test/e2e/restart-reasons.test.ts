/** Source: Init Containers, "Pod restart reasons". */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { uidOf } from '../../src/machinery/meta.ts';
import { createLog, systemTimers } from '../../src/platform/node-js.ts';
import { runCommandOk } from '../../src/platform/processes.ts';
import { containerdPaths } from '../../src/runtime/containerd/paths.ts';
import { connectRuntime } from '../../src/runtime/cri/cri-runtime.ts';
import { makeBusyboxArchive } from '../../src/runtime/images/local-images.ts';
import type { ContainerRuntime } from '../../src/runtime/runtime.ts';
import { linesOf, untilLogHasLines } from '../support/log-file.ts';
import { pod, SHARED } from '../support/manifests.ts';
import { inPhase, isReady, restarted, runs, signalFirst, statusOf } from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

let runtime: ContainerRuntime;
let socket: string;
test.beforeAll(async () => {
  socket = containerdPaths(lifepod.dataDir).socket;
  runtime = await connectRuntime({
    endpoint: `unix://${socket}`,
    log: createLog({ level: 'error' }),
    timers: systemTimers(),
  });
  const archive = join(lifepod.dataDir, 'other.tar');
  await makeBusyboxArchive(archive, { reference: 'docker.io/library/busybox:other' });
  await lifepod.cliOk('image', 'load', archive);
});
afterAll(() => runtime?.close());

const signal = AbortSignal.timeout(170_000);
const finished = (name: string): Promise<void> => lifepod.delete('pod', name, '--now', '--wait=false');
/** A container may be ready before it writes, so this waits for `count` lines. */
async function written(name: string, count: number): Promise<string[]> {
  const log = join(lifepod.dataDir, name, 'log');
  await untilLogHasLines(log, count);
  return linesOf(log);
}
const identity = (pod: Pod, ...names: string[]): string[] =>
  names.map((name) => `${name} ${statusOf(pod, name).containerID} ${statusOf(pod, name).restartCount}`);

async function killPause({ metadata }: Pod): Promise<void> {
  const [sandbox] = (await runtime.observe(metadata.uid ?? '', signal)).sandboxes;
  const tasks = await runCommandOk('ctr', ['-a', socket, '-n', 'k8s.io', 'tasks', 'ls']);
  const pid = Number(new RegExp(`^${sandbox?.id} +(\\d+) `, 'm').exec(tasks)?.[1]);
  expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toContain('pause');
  process.kill(pid, 'SIGKILL');
}

const note = (container: string) => ({ name: container, script: `echo ${container} >>/work/log`, ...SHARED.mount });
const lasting = (container: string) => ({
  ...note(container),
  script: `echo ${container} >>/work/log; trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done`,
});

/** The Pod has two init containers, a sidecar between them and two apps. Each container writes a line when it starts. */
const apply = (name: string, second = note('init-2')): Promise<void> =>
  lifepod.apply(
    pod(name, {
      init: [note('init-1'), { ...lasting('side'), restartPolicy: 'Always' }, second],
      app: [lasting('app'), lasting('other')],
      // The log is in a folder of the node, which the loss of a sandbox does not affect.
      spec: { volumes: [{ name: 'work', hostPath: { path: join(lifepod.dataDir, name), type: 'DirectoryOrCreate' } }] },
    }),
  );
async function started(name: string): Promise<Pod> {
  await apply(name);
  return record.until(name, isReady);
}
const BEGUN = ['init-1', 'side', 'init-2', 'app', 'other'];
/** The lines after the third are from the two apps, which start in any order. */
const sorted = (lines: string[]): string[] => [...lines.slice(0, 3), ...lines.slice(3).sort()];

describe.concurrent('init containers', () => {
  describe('the init containers run again', () => {
    test('init containers run again after the Pod has lost its sandbox because the pause process was killed', async () => {
      const before = await started('lost');
      await killPause(before);
      const again = await record.until('lost', (pod) => restarted('app', 1)(pod) && isReady(pod));
      expect(sorted((await written('lost', 10)).slice(5))).toEqual(BEGUN);
      for (const name of BEGUN) expect(statusOf(again, name)).toMatchObject({ restartCount: 1, ready: true });
      expect(statusOf(again, 'init-1').lastState?.terminated).toMatchObject({ exitCode: 0 });
      expect(statusOf(again, 'app').lastState?.terminated?.containerID).toBe(statusOf(before, 'app').containerID);
      // The containers that still ran in the lost sandbox got SIGTERM.
      const ends = ['app', 'other', 'side'].map((name) => statusOf(again, name).lastState?.terminated);
      expect(ends.map((end) => end?.exitCode)).toEqual([0, 0, 0]);
      expect(await record.event('lost', /Killing.*app/)).toBe('Normal Killing: Stopping container app');
      expect(again.metadata.uid).toBe(before.metadata.uid);
      expect(again.status?.startTime).toBe(before.status?.startTime);
      const observed = await runtime.observe(uidOf(before), signal);
      const now = observed.sandboxes.filter(({ ready }) => ready);
      expect(now).toMatchObject([{ attempt: 1, ips: [again.status?.podIP] }]);
      expect(await record.event('lost', /SandboxChanged/)).toBe(
        'Normal SandboxChanged: Pod sandbox changed, it will be killed and re-created.',
      );
      await finished('lost');
    });
  });

  describe('the init containers do not run again', () => {
    test('a new image of an init container restarts no container, and a new image of an app restarts only this app', async () => {
      const before = await started('image');
      await lifepod.kubectlOk('set', 'image', 'pod/image', 'init-1=busybox:other', 'init-2=busybox:other');
      const unchanged = await record.until(
        'image',
        ({ metadata, status }) => metadata.generation === 2 && status?.observedGeneration === 2,
      );
      expect(identity(unchanged, ...BEGUN)).toEqual(identity(before, ...BEGUN));
      await lifepod.kubectlOk('set', 'image', 'pod/image', 'app=busybox:other');
      const after = await record.until('image', (pod) => restarted('app', 1)(pod) && isReady(pod));
      expect(statusOf(after, 'app')).toMatchObject({
        image: 'busybox:other',
        restartCount: 1,
        lastState: { terminated: { exitCode: 0, containerID: statusOf(before, 'app').containerID } },
      });
      const others = BEGUN.filter((name) => name !== 'app');
      expect(identity(after, ...others)).toEqual(identity(before, ...others));
      expect((await written('image', 6)).slice(5)).toEqual(['app']);
      expect(await record.event('image', /Killing/)).toBe(
        'Normal Killing: Container app definition changed, will be restarted',
      );
      await lifepod.kubectlOk('set', 'image', 'pod/image', 'side=busybox:other');
      const sidecar = await record.until('image', (pod) => restarted('side', 1)(pod) && isReady(pod));
      expect((await written('image', 7)).slice(5)).toEqual(['app', 'side']);
      expect(statusOf(sidecar, 'side').image).toBe('busybox:other');
      await finished('image');
    });

    test('a Pod with restartPolicy Never fails when its sandbox is lost', async () => {
      const script = 'echo init >>/work/log';
      await lifepod.apply(
        pod('never', {
          init: [{ name: 'init', script, ...SHARED.mount }],
          app: [
            { name: 'app', script: 'trap "echo told >>/work/log; exit 7" TERM; sleep 3600 & wait', ...SHARED.mount },
          ],
          spec: {
            restartPolicy: 'Never',
            volumes: [{ name: 'work', hostPath: { path: join(lifepod.dataDir, 'never'), type: 'DirectoryOrCreate' } }],
          },
        }),
      );
      await killPause(await record.until('never', isReady));
      const failed = await record.until('never', inPhase('Failed'));
      expect(statusOf(failed, 'app')).toMatchObject({ restartCount: 0, state: { terminated: { exitCode: 7 } } });
      expect(statusOf(failed, 'init')).toMatchObject({ restartCount: 0, state: { terminated: { exitCode: 0 } } });
      expect(await written('never', 2)).toEqual(['init', 'told']);
      await finished('never');
    });

    test('init containers do not run again when the first one is removed from the runtime while a later one runs', async () => {
      await apply('passed', lasting('init-2'));
      const { metadata } = await record.until('passed', runs('init-2'));
      const { containers } = await runtime.observe(metadata.uid ?? '', signal);
      await runtime.removeContainer(containers.find(({ name }) => name === 'init-1')?.id ?? '', signal);
      await signalFirst(lifepod, 'passed', 'init-2', 'TERM');
      const ready = await record.until('passed', isReady);
      expect(sorted(await written('passed', 5))).toEqual(BEGUN);
      expect(statusOf(ready, 'init-1')).toMatchObject({ restartCount: 0, state: { terminated: { exitCode: 0 } } });
      await finished('passed');
    });

    test('init containers do not run again when an app container restarts', async () => {
      const before = await started('crash');
      await signalFirst(lifepod, 'crash', 'app', 'TERM');
      const after = await record.until('crash', (pod) => restarted('app', 1)(pod) && runs('app')(pod));
      expect((await written('crash', 6)).slice(5)).toEqual(['app']);
      expect(identity(after, 'init-1', 'side', 'init-2', 'other')).toEqual(
        identity(before, 'init-1', 'side', 'init-2', 'other'),
      );
      await finished('crash');
    });
  });
});

test('init containers do not run again when all are removed from the runtime, even after kill -9 of the engine', async () => {
  const before = await started('collected');
  const uid = uidOf(before);
  for (const { id, kind, state } of (await runtime.observe(uid, signal)).containers)
    if (kind === 'init' && state === 'exited') await runtime.removeContainer(id, signal);
  const names = async (): Promise<string[]> =>
    (await runtime.observe(uid, signal)).containers.map(({ name }) => name).sort();
  expect(await names()).toEqual(['app', 'other', 'side']);
  await signalFirst(lifepod, 'collected', 'app', 'TERM');
  const after = await record.until('collected', (pod) => restarted('app', 1)(pod) && isReady(pod));
  expect(statusOf(after, 'init-1')).toEqual(statusOf(before, 'init-1'));
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  await signalFirst(lifepod, 'collected', 'other', 'TERM');
  const later = await record.until('collected', (pod) => restarted('other', 1)(pod) && isReady(pod));
  for (const name of ['init-1', 'init-2', 'side']) expect(statusOf(later, name)).toEqual(statusOf(before, name));
  expect((await written('collected', 7)).slice(5).sort()).toEqual(['app', 'other']);
  await lifepod.delete('pod', 'collected', '--now');
});
