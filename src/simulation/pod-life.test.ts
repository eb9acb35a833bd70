import { describe, expect, it } from 'vitest';
import { VolumeError } from '../node/volumes/volume-error.ts';
import type { RunScript } from '../runtime/simulated/simulated-runtime.ts';
import { live } from './pod-life.ts';
import { simulatedPod } from './simulated-pod.ts';

const forever: RunScript[] = [{ stopMillis: 100 }];
const once = (runMillis: number, exitCode = 0): RunScript[] => [{ runMillis, exitCode }];
const starts = (result: Awaited<ReturnType<typeof live>>) =>
  result.trace.filter(({ what }) => what === 'start').map(({ name, attempt }) => `${name}#${attempt}`);
const endOf = (result: Awaited<ReturnType<typeof live>>) => result.statuses.at(-1)?.status;

describe('the life of a Pod in virtual time', () => {
  it('a Pod runs init containers in order, then its apps together, and ends gracefully when deleted', async () => {
    const result = await live({
      pod: simulatedPod({ init: ['init-1', 'init-2'], apps: ['app-1', 'app-2'] }),
      scripts: { 'init-1': once(1000), 'init-2': once(500), 'app-1': forever, 'app-2': forever },
      deletions: [{ at: 60_000, graceSeconds: 30 }],
    });
    expect(starts(result)).toEqual(['init-1#0', 'init-2#0', 'app-1#0', 'app-2#0']);
    const running = result.statuses.find(({ status }) => status.phase === 'Running');
    expect(running?.status.conditions?.map(({ type, status }) => `${type}=${status}`)).toEqual([
      'PodReadyToStartContainers=True',
      'Initialized=True',
      'Ready=True',
      'ContainersReady=True',
      'PodScheduled=True',
    ]);
    expect(result.goneAt).toBeLessThan(result.start + 60_300);
    expect(result.events.map(({ reason }) => reason)).toEqual([
      'Pulled',
      'Created',
      'Started',
      'Pulled',
      'Created',
      'Started',
      'Pulled',
      'Pulled',
      'Created',
      'Started',
      'Created',
      'Started',
      'Killing',
      'Killing',
    ]);
  });

  it('the volumes of a deleted Pod are unmounted while its sandbox stops, those of a finished Pod afterwards', async () => {
    const times = async (life: Parameters<typeof live>[0]): Promise<[kind: string, at: number][]> =>
      (await live(life)).actions
        .map(({ at, action }): [string, number] => [action.kind, at])
        .filter(([kind]) => ['stopSandbox', 'unmountVolumes'].includes(kind));
    const deleted = await times({
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: forever },
      deletions: [{ at: 10_000, graceSeconds: 7 }],
    });
    const at = deleted[0]?.[1];
    expect(deleted).toEqual([
      ['stopSandbox', at],
      ['unmountVolumes', at],
    ]);
    const completed = await times({
      pod: simulatedPod({ apps: ['app'], restartPolicy: 'Never' }),
      scripts: { app: once(1000) },
      limitMillis: 60_000,
    });
    expect(completed.map(([kind]) => kind)).toEqual(['stopSandbox', 'unmountVolumes']);
    expect(Number(completed[1]?.[1])).toBeGreaterThan(Number(completed[0]?.[1]));
  });

  // The sidecar gets its signal only after the app has ended, and so not at a whole second.
  it.each([0, 3700])(
    'a container that ignores its signal is killed at the end of the grace period, even if signaled %i ms later',
    async (stopMillis) => {
      const result = await live({
        pod: simulatedPod({ apps: ['app'], sidecars: ['side'], graceSeconds: 7 }),
        scripts: { app: [{ stopMillis }], side: [{}] },
        deletions: [{ at: 10_000, graceSeconds: 7 }],
      });
      const exit = result.trace.find(({ what, name }) => what === 'exit' && name === 'side');
      expect(exit?.exitCode).toBe(137);
      expect(exit?.at).toBeGreaterThanOrEqual(result.start + 17_000);
      expect(exit?.at).toBeLessThan(result.start + 17_100);
      expect(result.goneAt).toBeLessThan(result.start + 17_200);
    },
  );

  it('a second delete shortens the grace period', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: [{}] },
      deletions: [
        { at: 10_000, graceSeconds: 300 },
        { at: 12_000, graceSeconds: 5 },
      ],
    });
    expect(result.goneAt).toBeGreaterThan(result.start + 17_000);
    expect(result.goneAt).toBeLessThan(result.start + 17_300);
  });

  it('pulls of the image of a volume back off like those of containers', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: forever },
      mount: async (tries) => {
        if (tries < 5) throw new VolumeError('files', 'no such host', 'ErrImagePull', 'far/files:1');
      },
      limitMillis: 120_000,
    });
    const times = result.actions.filter(({ action }) => action.kind === 'mountVolumes').map(({ at }) => at);
    const gaps = times.slice(1).map((at, i) => Math.floor((at - (times[i] as number)) / 1000));
    expect(gaps).toEqual([10, 20, 40, 80].slice(0, gaps.length));
    expect(gaps.length).toBeGreaterThan(2);
    const waiting = result.statuses.map(({ status }) => status.containerStatuses?.[0]?.state?.waiting);
    expect(waiting).toContainEqual({ reason: 'ErrImagePull', message: 'no such host' });
    expect(waiting).toContainEqual({
      reason: 'ImagePullBackOff',
      message: 'Back-off pulling image "far/files:1": ErrImagePull: no such host',
    });
    expect(result.events.map(({ reason, message }) => `${reason}: ${message}`)).toEqual(
      expect.arrayContaining([
        'Failed: Error: ErrImagePull',
        'BackOff: Back-off pulling image "far/files:1"',
        'Failed: Error: ImagePullBackOff',
      ]),
    );
  });

  it('a Pod continues immediately when the missing image of its volume appears, but not when another image does', async () => {
    for (const name of ['docker.io/far/files:1', 'docker.io/far/others:1']) {
      const result = await live({
        pod: simulatedPod({
          apps: ['app'],
          spec: { volumes: [{ name: 'files', image: { reference: 'far/files:1' } }] },
        }),
        scripts: { app: forever },
        mount: async (tries) => {
          if (tries === 1) throw new VolumeError('files', 'no such host', 'ErrImagePull', 'far/files:1');
        },
        imageAppears: { at: 3000, name },
        limitMillis: 20_000,
      });
      const [, second] = result.actions.filter(({ action }) => action.kind === 'mountVolumes');
      expect(Math.floor(((second?.at ?? 0) - result.start) / 1000)).toBe(name.includes('files') ? 3 : 10);
    }
  });

  it('a pull that fails after its image has appeared is followed by a look for the image, and otherwise by its back-off', async () => {
    const imageActionsWith = async (imageAppears?: { at: number; name: string }) => {
      const result = await live({
        pod: simulatedPod({ apps: ['app'] }),
        scripts: { app: forever },
        absentImages: true,
        pullable: () => false,
        ...(imageAppears && { imageAppears }),
        limitMillis: 9000,
      });
      return result.actions
        .filter(({ action }) => action.kind === 'checkImage' || action.kind === 'pullImage')
        .map(({ at, action }) => ({ kind: action.kind, at: at - result.start }));
    };
    const usual = await imageActionsWith();
    expect(usual.map(({ kind }) => kind)).toEqual(['checkImage', 'pullImage']);
    const during = { at: (usual.at(-1)?.at ?? 0) + 1, name: 'docker.io/library/busybox:1.28' };
    const seen = await imageActionsWith(during);
    expect(seen.map(({ kind }) => kind)).toEqual(['checkImage', 'pullImage', 'checkImage']);
    expect(seen.at(-1)?.at).toBeLessThan(during.at + 1000);
    expect(await imageActionsWith({ ...during, name: 'docker.io/library/other:1' })).toEqual(usual);
  });

  it('each try of a pull is reported once, even if two pulls fail at the same time', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app-1', 'app-2'] }),
      scripts: { 'app-1': forever, 'app-2': forever },
      absentImages: true,
      faults: [5, 6],
      limitMillis: 30_000,
    });
    expect(result.events.filter(({ reason }) => reason === 'Pulling')).toHaveLength(4);
    const keys = result.transitions.map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('a failing init container restarts immediately, then after 10 s, 20 s, 40 s', async () => {
    const result = await live({
      pod: simulatedPod({ init: ['init'], apps: ['app'] }),
      scripts: { init: [...Array(4).fill({ runMillis: 100, exitCode: 1 }), { runMillis: 100 }], app: forever },
      limitMillis: 200_000,
    });
    const times = result.trace.filter(({ what, name }) => what === 'start' && name === 'init').map(({ at }) => at);
    const gaps = times.slice(1).map((at, i) => Math.floor((at - (times[i] as number)) / 1000));
    expect(gaps).toEqual([0, 10, 20, 40]);
    expect(starts(result).at(-1)).toBe('app#0');
    const looped = result.statuses.find(
      ({ status }) => status.initContainerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff',
    );
    expect(looped?.status.initContainerStatuses?.[0]?.state?.waiting?.message).toBe(
      'back-off 10s restarting failed container=init pod=simulated_default(uid-1)',
    );
    expect(looped?.status.phase).toBe('Pending');
  });

  it('a Pod with restartPolicy Never fails when an init container fails', async () => {
    const result = await live({
      pod: simulatedPod({ init: ['init-1', 'init-2'], apps: ['app'], restartPolicy: 'Never' }),
      scripts: { 'init-1': once(100, 3), 'init-2': once(1), app: forever },
      limitMillis: 60_000,
    });
    expect(starts(result)).toEqual(['init-1#0']);
    expect(endOf(result)?.phase).toBe('Failed');
    expect(endOf(result)?.containerStatuses?.[0]?.state?.waiting?.reason).toBe('PodInitializing');
  });

  it.each([
    ['Never', 0, 'Succeeded', 1],
    ['Never', 1, 'Failed', 1],
    ['OnFailure', 0, 'Succeeded', 1],
    ['OnFailure', 1, 'Running', 4],
    ['Always', 0, 'Running', 4],
  ])(
    'with restartPolicy %s and exit code %i, the phase of the Pod is %s after %i runs',
    async (restartPolicy, exitCode, phase, runs) => {
      const result = await live({
        pod: simulatedPod({ apps: ['app'], restartPolicy }),
        scripts: { app: once(1000, exitCode) },
        limitMillis: 45_000,
      });
      expect(endOf(result)?.phase).toBe(phase);
      expect(starts(result)).toHaveLength(runs);
    },
  );

  it('a Pod fails at activeDeadlineSeconds, which include its initialization', async () => {
    const result = await live({
      pod: simulatedPod({ init: ['init'], apps: ['app'], activeDeadlineSeconds: 20 }),
      scripts: { init: [{ stopMillis: 10 }], app: forever },
      limitMillis: 60_000,
    });
    expect(endOf(result)).toMatchObject({ phase: 'Failed', reason: 'DeadlineExceeded' });
    expect(starts(result)).toEqual(['init#0']);
    expect(result.trace.find(({ what }) => what === 'exit')?.at).toBeLessThan(result.start + 20_200);
  });

  it('a Pod whose sandbox is lost starts again with its init containers in a new sandbox', async () => {
    const result = await live({
      pod: simulatedPod({ init: ['init'], apps: ['app'] }),
      scripts: { init: once(100), app: forever },
      sandboxLostAt: 30_000,
      limitMillis: 60_000,
    });
    expect(starts(result)).toEqual(['init#0', 'app#0', 'init#1', 'app#1']);
    expect(endOf(result)?.phase).toBe('Running');
    expect(result.events.map(({ reason }) => reason)).toContain('SandboxChanged');
  });

  it('a Pod continues if the records of ended init containers are lost while a later one runs', async () => {
    const result = await live({
      pod: simulatedPod({ sidecars: ['side'], init: ['init-1', 'init-2', 'init-3'], apps: ['app'] }),
      scripts: { side: forever, 'init-1': once(1000), 'init-2': once(10_000), 'init-3': once(1000), app: forever },
      initRecordsLostAt: 5_000,
      // The loss itself sends no event. The edit makes the agent decide again.
      edits: [{ at: 5_001, edit: (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { edited: '' } } }) }],
      crashes: [{ action: 10, asked: true }],
      limitMillis: 60_000,
    });
    expect(starts(result)).toEqual(['side#0', 'init-1#0', 'init-2#0', 'init-3#0', 'app#0']);
    expect(endOf(result)?.phase).toBe('Running');
    const [, first] = endOf(result)?.initContainerStatuses ?? [];
    expect(first).toMatchObject({ name: 'init-1', ready: true, state: { terminated: { exitCode: 0 } } });
  });

  it('sidecars start in their turn and stop after the apps, last first', async () => {
    const result = await live({
      pod: simulatedPod({ sidecars: ['side-1', 'side-2'], init: ['init'], apps: ['app'] }),
      scripts: { 'side-1': forever, 'side-2': forever, init: once(100), app: forever },
      deletions: [{ at: 10_000, graceSeconds: 30 }],
    });
    expect(starts(result)).toEqual(['side-1#0', 'side-2#0', 'init#0', 'app#0']);
    expect(result.trace.filter(({ what }) => what === 'signal').map(({ name }) => name)).toEqual([
      'app',
      'side-2',
      'side-1',
    ]);
  });

  it('the final phase is reported once nothing runs any more, neither a sidecar nor a slow container at the deadline', async () => {
    const over = await live({
      pod: simulatedPod({ sidecars: ['side'], apps: ['app'], restartPolicy: 'Never' }),
      scripts: { side: [{ stopMillis: 3000 }], app: once(1000) },
      limitMillis: 20_000,
    });
    const late = await live({
      pod: simulatedPod({ apps: ['app'], activeDeadlineSeconds: 5 }),
      scripts: { app: [{ stopMillis: 3000 }] },
      limitMillis: 20_000,
    });
    for (const [result, final] of [
      [over, 'Succeeded'],
      [late, 'Failed'],
    ] as const) {
      const lastExit = result.trace.findLast(({ what }) => what === 'exit')?.at;
      const finalStatus = result.statuses.find(({ status }) => status.phase === final);
      expect(finalStatus?.at).toBeGreaterThanOrEqual(lastExit ?? Number.NaN);
      expect(endOf(result)?.phase).toBe(final);
      expect(result.statuses.map(({ status }) => status.phase)).toContain('Running');
    }
  });

  it('a Pod that is stopped before its containers could start has failed, and so have its containers', async () => {
    const unknown = { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } };
    const waiting = { waiting: { reason: 'PodInitializing' } };
    const shape = { activeDeadlineSeconds: 20 };
    const [bare, held] = await Promise.all(
      [
        simulatedPod({ apps: ['app'], ...shape }),
        simulatedPod({ init: ['init', 'next'], apps: ['app'], ...shape }),
      ].map((pod) => {
        for (const each of [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])])
          each.imagePullPolicy = 'Never';
        return live({ pod, scripts: {}, absentImages: true, limitMillis: 60_000 });
      }),
    );
    expect(endOf(bare as NonNullable<typeof bare>)).toMatchObject({
      phase: 'Failed',
      containerStatuses: [{ state: unknown }],
    });
    // The init container whose turn had come is shown as terminated; the turn of the later containers had not come.
    expect(endOf(held as NonNullable<typeof held>)).toMatchObject({
      phase: 'Failed',
      initContainerStatuses: [{ state: unknown }, { state: waiting }],
      containerStatuses: [{ state: waiting }],
    });
  });

  it('a failed pull is retried with back-off, and each try is reported', async () => {
    let pulls = 0;
    const result = await live({
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: forever },
      absentImages: true,
      pullable: () => ++pulls > 2,
      limitMillis: 60_000,
    });
    const pulling = result.events.filter(({ reason }) => reason === 'Pulling');
    expect(pulling.map(({ at }) => Math.round((at - result.start) / 1000))).toEqual([0, 10, 30]);
    expect(result.events.map(({ reason }) => reason)).toEqual([
      'Pulling',
      'Failed',
      'Failed',
      'BackOff',
      'Failed',
      'Pulling',
      'Failed',
      'Failed',
      'BackOff',
      'Failed',
      'Pulling',
      'Pulled',
      'Created',
      'Started',
    ]);
    expect(starts(result)).toEqual(['app#0']);
  });

  it('a Pod that is deleted while its image is pulled ends immediately', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: forever },
      absentImages: true,
      deletions: [{ at: 12, graceSeconds: 30 }],
    });
    expect(starts(result)).toEqual([]);
    expect(result.goneAt).toBeLessThan(result.start + 100);
  });

  it('a Pod whose object was removed from the API by force is cleaned up', async () => {
    const result = await live({ pod: simulatedPod({ apps: ['app'] }), scripts: { app: [{}] }, forcedAt: 10_000 });
    expect(result.goneAt).toBeLessThan(result.start + 12_200);
    expect(result.trace.at(-1)?.what).toBe('remove');
  });

  it('a Pod that is deleted after an agent died before its first status loses its containers before its object', async () => {
    const { goneAt, actions, trace } = await live({
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: [{}] },
      statusMillis: 200,
      crashes: [{ action: 5, asked: true }],
      deletions: [{ at: 30, graceSeconds: 30 }],
    });
    expect(goneAt).toBeDefined();
    expect(trace.map(({ what }) => what)).toEqual(['sandbox', 'start', 'signal', 'exit', 'remove']);
    expect(actions.findIndex(({ action }) => action.kind === 'removeSandbox')).toBeLessThan(
      actions.findIndex(({ action }) => action.kind === 'finalizeDeletion'),
    );
  });

  it('the beginning of a pull is reported when the pull begins, even if another pull fails at the same time', async () => {
    const { transitions, start } = await live({
      pod: simulatedPod({ apps: ['one', 'two'] }),
      scripts: { one: forever, two: forever },
      absentImages: true,
      faults: [7, 8],
      limitMillis: 60_000,
    });
    const keys = transitions.map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
    const pulls = transitions.filter(({ type }) => type === 'Pulling' || type === 'PullFailed');
    expect(pulls.map(({ type, at }) => `${type} ${at - start}`)).toEqual([
      'Pulling 10',
      'Pulling 10',
      'PullFailed 20',
      'PullFailed 20',
      'Pulling 10020',
      'Pulling 10020',
    ]);
  });

  it('a failed image lookup is no longer shown once another lookup has found the image', async () => {
    const { statuses, start } = await live({
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: [{}] },
      faults: [1],
      mount: (tries) => (tries < 4 ? Promise.reject(new Error('no volume')) : Promise.resolve()),
      limitMillis: 30_000,
    });
    const reasons = statuses.map(({ at, status }) => {
      const { waiting } = status.containerStatuses?.[0]?.state ?? {};
      return [Math.round((at - start) / 1000), waiting?.reason];
    });
    expect(reasons).toContainEqual([0, 'ImageInspectError']);
    expect(reasons.filter(([seconds, reason]) => seconds !== 0 && reason === 'ImageInspectError')).toEqual([]);
    expect(reasons.some(([seconds]) => seconds === 1)).toBe(true);
  });
});
