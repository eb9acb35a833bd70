/**
 * Tests the specified behavior of defer containers (entries) in virtual time: starts in progress when the Pod ends, outages of the agent
 * and of the runtime, containers that cannot be removed or vanish, and the time of an entry's turn.
 */
import { describe, expect, it } from 'vitest';
import { deadlines, deferred, deferStates, forever, lifeOf, once, post, steps, termination } from './defer-life.ts';
import type { LifeResult } from './life.ts';
import { live } from './pod-life.ts';
import { simulatedPod } from './simulated-pod.ts';

const lifecycle = { preStop: { exec: { command: ['do'] } } };
const seconds = (result: LifeResult, what: string, name: string): number =>
  Math.round(((result.trace.find((each) => each.what === what && each.name === name)?.at ?? 0) - result.start) / 100) /
  10;

describe('a start in flight counts as started', () => {
  it.each([0, 20, 50, 100, 150, 200, 250])(
    'a Pod deleted %i ms after the start of its init container was requested is cleaned up',
    async (millis) => {
      const result = await lifeOf([{}, post], {
        pods: { init: ['init'] },
        scripts: { init: forever },
        startMillis: 250,
        deletions: [{ at: 11 + millis, graceSeconds: 30 }],
      });
      expect(steps(result)).toEqual([
        'start init',
        'signal init',
        'init exits 143',
        'start defer-2',
        'defer-2 exits 0',
      ]);
      expect(deferStates(result)).toEqual(['terminated Skipped', 'terminated Completed']);
    },
  );

  it('PreExit entries wait for a start of the app that is in flight, and then run', async () => {
    const result = await lifeOf([{}, post], { startMillis: 3000, deletions: [{ at: 1000, graceSeconds: 30 }] });
    expect(steps(result, 'app', 'defer-1', 'defer-2').filter((step) => step.startsWith('start'))).toEqual([
      'start app',
      'start defer-1',
      'start defer-2',
    ]);
  });

  it('a start that never ends is awaited until the PreExit stage ends', async () => {
    const result = await lifeOf([{}, post], { startMillis: 600_000, deletions: [{ at: 1000, graceSeconds: 30 }] });
    expect(termination(result)[0]?.reason).toBe('Deleted');
    expect(result.statuses.at(-1)?.status.deferContainerStatuses?.[0]?.state?.terminated?.reason).toBe('Skipped');
  });

  it('PreExit entries run if every app container waits in CrashLoopBackOff', async () => {
    const result = await lifeOf([{}, post], {
      scripts: { app: once(100, 1) },
      deletions: [{ at: 8000, graceSeconds: 30 }],
    });
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Completed']);
  });
});

describe('the time of a turn', () => {
  it('timeoutSeconds count from the decided end of the previous entry, so a slow entry takes no time from the next one', async () => {
    const entries = [{ restartPolicy: 'OnFailure', timeoutSeconds: 14 }, { timeoutSeconds: 4 }];
    const result = await lifeOf(entries, {
      scripts: { 'defer-1': once(100, 1), 'defer-2': once(3500) },
      deletions: [{ at: 10_000, graceSeconds: 60 }],
    });
    expect(deferStates(result)).toEqual(['terminated DeadlineExceeded', 'terminated Completed']);
  });

  it('an entry whose timeoutSeconds have passed gets its stop signal and is killed 2 s later', async () => {
    const result = await lifeOf([{ timeoutSeconds: 3 }], { scripts: { 'defer-1': [{}] } });
    expect([seconds(result, 'signal', 'defer-1'), seconds(result, 'exit', 'defer-1')]).toEqual([13, 15]);
  });

  it('an app that ignores its stop signal leaves the PostExit entries their reserve', async () => {
    const result = await lifeOf([post, post], {
      scripts: { app: [{}], 'defer-1': once(5000), 'defer-2': once(5000) },
    });
    expect(seconds(result, 'exit', 'app')).toBe(25);
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Completed']);
  });

  it('the reserve is the sum of timeoutSeconds + 2 if each PostExit entry has one and the sum is smaller', async () => {
    const result = await lifeOf(
      [
        { ...post, timeoutSeconds: 3 },
        { ...post, timeoutSeconds: 2 },
      ],
      { scripts: { app: [{}] } },
    );
    expect(seconds(result, 'exit', 'app')).toBe(31);
  });

  it('postExitGracePeriodSeconds is the reserve; a shorter grace period shortens it in proportion', async () => {
    const pods = { spec: { postExitGracePeriodSeconds: 6 } };
    const whole = await lifeOf([post], { pods, scripts: { app: [{}] } });
    expect(seconds(whole, 'exit', 'app')).toBe(34);
    const half = await lifeOf([post], { pods, scripts: { app: [{}] }, deletions: [{ at: 10_000, graceSeconds: 15 }] });
    expect(seconds(half, 'exit', 'app')).toBe(22);
  });
});

