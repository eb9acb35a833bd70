/** A machine runs `lifepod shutdown-node` when it shuts down. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Node, Pod } from '../../src/api/generated/types.ts';
import { SHUT_DOWN_NODE } from '../../src/cli/up.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { lifepod, record as pods, recordAgain, useOwnEngine } from '../support/own-engine.ts';
import { condition, inPhase, isReady, statusOf, waitsFor } from '../support/pods.ts';

const MESSAGE = 'Pod was terminated in response to imminent node shutdown.';
useOwnEngine({
  options: ['--shutdown-grace-period', '20s', '--shutdown-grace-period-critical-pods', '12s'],
});

const ENDS_LATE = 'trap "sleep 3; exit 0" TERM; while :; do sleep 3600 & wait $!; done';
const startOf = ({ status }: Pod): string | undefined => status?.startTime;
const endedAt = (name: string, container = 'app'): number =>
  Date.parse(statusOf(pods.now(name), container).state?.terminated?.finishedAt ?? '');

it('shutdown-node ends Pods by priority within their periods and refuses others; the next start runs wanted Pods again', async () => {
  const late = { app: [{ name: 'app', script: ENDS_LATE }] };
  const cpus = Number((await lifepod.get<Node>('node', 'node-1')).status?.allocatable?.['cpu']);
  const asking = (milli: number) => ({ resources: { requests: { cpu: `${milli}m` } } });
  const manifests = [
    pod('common', { app: [{ name: 'app', script: ENDS_LATE, ...asking(200) }] }),
    pod('critical', { ...late, spec: { priorityClassName: 'system-node-critical' } }),
    pod('with-list', {
      defer: [{ name: 'last', script: 'sleep 1' }],
      spec: { terminationGracePeriodSeconds: 600 },
    }),
    pod('deaf', {
      app: [{ name: 'app', script: 'trap "" TERM; while :; do sleep 3600; done' }],
      spec: { terminationGracePeriodSeconds: 600 },
    }),
    pod('completed', { app: [{ name: 'app', script: 'true' }], spec: { restartPolicy: 'Never' } }),
  ];
  for (const manifest of manifests) await lifepod.apply(manifest);
  for (const name of ['common', 'critical', 'with-list', 'deaf']) await pods.until(name, isReady);
  await pods.until('completed', inPhase('Succeeded'));
  // This Pod would fit as soon as the Pod `common` has ended.
  await lifepod.apply(pod('waiting', { app: [{ name: 'app', script: WAIT, ...asking(cpus * 1000 - 100) }] }));
  await pods.event('waiting', /FailedScheduling/);
  const folder = join(lifepod.dataDir, 'manifests');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'fixed.json'), JSON.stringify(pod('fixed', { app: [{ name: 'app', script: WAIT }] })));
  await pods.until('fixed-node-1', isReady);

  const shutdown = lifepod.cliOk('shutdown-node');
  await pods.until('common', (seen) => condition(seen, 'DisruptionTarget') !== undefined);
  const { status } = await lifepod.get<Node>('node', 'node-1');
  expect(status?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
    status: 'False',
    reason: 'KubeletNotReady',
    message: 'node is shutting down',
  });
  await lifepod.apply(pod('too-late', { spec: { nodeName: 'node-1' } }));
  expect((await pods.until('too-late', inPhase('Failed'))).status).toMatchObject({
    reason: 'NodeShutdown',
    message: 'Pod was rejected: Pod was rejected as the node is shutting down.',
  });
  expect(condition(pods.now('critical'), 'DisruptionTarget')).toBeUndefined();
  expect(await shutdown).toContain('the Pods have ended');

  await lifepod.up();
  await recordAgain();
  for (const name of ['common', 'critical', 'with-list', 'deaf']) {
    const ended: Pod = await pods.until(name, inPhase('Failed'));
    expect(ended.status).toMatchObject({ reason: 'Terminated', message: MESSAGE });
    expect(condition(ended, 'DisruptionTarget')).toMatchObject({ reason: 'TerminationByKubelet', message: MESSAGE });
    expect(statusOf(ended, 'app').restartCount).toBe(0);
  }
  expect(pods.now('completed').status?.phase).toBe('Succeeded');
  expect(pods.now('with-list').status?.termination?.reason).toBe('NodeShutdown');
  expect(statusOf(pods.now('with-list'), 'last').state?.terminated?.reason).toBe('Completed');
  // The Pod `deaf` is killed after the 8 s of its priority group, and only then do critical Pods get their stop signal.
  expect(statusOf(pods.now('deaf'), 'app').state?.terminated?.exitCode).toBe(137);
  expect(endedAt('critical') - endedAt('common')).toBeGreaterThanOrEqual(4_000);
  expect(statusOf(pods.now('critical'), 'app').state?.terminated?.exitCode).toBe(0);
  await pods.until('fixed-node-1', isReady);
  await pods.until('waiting', isReady);
  await lifepod.apply(pod('afterwards'));
  await pods.until('afterwards', isReady);
});

it('shutdown-node restarts an engine that is killed during the shutdown, and ends the other Pods by priority ranges', async () => {
  await lifepod.kill('SIGTERM');
  lifepod.options.push('--shutdown-grace-period-by-pod-priority', '2000000000=9,0=5');
  await lifepod.up();
  await recordAgain();
  const deaf = { app: [{ name: 'app', script: 'trap "" TERM; while :; do sleep 3600; done' }] };
  const names = ['deaf-again', 'critical-again', 'imageless'];
  await lifepod.apply(pod('deaf-again', { ...deaf, spec: { terminationGracePeriodSeconds: 600 } }));
  await lifepod.apply(pod('critical-again', { spec: { priorityClassName: 'system-cluster-critical' } }));
  await lifepod.apply(pod('imageless', { app: [{ name: 'app', script: WAIT, image: '127.0.0.1:1/nothing:1' }] }));
  for (const name of ['deaf-again', 'critical-again']) await pods.until(name, isReady);
  await pods.until('imageless', waitsFor('app', 'ErrImagePull', 'ImagePullBackOff'));

  const server = ['config', 'view', '-o', 'jsonpath={.clusters[0].cluster.server}'];
  const before = await lifepod.kubectlOk(...server);
  const engine = lifepod.pid();
  const shutdown = lifepod.cliOk('shutdown-node');
  await pods.until('deaf-again', (seen) => condition(seen, 'DisruptionTarget') !== undefined);
  process.kill(engine, 'SIGKILL');
  pods.end();
  expect(await shutdown).toMatch(
    /the engine exited before it had ended all Pods\n.*starting it.*\nending the Pods.*\nthe Pods have ended;/,
  );
  expect(await lifepod.cliOk('shutdown-node')).toContain('nothing to do');

  // The engine that shutdown-node started used a free port. The data folder contains the port of the previous engine, so the next start
  // uses that port without --port.
  lifepod.options.splice(lifepod.options.indexOf('--port'), 2);
  await lifepod.up();
  expect(await lifepod.kubectlOk(...server)).toBe(before);
  await recordAgain();
  for (const name of names)
    expect((await pods.until(name, inPhase('Failed'))).status).toMatchObject({
      reason: 'Terminated',
      message: MESSAGE,
    });
  expect(statusOf(pods.now('deaf-again'), 'app').state?.terminated?.exitCode).toBe(137);
  expect(statusOf(pods.now('critical-again'), 'app').state?.terminated?.exitCode).toBe(0);
  expect(endedAt('critical-again')).toBeGreaterThanOrEqual(endedAt('deaf-again'));
});

it('a static Pod whose shutdown a killed engine left unfinished is started again after the next engine has ended it', async () => {
  const manifest = pod('late', { app: [{ name: 'app', script: ENDS_LATE }] });
  writeFileSync(join(lifepod.dataDir, 'manifests', 'late.json'), JSON.stringify(manifest));
  const before = await pods.until('late-node-1', isReady);
  process.kill(lifepod.pid(), SHUT_DOWN_NODE);
  await pods.until('late-node-1', (seen) => condition(seen, 'DisruptionTarget') !== undefined);
  await lifepod.kill('SIGKILL');

  await lifepod.up();
  await recordAgain();
  const after = await pods.until('late-node-1', (seen) => isReady(seen) && startOf(seen) !== startOf(before));
  expect(statusOf(after, 'app').restartCount).toBe(0);
});
