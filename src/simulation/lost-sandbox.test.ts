/** Tests in virtual time how the containers in a lost sandbox end, and what follows. */
import { describe, expect, it } from 'vitest';
import { forever, lifeOf, once, post, steps } from './defer-life.ts';
import type { Loss } from './life.ts';
import { type Life, type LifeResult, live } from './pod-life.ts';
import { simulatedPod } from './simulated-pod.ts';

const lost = (pod: Parameters<typeof simulatedPod>[0], life: Partial<Life>): Promise<LifeResult> =>
  live({ pod: simulatedPod(pod), scripts: {}, sandboxLostAt: 10_000, limitMillis: 80_000, ...life });
const since = ({ trace, start }: LifeResult, ...kinds: string[]): string[] =>
  trace
    .filter(({ at, what }) => at >= start + 10_000 && kinds.includes(what))
    .map(({ what, name, attempt, exitCode }) => `${what} ${name}#${attempt} ${exitCode ?? ''}`.trim());
const lastOf = ({ statuses }: LifeResult) => statuses.at(-1)?.status;

describe('containers that still run in a lost sandbox', () => {
  it('containers in a lost sandbox get their stop signal, sidecars last, and are restarted even if they exit with 0', async () => {
    const graceful = { stopMillis: 3000, stopExitCode: 0 };
    const result = await lost(
      { apps: ['app', 'other'], sidecars: ['first', 'second'], restartPolicy: 'OnFailure' },
      { scripts: { app: [graceful], other: [{ ...graceful, stopMillis: 100 }], first: forever, second: forever } },
    );
    expect(since(result, 'signal', 'exit', 'sandbox', 'start')).toEqual([
      'signal app#0',
      'signal other#0',
      'exit other#0 0',
      'exit app#0 0',
      'signal second#0',
      'exit second#0 143',
      'signal first#0',
      'exit first#0 143',
      'sandbox #1',
      'start first#1',
      'start second#1',
      'start app#1',
      'start other#1',
    ]);
    expect(lastOf(result)?.phase).toBe('Running');
    const killing = result.events.filter(({ reason }) => reason === 'Killing').map(({ message }) => message);
    expect(killing.sort()).toEqual(['app', 'first', 'other', 'second'].map((name) => `Stopping container ${name}`));
    const kinds = result.actions.map(({ action }) => action.kind);
    expect(kinds.indexOf('stopSandbox')).toBeGreaterThan(kinds.lastIndexOf('stopContainer'));
  });

  it('the exit codes of containers in a lost sandbox decide the phase of a Pod that restarts nothing', async () => {
    for (const [stopExitCode, phase] of [
      [0, 'Succeeded'],
      [7, 'Failed'],
    ] as const) {
      const result = await lost(
        { apps: ['app'], restartPolicy: 'Never' },
        { scripts: { app: [{ stopMillis: 1000, stopExitCode }] } },
      );
      expect(since(result, 'signal', 'exit', 'sandbox', 'start')).toEqual([
        'signal app#0',
        `exit app#0 ${stopExitCode}`,
      ]);
      expect(lastOf(result)?.phase).toBe(phase);
    }
  });

  it('containers in a lost sandbox have their preStop hooks and the whole grace period before they are killed, sidecars last', async () => {
    const result = await lost(
      {
        apps: ['app'],
        sidecars: ['side'],
        graceSeconds: 20,
        each: { lifecycle: { preStop: { exec: { command: ['do'] } } } },
      },
      { scripts: { app: [{}], side: [{}] }, hook: () => ({ millis: 5000 }) },
    );
    const at = (what: string, name: string): number =>
      Math.round(
        ((result.trace.find((each) => each.what === what && each.name === name)?.at ?? 0) - result.start) / 1000,
      );
    expect(result.hooks.map(({ hook }) => hook)).toEqual(['preStop']);
    expect(at('signal', 'app')).toBe(15);
    expect(at('exit', 'app')).toBe(30);
    expect(at('exit', 'side')).toBe(32);
  });

  it('neither containers in a lost sandbox nor defer containers that run again have more time than the Pod', async () => {
    const result = await lifeOf([post], {
      pods: { apps: ['app'], graceSeconds: 100 },
      scripts: { app: [{}], 'defer-1': once(10) },
      sandboxLostAt: 5000,
    });
    expect(result.goneAt).toBeLessThan(result.start + 42_500);
    const again = await lifeOf([post], {
      scripts: { 'defer-1': [{}, { runMillis: 10 }] },
      sandboxLostAt: 12_000,
    });
    expect(steps(again, 'defer-1')).toEqual([
      'start defer-1',
      'signal defer-1',
      'defer-1 exits 137',
      'start defer-1#1',
      'defer-1 exits 0',
    ]);
    expect(again.goneAt).toBeLessThan(again.start + 15_000);
  });

  it('an entry that exits with 0 because it was stopped in a lost sandbox runs again', async () => {
    const result = await lifeOf([post], {
      scripts: { 'defer-1': [{ stopMillis: 100, stopExitCode: 0 }, { runMillis: 10 }] },
      sandboxLostAt: 12_000,
    });
    expect(steps(result, 'defer-1')).toEqual([
      'start defer-1',
      'signal defer-1',
      'defer-1 exits 0',
      'start defer-1#1',
      'defer-1 exits 0',
    ]);
  });
});

describe('sandboxes that end before a container has started in them', () => {
  it('are replaced with a back-off, are reported and removed, and the Pod runs once a sandbox lasts', async () => {
    const losses = Array.from({ length: 1200 }, (_, number): Loss => ({ at: number * 50, what: 'sandbox', names: [] }));
    const result = await lost(
      { apps: ['app'] },
      { scripts: { app: forever }, sandboxLostAt: undefined, losses, startMillis: 200 },
    );
    const created = result.trace.filter(({ what }) => what === 'sandbox').map(({ at }) => at - result.start);
    const waits = created.map((at, index) => Math.round((at - (created[index - 1] ?? at)) / 1000)).slice(1);
    expect(waits).toEqual([1, 2, 4, 8, 10, 10, 10, 10, 10]);
    const changed = result.events.filter(({ reason }) => reason === 'SandboxChanged');
    expect(changed).toHaveLength(9);
    const removed = result.calls.filter(({ call }) => call === 'removeSandbox');
    expect(removed.length).toBeGreaterThanOrEqual(4);
    expect(lastOf(result)?.phase).toBe('Running');
    expect(since(result, 'start').filter((line) => line.startsWith('start app'))).not.toEqual([]);
  });

  it('a sandbox that ends later is replaced without a back-off', async () => {
    const result = await lost({ apps: ['app'] }, { scripts: { app: forever } });
    const [, second] = result.trace.filter(({ what }) => what === 'sandbox');
    expect((second?.at ?? 0) - result.start).toBeLessThan(10_500);
  });
});
