/** The grace period is divided between defer and app containers. src/simulation uses virtual time. */

import { describe, expect, test } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { parseTime } from '../../src/machinery/time.ts';
import {
  type DeferPodArguments,
  deferPod,
  entry,
  gate,
  logOf,
  openGate,
  POST,
  TELLING,
} from '../support/defer-pods.ts';
import { lifepod, record, useOwnEngine } from '../support/own-engine.ts';
import { ended, isReady, runs, statusOf } from '../support/pods.ts';

useOwnEngine();

async function started(...args: DeferPodArguments): Promise<Pod> {
  await lifepod.apply(deferPod(lifepod, ...args));
  return record.until(args[0], isReady);
}
const deletion = (name: string, ...options: string[]): Promise<string> =>
  lifepod.kubectlOk('delete', 'pod', name, '--wait=false', ...options);
const log = (name: string): string[] => logOf(lifepod, name);
const end = (name: string, of: string) => statusOf(record.now(name), of).state?.terminated;
/** Returns milliseconds since the start of the termination; NaN if the Pod lacks one of the times. */
const timeOf = ({ status }: Pod, field: 'deadline' | 'preExitDeadline'): number =>
  (parseTime(status?.termination?.[field]) ?? Number.NaN) - (parseTime(status?.termination?.startedAt) ?? Number.NaN);
const terminating = ({ status }: Pod): boolean => status?.termination !== undefined;
const grace = (terminationGracePeriodSeconds: number, more: object = {}) => ({
  spec: { terminationGracePeriodSeconds, ...more },
});
const heeds = (name: string): string => `trap "echo ${name} stops >>/work/log; exit 0" TERM; sleep 3600 & wait $!`;
const ignores = (name: string): string => `trap "echo ${name} stops >>/work/log" TERM; while :; do sleep 1; done`;
const DEAF_APP = { ...TELLING, script: 'exec sleep 3600' };