describe('an outage of the agent does not count', () => {
  it('an app is stopped before it is killed, even if the deadline passed without an agent', async () => {
    const result = await lifeOf([{}, post], {
      scripts: { app: [{ stopMillis: 500 }], 'defer-1': once(5000) },
      absences: [{ at: 12_000, millis: 60_000 }],
    });
    expect(steps(result, 'app')).toEqual(['start app', 'signal app', 'app exits 143']);
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Completed']);
  });

  it('the end of the PreExit stage and the deadline move by the outage since the last sign of life, before anything else happens', async () => {
    const result = await lifeOf([{}], { scripts: { 'defer-1': [{}] }, absences: [{ at: 14_000, millis: 20_000 }] });
    const [first = 0, last = 0] = [deadlines(result)[0], deadlines(result).at(-1)];
    expect(last - first).toBeGreaterThanOrEqual(20_000);
    expect(last - first).toBeLessThanOrEqual(30_000);
    expect(termination(result).at(-1)?.outageSeconds).toBeCloseTo((last - first) / 1000, 1);
    expect(seconds(result, 'signal', 'defer-1')).toBeCloseTo(last / 1000, 1);
  });

  it('an extension to which the Pod is entitled is granted after an outage', async () => {
    const result = await lifeOf([{}], {
      pods: { spec: { deferContainerGracePeriodExtensionInterval: 10, deferContainerGracePeriodExtensionCount: 1 } },
      scripts: { 'defer-1': once(60_000 + 35_000) },
      absences: [{ at: 12_000, millis: 60_000 }],
    });
    expect(deferStates(result)).toEqual(['terminated Completed']);
  });

  it("the moves of deadlines by outages are limited by the node's maxGracePeriodExtensionSeconds", async () => {
    const result = await lifeOf([{}], {
      scripts: { 'defer-1': [{}] },
      maxGracePeriodExtensionSeconds: 12,
      absences: [{ at: 12_000, millis: 60_000 }],
    });
    expect(termination(result).at(-1)?.outageSeconds).toBeLessThanOrEqual(12);
    expect(result.goneAt).toBeLessThan(result.start + 77_000);
  });

  it('after an outage, a Pod without entries has the rest of its grace period, and 2 s between signal and kill', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: [{}] },
      deletions: [{ at: 10_000, graceSeconds: 20 }],
      absences: [{ at: 14_000, millis: 30_000 }],
    });
    const exit = seconds(result, 'exit', 'app');
    expect(exit).toBeGreaterThanOrEqual(60);
    expect(exit).toBeLessThanOrEqual(70.2);
    expect(exit - seconds(result, 'signal', 'app')).toBeGreaterThanOrEqual(2);
  });

  it('after a reboot PreExit entries are skipped, and PostExit entries run in a new sandbox', async () => {
    const result = await lifeOf([{}, {}, post], {
      scripts: { 'defer-1': once(1000), 'defer-2': [{}] },
      absences: [{ at: 13_000, millis: 120_000, reboot: true }],
    });
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated SandboxLost', 'terminated Completed']);
    expect(result.trace.filter(({ what }) => what === 'sandbox')).toHaveLength(2);
  });

  it('a reboot does not use up timeoutSeconds of the running PostExit entry, which runs again', async () => {
    const result = await lifeOf([{ ...post, timeoutSeconds: 5 }, post], {
      scripts: { 'defer-1': once(4000) },
      absences: [{ at: 13_000, millis: 120_000, reboot: true }],
    });
    expect(steps(result, 'defer-1').at(-1)).toBe('defer-1 exits 0');
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Completed']);
  });
});

