/** The machine's containerd is down at the start of the engine, and containers of lifepod still run. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, symlinkSync, watch, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect, test } from 'vitest';
import type { Pod } from '../../../src/api/generated/types.ts';
import { type Containerd, startContainerd } from '../../../src/runtime/containerd/containerd.ts';
import { containerdPaths } from '../../../src/runtime/containerd/paths.ts';
import { type RealRuntime, startRealRuntime } from '../../integration/containerd-fixture.ts';
import { LAUNCHER } from '../../support/lifepod.ts';
import { pod } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';

let machine: RealRuntime;
let next: Containerd | undefined;
afterAll(async () => {
  await next?.stop();
  await machine?.close();
});
useOwnEngine(async () => {
  machine = await startRealRuntime();
  // lifepod looks for the state of the machine's containerd in the folder of the socket. The state of the test's containerd is elsewhere.
  const { state, socket } = containerdPaths(machine.where.dataDir);
  const tasks = 'io.containerd.runtime.v2.task';
  mkdirSync(join(state, tasks), { recursive: true });
  symlinkSync(join(state, tasks), join(dirname(socket), tasks));
  return { options: ['--container-runtime-endpoint', machine.containerd.endpoint] };
});

async function upWaiting(
  ...options: string[]
): Promise<{ child: ChildProcess; ended: Promise<unknown[]>; lines: string[] }> {
  const args = ['up', ...options, '--data-dir', lifepod.dataDir, ...lifepod.options];
  const child = spawn(LAUNCHER, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'exit');
  const waits = `lifepod is waiting for the node to be ready: the container runtime at ${machine.containerd.endpoint} does not answer; start it`;
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      lines.push(line);
      if (line === waits) resolve();
    });
    child.once('exit', () => reject(new Error(lines.join('\n'))));
  });
  return { child, ended, lines };
}

test('lifepod up waits for containerd or SIGINT, and an init container that ends before containerd starts does not run again', async () => {
  const trace = join(machine.where.dataDir, 'trace');
  mkdirSync(trace);
  const script = 'until test -e /trace/go; do sleep 0.1; done; echo ran >>/trace/ran';
  const mount = { name: 'trace', mountPath: '/trace' };
  const volumes = [{ name: 'trace', hostPath: { path: trace } }];
  await lifepod.apply(pod('kept', { init: [{ name: 'init', script, volumeMounts: [mount] }], spec: { volumes } }));
  const started = '{.status.initContainerStatuses[0].state.running.startedAt}';
  await lifepod.wait(`--for=jsonpath=${started}`, 'pod/kept');
  await lifepod.kill('SIGKILL');
  await machine.containerd.stop();

  const changed = await lifepod.cli('up', '--detach', '--container-runtime-endpoint', '');
  expect(changed).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^lifepod: the runtime at \S+ does not answer, and 1 Pod of \S+ runs in it, so another runtime would run it a second time: start it, then end it /,
    ),
  });

  for (const options of [[], ['--detach']]) {
    const { child, ended } = await upWaiting(...options);
    child.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
  }

  const { ended, lines } = await upWaiting('--detach');
  const watcher = watch(trace);
  writeFileSync(join(trace, 'go'), '');
  while (!existsSync(join(trace, 'ran'))) await once(watcher, 'change');
  watcher.close();
  next = await startContainerd(machine.where.options);
  expect(await ended, lines.join('\n')).toEqual([0, null]);
  await lifepod.wait('--for=condition=Ready', 'pod/kept');
  const { status } = await lifepod.get<Pod>('pod', 'kept');
  expect(status?.initContainerStatuses?.[0]).toMatchObject({
    restartCount: 0,
    state: { terminated: { exitCode: 0, reason: 'Completed' } },
  });
  expect(readFileSync(join(trace, 'ran'), 'utf8')).toBe('ran\n');
});
