/**
 * The termination of Pods is interrupted by an outage of the engine, or of the engine and its containerd. The outage does not count against
 * the grace period.
 */

import { expect, test } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { parseTime } from '../../src/machinery/time.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { killContainerd } from '../support/containerd.ts';
import { type Fleet, fleet } from '../support/defer-fleet.ts';
import { deferPod, entry, gate, openGate, POST, TELLING } from '../support/defer-pods.ts';
import { lifepod, useOwnEngine } from '../support/own-engine.ts';
import { recordPods } from '../support/pods.ts';

useOwnEngine();

const timers = systemTimers();
const until = (at: number): Promise<void> => new Promise((resolve) => void timers.at(at, resolve));
const hook = (script: string): object => ({ lifecycle: { preStop: { exec: { command: ['sh', '-c', script] } } } });
const open = (names: readonly string[], ...gates: string[]): void => {
  for (const name of names) openGate(lifepod, name, ...gates);
};
const podsOf = async ({ namespace }: Fleet): Promise<Pod[]> =>
  (await lifepod.get<{ items: Pod[] }>('pods', '-n', namespace)).items;
const count = (log: readonly string[], line: string): number => log.filter((each) => each === line).length;

test('after an outage of the engine past the deadline, apps get their stop signal, extensions are granted, PostExit entries run', async () => {
  const GRACE_SECONDS = 40;
  const pods = await fleet(lifepod, 'late', 20);
  // The PreExit entry of early Pods ends during the outage. Slow Pods have extensions. Plain Pods have a hook and no entries.
  const [early, slow, plain] = [pods.names.slice(0, 4), pods.names.slice(4, 14), pods.names.slice(14)];
  const extension = { deferContainerGracePeriodExtensionInterval: 3, deferContainerGracePeriodExtensionCount: 2 };
  const entries = [entry('pre', gate('pre')), entry('post', ':', { ...POST, timeoutSeconds: 16 })];
  await pods.start((name) => {
    const app = plain.includes(name) ? { ...TELLING, ...hook(`echo hook >>/work/log; ${gate('hook')}`) } : TELLING;
    return deferPod(lifepod, name, plain.includes(name) ? [] : entries, {
      app: [app],
      spec: { terminationGracePeriodSeconds: GRACE_SECONDS, ...(slow.includes(name) ? extension : {}) },
    });
  });
  await pods.delete();
  const deletedAt = timers.now();
  await Promise.all([pods.untilLogged('begin pre', [...early, ...slow]), pods.untilLogged('hook', plain)]);
  await lifepod.kill('SIGKILL');
  // The containers that end now exit before the next engine starts. The other containers get the rest of their time from the next engine.
  open(early, 'pre');
  await until(deletedAt + (GRACE_SECONDS + 3) * 1000);
  open(plain, 'hook');
  await lifepod.up();
  const record = await recordPods(lifepod, pods.namespace);
  await pods.gone();
  const problems = await pods.problems((log, { pre, post }) => {
    const isPlain = log.includes('hook');
    // An app gets one stop signal. A PreExit entry whose gate stays closed ignores its stop signal, and is killed.
    const isStopped = count(log, 'app stops') === 1;
    if (isPlain) return isStopped;
    const ran = count(log, 'begin pre') === 1 && count(log, 'begin post') === 1 && count(log, 'end post') === 1;
    const isEarly = log.includes('end pre');
    const ended = isEarly ? pre?.exitCode === 0 : pre?.reason === 'DeadlineExceeded';
    return isStopped && ran && ended && post?.exitCode === 0;
  });
  expect(problems).toEqual([]);
  for (const name of early) expect(pods.log(name)).toContain('end pre');
  const extensionOf = (name: string): number =>
    Math.max(...record.history(name).map(({ pod }) => pod.status?.termination?.extendedSeconds ?? 0));
  record.end();
  expect(pods.names.filter((name) => extensionOf(name) === 6)).toEqual(slow);
  for (const life of (await pods.lives()).values()) {
    const app = life.filter(({ container }) => container === 'app').map(({ type }) => type);
    expect(app.indexOf('StopSignal')).toBeGreaterThan(0);
    expect(app.indexOf('Exited')).toBeGreaterThan(app.indexOf('StopSignal'));
  }
});

test('although the engine and containerd are killed repeatedly, each entry runs once, and deadlines move by the outages', async () => {
  const pods = await fleet(lifepod, 'both', 20);
  const app = {
    ...TELLING,
    script: `trap "echo app stops >>/work/log; ${gate('app')}; exit 0" TERM; while :; do sleep 3600 & wait $!; done`,
  };
  await pods.start((name) =>
    deferPod(lifepod, name, [entry('pre', gate('pre')), entry('post', gate('post'), POST)], {
      app: [{ ...app, ...hook('echo hook >>/work/log') }],
      spec: { terminationGracePeriodSeconds: 600 },
    }),
  );
  await pods.delete();
  const deadlineOf = ({ status }: Pod): number => parseTime(status?.termination?.deadline) ?? Number.NaN;
  const deadlines = new Map<string, number>();
  for (const [line, gateAfter] of [
    ['begin pre', 'pre'],
    ['app stops', 'app'],
    ['begin post', 'post'],
  ] as const) {
    await pods.untilLogged(line);
    for (const pod of await podsOf(pods)) {
      const { name } = pod.metadata;
      expect(deadlineOf(pod)).toBeGreaterThan(deadlines.get(name) ?? 0);
      deadlines.set(name, deadlineOf(pod));
    }
    killContainerd(lifepod);
    await lifepod.kill('SIGKILL');
    // Some containers end while neither the engine nor containerd runs.
    open(pods.names.slice(0, 10), gateAfter);
    await lifepod.up();
    open(pods.names, gateAfter);
  }
  await pods.gone();
  const problems = await pods.problems((log, { pre, post }) => {
    // A new agent may run a hook and send a stop signal again, but never starts an entry again.
    const steps = log.filter((line) => line !== 'hook');
    const rest = steps.filter((line, index) => line !== 'app stops' || steps[index - 1] !== line).join();
    const ran = rest === 'begin pre,end pre,app stops,begin post,end post' && log.includes('hook');
    return ran && [pre, post].every((end) => end?.exitCode === 0);
  });
  expect(problems).toEqual([]);
});