describe.concurrent('the time of defer containers', () => {
  test('timeoutSeconds counts from the turn of an entry: an entry that fails until its timeout leaves the next entry its own time', async () => {
    const failing = { restartPolicy: 'OnFailure', timeoutSeconds: 14 };
    await started('in-turn', [
      entry('notify', 'exit 1', failing),
      entry('backup', ':', { timeoutSeconds: 4 }),
      entry('last', ':', POST),
    ]);
    await deletion('in-turn', '--grace-period=60');
    await record.gone('in-turn');
    expect(end('in-turn', 'notify')?.exitCode).not.toBe(0);
    expect(end('in-turn', 'backup')).toMatchObject({ exitCode: 0, reason: 'Completed' });
    const attempts = log('in-turn').filter((line) => line === 'begin notify').length;
    expect(attempts).toBeGreaterThan(1);
    expect(log('in-turn').slice(attempts)).toEqual([
      'begin backup',
      'end backup',
      'app stops',
      'begin last',
      'end last',
    ]);
  });

  test('an app that ignores SIGTERM leaves PostExit entries their reserve, by default half of the grace period', async () => {
    await started('deaf', [entry('one', ':', POST)], { app: [DEAF_APP], ...grace(8) });
    await deletion('deaf');
    const ending = await record.until('deaf', terminating);
    expect([timeOf(ending, 'preExitDeadline'), timeOf(ending, 'deadline')]).toEqual([4000, 8000]);
    await record.gone('deaf');
    expect(end('deaf', 'app')?.exitCode).toBe(137);
    expect(end('deaf', 'one')).toMatchObject({ exitCode: 0, reason: 'Completed' });
  });

  test('the reserve is at most the sum that the timeouts of the PostExit entries need', async () => {
    const entries = [
      entry('one', ':', { ...POST, timeoutSeconds: 1 }),
      entry('two', ':', { ...POST, timeoutSeconds: 2 }),
    ];
    await started('timed', entries, grace(60));
    await deletion('timed');
    expect(timeOf(await record.until('timed', terminating), 'preExitDeadline')).toBe(53_000);
    await record.gone('timed');
    expect(log('timed')).toEqual(['app stops', 'begin one', 'end one', 'begin two', 'end two']);
  });

  test('with postExitGracePeriodSeconds, the PreExit stage ends before the reserve begins, and then apps stop', async () => {
    const entries = [entry('one', heeds('one')), entry('two'), entry('three', ':', POST)];
    await started('reserved', entries, grace(20, { postExitGracePeriodSeconds: 14 }));
    await deletion('reserved');
    const ending = await record.until('reserved', terminating);
    expect([timeOf(ending, 'preExitDeadline'), timeOf(ending, 'deadline')]).toEqual([6000, 20_000]);
    await record.gone('reserved');
    expect(log('reserved')).toEqual(['begin one', 'one stops', 'app stops', 'begin three', 'end three']);
    expect(end('reserved', 'one')?.reason).toBe('DeadlineExceeded');
    expect(end('reserved', 'two')).toMatchObject({ reason: 'Skipped', message: 'the PreExit stage had ended' });
    expect(end('reserved', 'three')?.reason).toBe('Completed');
  });

  test('an extension by count leaves the reserve unchanged', async () => {
    const entries = [entry('one', ignores('one')), entry('two', 'sleep 2', POST)];
    const count = { deferContainerGracePeriodExtensionInterval: 2, deferContainerGracePeriodExtensionCount: 1 };
    await started('extended', entries, { app: [DEAF_APP], ...grace(9, { ...count, postExitGracePeriodSeconds: 5 }) });
    await deletion('extended');
    const moved = await record.until('extended', (pod) => timeOf(pod, 'preExitDeadline') === 6000);
    expect(timeOf(moved, 'deadline')).toBe(11_000);
    await record.gone('extended');
    expect(log('extended')).toEqual(['begin one', 'one stops', 'begin two', 'end two']);
    expect(end('extended', 'app')?.exitCode).toBe(137);
    expect(end('extended', 'two')?.reason).toBe('Completed');
  });

  test('the PostExit stage has its reserve from the end of the apps on, and the deadline moves accordingly', async () => {
    const app = { ...TELLING, script: ignores('app') };
    const entries = [entry('one', ignores('one')), entry('two', `${gate('two')}; sleep 1`, POST)];
    await started('moved', entries, { app: [app], ...grace(8, { postExitGracePeriodSeconds: 4 }) });
    await deletion('moved');
    // The first entry is killed at 6 s, the app at 8 s.
    const moved = await record.until('moved', runs('two'));
    expect(timeOf(moved, 'deadline')).toBeGreaterThanOrEqual(12_000);
    expect(moved.status?.termination?.extendedSeconds ?? 0).toBe(0);
    openGate(lifepod, 'moved', 'two');
    await record.gone('moved');
    expect(log('moved')).toEqual(['begin one', 'one stops', 'app stops', 'begin two', 'end two']);
  });

  test('preStopPolicy AfterPreExit: hooks of apps start when the last PreExit entry has ended', async () => {
    const preStop = { exec: { command: ['sh', '-c', 'echo hook >>/work/log'] } };
    const app = { ...TELLING, lifecycle: { preStop } };
    const entries = [entry('one', gate('one')), entry('two'), entry('three', ':', POST)];
    await started('hooked', entries, { app: [app], spec: { preStopPolicy: 'AfterPreExit' } });
    await started('hooked-at-once', [entry('one', gate('one'))], { app: [app] });
    await Promise.all(['hooked', 'hooked-at-once'].map((name) => deletion(name)));
    await record.until('hooked-at-once', runs('one'));
    openGate(lifepod, 'hooked-at-once', 'one');
    await record.until('hooked', runs('one'));
    openGate(lifepod, 'hooked', 'one');
    await Promise.all(['hooked', 'hooked-at-once'].map((name) => record.gone(name)));
    expect(log('hooked')).toEqual([
      'begin one',
      'end one',
      'begin two',
      'end two',
      'hook',
      'app stops',
      'begin three',
      'end three',
    ]);
    expect(log('hooked-at-once').indexOf('hook')).toBeLessThan(log('hooked-at-once').indexOf('end one'));
  });

  test('deletionTimestamp stays the same when the deadline moves', async () => {
    const count = { deferContainerGracePeriodExtensionInterval: 3, deferContainerGracePeriodExtensionCount: 5 };
    await started('fixed', [entry('one', gate('one'))], grace(3, count));
    await deletion('fixed');
    await record.until('fixed', (pod) => timeOf(pod, 'deadline') === 6000);
    openGate(lifepod, 'fixed', 'one');
    await record.until('fixed', ended('one'));
    await record.gone('fixed');
    const times = record.history('fixed').flatMap(({ pod }) => pod.metadata.deletionTimestamp ?? []);
    expect(new Set(times).size).toBe(1);
  });
});

// This test does not run concurrently with others, because its containers have little time to start.
test('kubectl delete --now: each container gets its stop signal 2 s before the kill, and PostExit entries run', async () => {
  const app = { ...TELLING, script: ignores('app') };
  const entries = [entry('one', ignores('one')), entry('two', ignores('two'), POST)];
  await started('at-once', entries, { app: [app] });
  await deletion('at-once', '--now');
  await record.until('at-once', terminating);
  const began = Date.now();
  // According to the specification, the Pod ends after about 9 s. The rest of the limit allows for a slow machine.
  expect((await record.gone('at-once')) - began).toBeLessThan(13_000);
  // The log lines of the first entry are ignored, because the entry may not have had time to start.
  const steps = log('at-once').filter((line) => !line.includes('one'));
  expect(steps).toEqual(['app stops', 'begin two', 'two stops']);
  for (const of of ['one', 'two', 'app']) expect(end('at-once', of)?.exitCode).toBe(137);
});
