import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { cgroupRootOf } from '../../../src/node/resources/pod-cgroups.ts';
import { limitsSwap } from '../../../src/platform/control-groups/cgroups.ts';
import {
  containerGroup,
  containerShares,
  groupExists,
  groupIn,
  limitsOf,
  podGroup,
  processesOf,
  shares,
  swapBytesOf,
} from '../../support/control-groups.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, record, recordAgain, useOwnEngine } from '../../support/own-engine.ts';
import { ended, isReady, OOM_REASONS, restarted, statusOf } from '../../support/pods.ts';

useOwnEngine({ options: ['--pod-pids-limit', '40'] });

const limit = (cpu: string, memory: string): object => ({ resources: { limits: { cpu, memory } } });
const request = (cpu: string, memory: string): object => ({ resources: { requests: { cpu, memory } } });
const waiting = (name: string, more: object) => ({ name, script: WAIT, ...more });
const MIB = 1024 * 1024;

const scoreOf = (group: string): number => Number(readFileSync(`/proc/${processesOf(group)[0]}/oom_score_adj`, 'utf8'));
const own = Number(readFileSync('/proc/self/oom_score_adj', 'utf8'));
const mayLower = (BigInt(`0x${/^CapEff:\s*(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]}`) >> 24n) & 1n;
/** Without CAP_SYS_RESOURCE, the score cannot be lower than that of the runtime, which equals `own`. */
const score = (wanted: number): number => (mayLower === 1n ? wanted : Math.max(wanted, own));
const memoryBytes = Number(/^MemTotal:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]) * 1024;
const burstableScore = (requestedBytes: number): number =>
  Math.min(999, 1000 - Math.floor((1000 * requestedBytes) / memoryBytes));

describe('the control groups of Pods', () => {
  test('the control group of a Guaranteed Pod is directly in kubepods, with limits for the Pod and each container', async () => {
    await lifepod.apply(
      pod('guaranteed', { app: [waiting('app', limit('100m', '64Mi')), waiting('other', limit('50m', '32Mi'))] }),
    );
    const ready = await record.until('guaranteed', isReady);
    expect(ready.status?.qosClass).toBe('Guaranteed');
    const group = podGroup(lifepod.dataDir, ready);
    expect(group).toBe(groupIn(lifepod.dataDir, `pod${ready.metadata.uid}`));
    expect(limitsOf(group)).toEqual({
      shares: shares(153),
      quotaMicros: '15000',
      memoryBytes: String(96 * MIB),
      pids: '40',
    });
    const app = containerGroup(lifepod.dataDir, ready, 'app');
    expect(swapBytesOf(app)).toBe(limitsSwap() ? '0' : 'none');
    expect(limitsOf(app)).toMatchObject({
      shares: expect.toBeOneOf(containerShares(102)),
      quotaMicros: '10000',
      memoryBytes: String(64 * MIB),
    });
    expect(limitsOf(containerGroup(lifepod.dataDir, ready, 'other'))).toMatchObject({
      shares: expect.toBeOneOf(containerShares(51)),
      quotaMicros: '5000',
      memoryBytes: String(32 * MIB),
    });
    expect(scoreOf(app)).toBe(score(-997));
  });

  test('the control group of all Burstable Pods has the CPU weight for the sum of their requests', async () => {
    await lifepod.apply(pod('burstable', { app: [waiting('app', request('200m', '64Mi'))] }));
    await lifepod.apply(
      pod('half-limited', { app: [waiting('app', limit('300m', '64Mi')), waiting('free', limit('100m', '0'))] }),
    );
    const ready = await record.until('burstable', isReady);
    const half = await record.until('half-limited', isReady);
    expect(ready.status?.qosClass).toBe('Burstable');
    const group = podGroup(lifepod.dataDir, ready);
    expect(group.startsWith(groupIn(lifepod.dataDir, 'burstable', 'pod'))).toBe(true);
    expect(limitsOf(group)).toEqual({ shares: shares(204), quotaMicros: 'none', memoryBytes: 'none', pids: '40' });
    expect(limitsOf(podGroup(lifepod.dataDir, half))).toMatchObject({ quotaMicros: '40000', memoryBytes: 'none' });
    expect(limitsOf(groupIn(lifepod.dataDir, 'burstable')).shares).toBe(shares(614));
    expect(scoreOf(containerGroup(lifepod.dataDir, ready, 'app'))).toBe(score(burstableScore(64 * MIB)));
  });

  test('the control group of a BestEffort Pod has the lowest CPU weight, and its processes have the highest OOM score', async () => {
    await lifepod.apply(pod('best-effort'));
    const ready = await record.until('best-effort', isReady);
    expect(ready.status?.qosClass).toBe('BestEffort');
    const group = podGroup(lifepod.dataDir, ready);
    expect(group.startsWith(groupIn(lifepod.dataDir, 'besteffort', 'pod'))).toBe(true);
    expect(limitsOf(group)).toEqual({ shares: shares(2), quotaMicros: 'none', memoryBytes: 'none', pids: '40' });
    expect(limitsOf(groupIn(lifepod.dataDir, 'besteffort')).shares).toBe(shares(2));
    expect(scoreOf(containerGroup(lifepod.dataDir, ready, 'app'))).toBe(score(1000));
  });

  test('each limit of a Pod is the higher of the largest init container limit and the sum of the app container limits', async () => {
    await lifepod.apply(
      pod('worked', {
        init: [
          { name: 'i1', script: 'exit 0', ...limit('100m', '1Gi') },
          { name: 'i2', script: 'exit 0', ...limit('50m', '2Gi') },
        ],
        app: [waiting('a1', limit('10m', '1100Mi')), waiting('a2', limit('10m', '1100Mi'))],
      }),
    );
    const ready = await record.until('worked', isReady);
    expect(limitsOf(podGroup(lifepod.dataDir, ready))).toMatchObject({
      shares: shares(102),
      quotaMicros: '10000',
      memoryBytes: String(2200 * MIB),
    });
  });

  test('the limits of a Pod cover the apps together with the largest PreExit defer container, or a larger PostExit one', async () => {
    await lifepod.apply(
      pod('listed', {
        app: [waiting('app', limit('100m', '64Mi'))],
        defer: [
          { name: 'one', script: 'true', ...limit('200m', '64Mi') },
          { name: 'two', script: 'true', ...limit('100m', '64Mi') },
          { name: 'three', script: 'true', trigger: 'PostExit', ...limit('50m', '256Mi') },
        ],
      }),
    );
    const ready = await record.until('listed', isReady);
    expect(limitsOf(podGroup(lifepod.dataDir, ready))).toMatchObject({
      shares: shares(307),
      quotaMicros: '30000',
      memoryBytes: String(256 * MIB),
    });
    await lifepod.delete('pod', 'listed', '--wait=false');
  });

  test('a Pod whose app container has no limit has no limit either, even if its init container has one', async () => {
    await lifepod.apply(
      pod('worked-2', {
        init: [{ name: 'i', script: 'exit 0', ...limit('100m', '1Gi') }],
        app: [waiting('a', request('10m', '1100Mi'))],
      }),
    );
    const ready = await record.until('worked-2', isReady);
    expect(ready.status?.qosClass).toBe('Burstable');
    expect(limitsOf(podGroup(lifepod.dataDir, ready))).toMatchObject({
      shares: shares(102),
      quotaMicros: 'none',
      memoryBytes: 'none',
    });
    await lifepod.delete('pod', 'worked-2', '--now');
  });

  test('the CPU weight of a Pod includes its sidecars, whose OOM scores are not higher than those of the app containers', async () => {
    const script = 'cat /proc/self/oom_score_adj';
    await lifepod.apply(
      pod('sidecars', {
        init: [
          waiting('side', { script: `${script}; ${WAIT}`, restartPolicy: 'Always', ...request('100m', '0') }),
          { name: 'i', script },
        ],
        app: [waiting('app', request('100m', '1Gi'))],
      }),
    );
    const ready = await record.until('sidecars', isReady);
    expect(limitsOf(podGroup(lifepod.dataDir, ready)).shares).toBe(shares(204));
    const app = score(burstableScore(1024 * MIB));
    expect(scoreOf(containerGroup(lifepod.dataDir, ready, 'app'))).toBe(app);
    expect(await lifepod.kubectlOk('logs', 'sidecars', '-c', 'side')).toBe(`${app}\n`);
    expect(await lifepod.kubectlOk('logs', 'sidecars', '-c', 'i')).toBe(`${score(999)}\n`);
    await lifepod.delete('pod', 'sidecars', '--now');
  });

  test('the control group of a Pod is removed with the Pod, whether its containers were running or had exited', async () => {
    await lifepod.apply(pod('short', { app: [{ name: 'app', script: 'exit 0' }], spec: { restartPolicy: 'Never' } }));
    await lifepod.apply(pod('long', { app: [waiting('app', request('100m', '8Mi'))] }));
    const long = podGroup(lifepod.dataDir, await record.until('long', isReady));
    expect(groupExists(long)).toBe(true);
    await lifepod.delete('pod', 'short', 'long');
    expect(groupExists(long)).toBe(false);
    expect(groupExists(podGroup(lifepod.dataDir, record.history('short').at(-1)?.pod as never))).toBe(false);
  });
});

