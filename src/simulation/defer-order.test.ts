/** The specification of defer containers in virtual time: the order of a termination. */
import { describe, expect, it } from 'vitest';
import { deadlines, deferred, deferStates, forever, lifeOf, once, post, steps } from './defer-life.ts';

describe('the order of a termination', () => {
  it('the termination is written before anything of it begins, and Ready is False at once', async () => {
    const result = await lifeOf([{}], { statusMillis: 300 });
    const written = result.statuses.find(({ status }) => status.termination !== undefined);
    expect(written?.status.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('False');
    const first = result.trace.find(({ what, name }) => what === 'signal' || name === 'defer-1');
    expect(first?.at).toBeGreaterThan(written?.at ?? 0);
  });

  it('preStop hooks start at once, and the first PreExit entry does not wait for them; the app waits for both', async () => {
    const lifecycle = { preStop: { exec: { command: ['do'] } } };
    const result = await lifeOf([{}], { pods: { each: { lifecycle } }, hook: () => ({ millis: 4000 }) });
    const at = (what: string, name: string) =>
      (result.trace.find((each) => each.what === what && each.name === name)?.at ?? 0) - result.start;
    expect((result.hooks[0]?.at ?? 0) - result.start).toBeLessThan(10_100);
    expect(at('start', 'defer-1')).toBeLessThan(10_100);
    expect(at('exit', 'defer-1')).toBeLessThan(11_200);
    expect(at('signal', 'app')).toBeGreaterThanOrEqual(14_000);
  });

  it("sidecars' preStop hooks start at once too, and stop nothing; one that is restarted has its own when it is to stop", async () => {
    const lifecycle = { preStop: { exec: { command: ['do'] } } };
    const result = await lifeOf([{}, post], {
      pods: { sidecars: ['side-1', 'side-2'], eachSidecar: { lifecycle } },
      scripts: {
        'side-1': [{ runMillis: 12_000, exitCode: 1 }, ...forever],
        'side-2': forever,
        'defer-1': once(5000),
        'defer-2': once(5000),
      },
      hook: () => ({ millis: 100 }),
    });
    const hooks = result.hooks.map(({ container, at }) => `${container} ${Math.round((at - result.start) / 1000)}`);
    expect(hooks).toEqual(['side-1 10', 'side-2 10', 'side-1 20']);
    expect(steps(result, 'side-1', 'side-2', 'defer-2')).toEqual([
      ...['start side-1', 'start side-2', 'side-1 exits 1', 'start side-1#1', 'start defer-2', 'defer-2 exits 0'],
      ...['signal side-2', 'side-2 exits 143', 'signal side-1#1', 'side-1 exits 143'],
    ]);
  });

  it('an entry may have stopped the app itself before', async () => {
    const result = await lifeOf([{}, post], { scripts: { app: once(10_500), 'defer-1': once(2000) } });
    expect(steps(result)).toEqual([
      'start app',
      'start defer-1',
      'app exits 0',
      'defer-1 exits 0',
      'start defer-2',
      'defer-2 exits 0',
    ]);
  });

  it('app containers are neither probed for liveness nor restarted, sidecars are both until the list has ended', async () => {
    const result = await lifeOf([{}], {
      pods: { sidecars: ['side-1', 'side-2'] },
      scripts: {
        app: once(11_000, 1),
        'side-1': [{ runMillis: 11_500, stopMillis: 10 }, ...forever],
        'side-2': forever,
        'defer-1': once(15_000),
      },
    });
    expect(steps(result, 'app')).toEqual(['start app', 'app exits 1']);
    expect(steps(result, 'side-1', 'side-2', 'defer-1')).toEqual([
      ...['start side-1', 'start side-2', 'start defer-1'],
      ...['side-1 exits 0', 'start side-1#1', 'defer-1 exits 0'],
      ...['signal side-2', 'side-2 exits 143', 'signal side-1#1', 'side-1 exits 143'],
    ]);
  });

  it('PostExit entries wait until no process of an app container is left', async () => {
    const result = await lifeOf([post], { scripts: { app: [{ stopMillis: 8000 }] } });
    expect(steps(result)).toEqual(['start app', 'signal app', 'app exits 143', 'start defer-1', 'defer-1 exits 0']);
    expect(result.goneAt).toBeGreaterThan(result.start + 19_000);
  });

  it('volumes are unmounted once the list has ended, and not before', async () => {
    const result = await lifeOf([{}, post]);
    const unmounts = result.actions.filter(({ action }) => action.kind === 'unmountVolumes').map(({ at }) => at);
    const lastExit = result.trace.findLast(({ what }) => what === 'exit');
    expect(lastExit?.name).toBe('defer-2');
    expect(Math.min(...unmounts)).toBeGreaterThan(lastExit?.at ?? Number.NaN);
  });

  it('ephemeral containers stop after the list and the sidecars', async () => {
    const [image, imagePullPolicy] = ['busybox:1.28', 'IfNotPresent'];
    const result = await lifeOf([{}, post], {
      pods: { sidecars: ['side'], spec: { ephemeralContainers: [{ name: 'debug', image, imagePullPolicy }] } },
      scripts: { side: forever, debug: forever },
    });
    expect(steps(result).filter((step) => !step.startsWith('start '))).toEqual([
      ...['defer-1 exits 0', 'signal app', 'app exits 143', 'defer-2 exits 0'],
      ...['signal side', 'side exits 143', 'signal debug', 'debug exits 143'],
    ]);
  });

  it('nobody waits for the rest of the grace period', async () => {
    const result = await lifeOf([{}, post], { deletions: [{ at: 10_000, graceSeconds: 300 }] });
    expect(result.goneAt).toBeLessThan(result.start + 12_500);
  });

  it('at the deadline there are 2 s more, then the running entry and the app are killed, and no further entry starts', async () => {
    const result = await lifeOf([{}, {}, post], { scripts: { app: [{}], 'defer-1': [{}] } });
    expect(steps(result).slice(0, 2)).toEqual(['start app', 'start defer-1']);
    expect(steps(result).slice(2).sort()).toEqual([
      'app exits 137',
      'defer-1 exits 137',
      'signal app',
      'signal defer-1',
    ]);
    const at = (what: string) =>
      result.trace.filter((each) => each.what === what).map((each) => each.at - result.start);
    for (const signal of at('signal')) expect(Math.abs(signal - 40_000)).toBeLessThan(100);
    for (const exit of at('exit')) expect(Math.abs(exit - 42_000)).toBeLessThan(100);
    expect(deferStates(result)).toEqual(['terminated DeadlineExceeded', 'terminated Skipped', 'terminated Skipped']);
    expect(deferred(result)).toMatchObject({ status: 'False', reason: 'GracePeriodExceeded' });
    expect(result.statuses.at(-1)?.status.deferContainerStatuses?.[1]?.state?.terminated?.exitCode).toBe(137);
    expect(result.goneAt).toBeLessThan(result.start + 42_200);
  });

  it('a second delete with a shorter grace shortens the deadline, a longer one lengthens nothing', async () => {
    const result = await lifeOf([{}], {
      scripts: { 'defer-1': [{}] },
      deletions: [
        { at: 10_000, graceSeconds: 60 },
        { at: 12_000, graceSeconds: 5 },
        { at: 13_000, graceSeconds: 100 },
      ],
    });
    expect(deadlines(result)).toEqual([70_000, expect.any(Number)]);
    expect(Math.abs((deadlines(result)[1] ?? 0) - 17_000)).toBeLessThan(1000);
    expect(Math.abs((result.goneAt ?? 0) - result.start - 19_000)).toBeLessThan(1200);
  });
});
