/**
 * Containers have the scores of their QoS class. The engine, containerd and shims get lower scores if permitted. What the engine inherits
 * from the shell that starts it, a score and a umask, does not reach containers.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import type { Pod } from '../../../src/api/generated/types.ts';
import { runCommandOk } from '../../../src/platform/processes.ts';
import { containerdPaths } from '../../../src/runtime/containerd/paths.ts';
import { findContainerd, findShims } from '../../../src/runtime/containerd/process-table.ts';
import { killContainerd } from '../../support/containerd.ts';
import { LAUNCHER } from '../../support/lifepod.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';

/** Some desktops and supervisors start programs with a score above 0. */
const GIVEN = 300;
const capabilities = BigInt(`0x${/^CapEff:\s*(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]}`);
/** CAP_SYS_RESOURCE, without which no process can get a lower score than this process has. */
const mayLower = ((capabilities >> 24n) & 1n) === 1n;
const [engineScore, shimScore] = mayLower ? [-999, -998] : [0, 1];

const scoreOf = (pid: number | 'self'): number => Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'));

useOwnEngine();
beforeAll(async () => {
  expect(mayLower || scoreOf('self') === 0, 'this process has the score 0').toBe(true);
  await lifepod.kill('SIGTERM');
  const up = ['up', '--detach', '--data-dir', lifepod.dataDir, ...lifepod.options];
  const strictly = ['sh', '-c', 'umask 077; exec "$@"', 'sh', LAUNCHER, ...up];
  await runCommandOk('choom', ['-n', String(GIVEN), '--', ...strictly]);
});

const paths = () => containerdPaths(lifepod.dataDir);
const expectLowered = (): void => {
  expect(scoreOf(lifepod.pid())).toBe(engineScore);
  expect(findContainerd(paths()).map(scoreOf)).toEqual([engineScore]);
  const shims = findShims(paths()).map(scoreOf);
  expect(shims.length).toBeGreaterThan(0);
  // Without CAP_SYS_RESOURCE, a new shim has the score 1, and a shim that a new engine finds gets the score 0.
  for (const score of shims) expect([shimScore, engineScore]).toContain(score);
};

const SHOW = 'cat /proc/self/oom_score_adj';

test('the OOM scores of the engine, containerd and shims are lowered if permitted, and containers keep those of their QoS class', async () => {
  const resources = { resources: { requests: { cpu: '10m' } } };
  await lifepod.apply(
    pod('best-effort', {
      init: [{ name: 'init', script: SHOW }],
      app: [{ name: 'app', script: `${SHOW}; ${WAIT}` }],
    }),
  );
  await lifepod.apply(pod('burstable', { app: [{ name: 'app', script: `${SHOW}; ${WAIT}`, ...resources }] }));
  await lifepod.wait('--for=condition=Ready', 'pod/best-effort', 'pod/burstable');
  expectLowered();
  const shown = async (name: string, container: string): Promise<string> =>
    (await lifepod.kubectlOk('logs', name, '-c', container)).trim();
  expect(await shown('best-effort', 'init')).toBe('1000');
  expect(await shown('best-effort', 'app')).toBe('1000');
  expect(await shown('burstable', 'app')).toBe('999');
  expect(await lifepod.execOk('burstable', '--', 'cat', '/proc/self/oom_score_adj')).toBe('999\n');
});

test('any user in a container can read the files of the image and of the network, whatever the umask of the shell that starts the engine', async () => {
  const umaskOf = (pid: number) => /^Umask:\s*(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  expect([lifepod.pid(), ...findContainerd(paths())].map(umaskOf)).toEqual(['0022', '0022']);
  const script =
    'ls /bin /var/run/secrets/kubernetes.io/serviceaccount && cat /etc/hostname /etc/hosts /etc/resolv.conf && echo >/dev/null';
  const spec = { restartPolicy: 'Never', securityContext: { runAsUser: 1000 } };
  await lifepod.apply(pod('reader', { app: [{ name: 'app', script }], spec }));
  await lifepod.wait('--for=jsonpath={.status.phase}=Succeeded', 'pod/reader');
});

test('the OOM scores of a new engine, a new containerd and the existing shims are lowered', async () => {
  for (const pid of findShims(paths())) writeFileSync(`/proc/${pid}/oom_score_adj`, String(GIVEN));
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  expectLowered();
  const [before] = findContainerd(paths());
  killContainerd(lifepod);
  await lifepod.apply(pod('later', { app: [{ name: 'app', script: `${SHOW}; ${WAIT}` }] }));
  await lifepod.wait('--for=condition=Ready', 'pod/later');
  expect(findContainerd(paths())).not.toContain(before);
  expectLowered();
  expect(await lifepod.kubectlOk('logs', 'later')).toBe('1000\n');
});

test('lifepod status warns if the engine is not permitted to lower its OOM score', async () => {
  const risk = /^warning {3}when memory runs out, the kernel may kill lifepod before Pods \(oom_score_adj: engine 0, /m;
  const text = (await lifepod.cli('status')).stdout;
  expect(risk.test(text), text).toBe(!mayLower);
  const one = await lifepod.get<Pod>('pod', 'later');
  expect(one.status?.containerStatuses?.[0]?.restartCount).toBe(0);
});