describe('an outage of the runtime does not count', () => {
  it('entries and hooks wait for an outage that began just before the delete, and then run', async () => {
    const result = await lifeOf([{}, post], {
      pods: { each: { lifecycle } },
      hook: () => ({ millis: 100 }),
      outages: [{ at: 9_990, millis: 15_000 }],
    });
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Completed']);
    expect(deferred(result)?.reason).toBe('DeferContainersSucceeded');
    expect(result.events.filter(({ reason }) => reason === 'FailedPreStopHook')).toEqual([]);
    const moved = (deadlines(result).at(-1) ?? 0) - (deadlines(result)[0] ?? 0);
    expect(moved).toBeGreaterThanOrEqual(14_900);
    expect(moved).toBeLessThanOrEqual(16_100);
  });

  it.each([true, false])('a start with an unknown outcome runs the entry once: effect %s', async (takesEffect) => {
    const result = await lifeOf([{}, post], { outages: [{ at: 10_008, millis: 15_000, takesEffect }] });
    expect(steps(result, 'defer-1')).toEqual(['start defer-1', 'defer-1 exits 0']);
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Completed']);
  });

  it('the timeoutSeconds of an entry that ran during the outage are not moved', async () => {
    const result = await lifeOf([{ timeoutSeconds: 5 }, {}], {
      scripts: { 'defer-1': [{}] },
      outages: [{ at: 12_000, millis: 20_000 }],
    });
    expect(deferStates(result)).toEqual(['terminated DeadlineExceeded', 'terminated Completed']);
    expect(seconds(result, 'exit', 'defer-1')).toBeLessThan(35.5);
  });

  it('a preStop hook without a result runs again', async () => {
    const result = await lifeOf([{}], {
      pods: { each: { lifecycle } },
      hook: () => ({ millis: 3000 }),
      outages: [{ at: 11_500, millis: 5000 }],
    });
    expect(result.hooks).toHaveLength(2);
    expect(seconds(result, 'signal', 'app')).toBeGreaterThanOrEqual(19.5);
  });

  it('an outage is not a failed probe, so no liveness probe ends a container', async () => {
    const livenessProbe = { exec: { command: ['check'] }, periodSeconds: 1, failureThreshold: 1 };
    const result = await live({
      pod: simulatedPod({ apps: ['app'], each: { livenessProbe } }),
      scripts: { app: forever },
      outages: [{ at: 5000, millis: 10_000 }],
      limitMillis: 30_000,
    });
    expect(result.trace.filter(({ what }) => what !== 'sandbox').map(({ what }) => what)).toEqual(['start']);
    expect(result.events.filter(({ reason }) => reason === 'Unhealthy')).toEqual([]);
  });
});

describe('losses that the agent did not cause', () => {
  it('a removal without effect is retried with back-off, and the Pod is removed once a removal takes effect', async () => {
    const result = await lifeOf([post], {
      pods: { init: ['init'] },
      scripts: { init: once(100) },
      losses: [{ at: 5000, what: 'damage', names: ['init'], millis: 60_000 }],
    });
    expect(result.calls.filter(({ call }) => call === 'removeSandbox').length).toBeLessThanOrEqual(30);
    expect(result.goneAt).toBeDefined();
    expect(result.goneAt).toBeLessThan(result.start + 65_000 + 60_000);
  });

  it('an app whose container vanishes has ended, so the PostExit entries run', async () => {
    const result = await lifeOf([post], {
      scripts: { app: [{ stopMillis: 20_000 }] },
      losses: [{ at: 12_000, what: 'running', names: ['app'] }],
    });
    expect(deferStates(result)).toEqual(['terminated Completed']);
    expect(seconds(result, 'start', 'defer-1')).toBeLessThan(14);
  });
});