describe('exceeded limits', () => {
  test('a container that exceeds its memory limit is killed', async () => {
    await lifepod.apply(
      pod('hungry', {
        app: [{ name: 'app', script: 'exec tail /dev/zero', ...limit('1', '16Mi') }],
        spec: { restartPolicy: 'Never' },
      }),
    );
    const { state } = statusOf(await record.until('hungry', ended('app')), 'app');
    expect(state?.terminated?.reason).toMatch(OOM_REASONS);
  });

  test('a Pod that has reached --pod-pids-limit cannot start another process', async () => {
    const script = 'i=0; while [ $i -lt 60 ]; do sleep 60 & i=$((i+1)); done; wait';
    await lifepod.apply(pod('forks', { app: [{ name: 'app', script }], spec: { restartPolicy: 'Never' } }));
    await record.until('forks', ended('app'));
    expect(await lifepod.kubectlOk('logs', 'forks')).toContain("can't fork");
  });
});

test('a restart of the engine keeps the control groups of its Pods, and removes those of unknown Pods', async () => {
  const kept = podGroup(lifepod.dataDir, record.now('guaranteed'));
  const { openCgroups } = await import('../../../src/platform/control-groups/cgroups.ts');
  const orphan = groupIn(lifepod.dataDir, 'burstable', 'pod00000000-0000-4000-8000-000000000000');
  await (await openCgroups()).set(orphan, {});
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  await recordAgain();
  expect(groupExists(orphan)).toBe(false);
  expect(groupExists(kept)).toBe(true);
  expect(restarted('app', 1)(record.now('guaranteed'))).toBe(false);
  expect(limitsOf(groupIn(lifepod.dataDir, 'burstable')).shares).toBe(shares(614));
});

test('lifepod down removes all control groups of the engine', async () => {
  expect(groupExists(cgroupRootOf(lifepod.dataDir))).toBe(true);
  await lifepod.cliOk('down');
  expect(groupExists(cgroupRootOf(lifepod.dataDir))).toBe(false);
});
