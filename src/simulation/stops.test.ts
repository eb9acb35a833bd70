/** Tests runs that are stopped although their Pod continues: a crash of the agent before or during the stop changes no outcome. */
import { describe, expect, it } from 'vitest';
import { type Life, type LifeResult, live } from './pod-life.ts';
import { withOtherImage } from './random-lives.ts';
import { simulatedPod } from './simulated-pod.ts';

const check = { exec: { command: ['check'] } };
const outcome = ({ trace, pod }: LifeResult): string[] => [
  ...trace
    .filter(({ what }) => ['start', 'signal', 'exit'].includes(what))
    .map(({ what, name, attempt, exitCode }) => `${what} ${name}#${attempt} ${exitCode ?? ''}`.trim()),
  String(pod.status?.phase),
];
/** Agents crash at actions. This probe causes actions while the container stops. */
const readinessProbe = { ...check, periodSeconds: 1 };
const failsFirst = ({ attempt, probe }: { attempt: number; probe: string }) =>
  attempt === 0 && probe !== 'readiness' ? 'Failure' : 'Success';

/**
 * Resolves with the outcomes of three lives: without a crash, with an agent crash just before the stop is requested, and with one during
 * the stop.
 */
async function withCrashes(life: Life): Promise<string[][]> {
  const whole = await live(life);
  const stop = whole.actions.findIndex(({ action }) => action.kind === 'stopContainer') + 1;
  expect(stop).toBeGreaterThan(0);
  const crashed = [];
  for (const action of [stop, stop + 1]) crashed.push(await live({ ...life, crashes: [{ action, asked: false }] }));
  return [whole, ...crashed].map(outcome);
}

describe('an agent crash while a container is being stopped does not change what follows', () => {
  it('a failed liveness probe under OnFailure restarts a container that exits 0', async () => {
    const [whole, ...crashed] = await withCrashes({
      pod: simulatedPod({
        apps: ['app'],
        restartPolicy: 'OnFailure',
        each: { readinessProbe, livenessProbe: { ...check, periodSeconds: 5, failureThreshold: 2 } },
      }),
      scripts: { app: [{ stopMillis: 1020, stopExitCode: 0 }, { runMillis: 1000 }] },
      probe: failsFirst,
      limitMillis: 60_000,
    });
    const steps = ['start app#0', 'signal app#0', 'exit app#0 0', 'start app#1', 'exit app#1 0', 'Succeeded'];
    expect(whole).toEqual(steps);
    for (const each of crashed) expect(each).toEqual(steps);
  });

  it('a changed image under Never runs the container again with the new image', async () => {
    const [whole, ...crashed] = await withCrashes({
      pod: simulatedPod({ apps: ['app'], restartPolicy: 'Never', each: { readinessProbe } }),
      // After a crash during the stop, the container ends before the next agent observes the runtime.
      scripts: { app: [{ stopMillis: 50 }, { runMillis: 1000 }] },
      edits: [{ at: 5000, edit: withOtherImage }],
      limitMillis: 60_000,
    });
    const steps = ['start app#0', 'signal app#0', 'exit app#0 143', 'start app#1', 'exit app#1 0', 'Succeeded'];
    expect(whole).toEqual(steps);
    for (const each of crashed) expect(each).toEqual(steps);
  });

  it('a failed postStart hook under OnFailure does not run again, and the container is restarted', async () => {
    const hooks: number[] = [];
    const life: Life = {
      pod: simulatedPod({
        apps: ['app'],
        restartPolicy: 'OnFailure',
        each: { readinessProbe, lifecycle: { postStart: check } },
      }),
      scripts: { app: [{ stopMillis: 3000, stopExitCode: 0 }, { runMillis: 1000 }] },
      hook: ({ attempt }) => {
        hooks.push(attempt);
        return { millis: 100, ...(attempt === 0 ? { failure: 'simulated' } : {}) };
      },
      limitMillis: 60_000,
    };
    const steps = ['start app#0', 'signal app#0', 'exit app#0 0', 'start app#1', 'exit app#1 0', 'Succeeded'];
    expect(await withCrashes(life)).toEqual([steps, steps, steps]);
    expect(hooks).toEqual([0, 1, 0, 1, 0, 1]);
  });

  it('an agent crash during a stop does not restart the time until the kill', async () => {
    const life: Life = {
      pod: simulatedPod({
        apps: ['app'],
        graceSeconds: 20,
        each: { readinessProbe, livenessProbe: { ...check, failureThreshold: 2 } },
      }),
      scripts: { app: [{}] },
      probe: failsFirst,
      limitMillis: 60_000,
    };
    const killedAt = ({ trace }: LifeResult): number => trace.find(({ what }) => what === 'exit')?.at ?? 0;
    const whole = await live(life);
    const stop = whole.actions.findIndex(({ action }) => action.kind === 'stopContainer') + 1;
    const crashed = await live({ ...life, crashes: [{ action: stop + 1, asked: false }] });
    expect(Math.abs(killedAt(crashed) - killedAt(whole))).toBeLessThanOrEqual(1000);
  });
});
