import { describe, expect, it } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import type { RunScript } from '../runtime/simulated/simulated-runtime.ts';
import { type LifeResult, live } from './pod-life.ts';
import { simulatedPod } from './simulated-pod.ts';

const forever: RunScript[] = [{ stopMillis: 100 }];
const exec = { exec: { command: ['check'] } };
const readyAt = (result: LifeResult, ready: boolean): number | undefined => {
  const wanted = ready ? 'True' : 'False';
  const found = result.statuses.find(({ status }) =>
    status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === wanted),
  );
  return found === undefined ? undefined : found.at - result.start;
};
const starts = (result: LifeResult) =>
  result.trace.filter(({ what }) => what === 'start').map(({ name, attempt }) => `${name}#${attempt}`);
const reasons = (result: LifeResult) => result.events.map(({ reason, message }) => `${reason}: ${message}`);
const conditionNow = (result: LifeResult, name: string) =>
  result.statuses.at(-1)?.status.conditions?.find(({ type }) => type === name)?.status;

describe('probes', () => {
  it('a container is ready once its readiness probe has succeeded successThreshold times', async () => {
    const result = await live({
      pod: simulatedPod({
        apps: ['app'],
        each: { readinessProbe: { ...exec, initialDelaySeconds: 3, periodSeconds: 2, successThreshold: 2 } },
      }),
      scripts: { app: forever },
      limitMillis: 20_000,
    });
    const began = (result.trace.find(({ what }) => what === 'start')?.at ?? 0) - result.start;
    expect(result.probes.slice(0, 3).map(({ at }) => at - result.start - began)).toEqual([3005, 5005, 7005]);
    expect(readyAt(result, true)).toBe(began + 5005);
  });

  it('a failing readiness probe makes the Pod not Ready, and an Event reports why', async () => {
    const result = await live({
      pod: simulatedPod({
        apps: ['app'],
        each: { readinessProbe: { ...exec, periodSeconds: 1, failureThreshold: 3 } },
      }),
      scripts: { app: forever },
      probe: (_run, aliveMillis) => (aliveMillis < 10_000 ? 'Success' : 'Failure'),
      limitMillis: 20_000,
    });
    const lost = result.statuses.findLast(({ status }) => status.containerStatuses?.[0]?.ready === false);
    expect((lost?.at ?? 0) - result.start).toBeGreaterThan(12_000);
    expect((lost?.at ?? 0) - result.start).toBeLessThan(12_200);
    expect(conditionNow(result, 'Ready')).toBe('False');
    expect(starts(result)).toEqual(['app#0']);
    expect(reasons(result).at(-1)).toMatch(/^Unhealthy: Readiness probe failed: /);
  });

  it('a liveness probe that fails three times restarts its container', async () => {
    const result = await live({
      pod: simulatedPod({
        apps: ['app'],
        each: { livenessProbe: { ...exec, periodSeconds: 10, failureThreshold: 3 } },
      }),
      scripts: { app: forever },
      probe: ({ attempt }) => (attempt === 0 ? 'Failure' : 'Success'),
      limitMillis: 60_000,
    });
    expect(starts(result)).toEqual(['app#0', 'app#1']);
    const exit = result.trace.find(({ what }) => what === 'exit');
    expect((exit?.at ?? 0) - result.start).toBeLessThan(20_300);
    expect(reasons(result)).toContain('Killing: Container app failed liveness probe, will be restarted');
  });

  it('a failed liveness probe ends its container for good under restartPolicy Never, and restarts it under OnFailure', async () => {
    for (const [restartPolicy, runs] of [
      ['Never', ['app#0']],
      ['OnFailure', ['app#0', 'app#1']],
    ] as const) {
      const result = await live({
        pod: simulatedPod({ apps: ['app'], restartPolicy, each: { livenessProbe: { ...exec, periodSeconds: 1 } } }),
        scripts: { app: forever },
        probe: ({ attempt }) => (attempt === 0 ? 'Failure' : 'Success'),
        limitMillis: 30_000,
      });
      expect(starts(result)).toEqual(runs);
      const message = `Container app failed liveness probe${restartPolicy === 'Never' ? '' : ', will be restarted'}`;
      expect(reasons(result)).toContain(`Killing: ${message}`);
    }
  });

  it("the readiness probe of a sidecar counts for the Pod's condition Ready like that of an app", async () => {
    const pod = simulatedPod({ sidecars: ['side'], apps: ['app'] });
    Object.assign(pod.spec?.initContainers?.[0] ?? {}, { readinessProbe: { ...exec, periodSeconds: 1 } });
    const result = await live({
      pod,
      scripts: { side: forever, app: forever },
      probe: (_run, aliveMillis) => (aliveMillis < 7000 ? 'Failure' : 'Success'),
      limitMillis: 20_000,
    });
    expect(readyAt(result, true)).toBeGreaterThan(7000);
    const conditions = result.statuses.map(({ status }) => status.conditions?.find(({ type }) => type === 'Ready'));
    expect(conditions.map((each) => each?.message)).toContain('containers with unready status: [side]');
  });

  it.each<[string, object]>([
    ['startup', { startupProbe: { ...exec, periodSeconds: 1, failureThreshold: 1 } }],
    ['liveness', { livenessProbe: { ...exec, periodSeconds: 1, failureThreshold: 1 } }],
  ])('a failed %s probe of a sidecar restarts it, and the Event calls it an init container', async (kind, probes) => {
    const pod = simulatedPod({ sidecars: ['side'], apps: ['app'] });
    Object.assign(pod.spec?.initContainers?.[0] ?? {}, probes);
    const result = await live({
      pod,
      scripts: { side: forever, app: forever },
      probe: ({ attempt }) => (attempt === 0 ? 'Failure' : 'Success'),
      limitMillis: 20_000,
    });
    expect(starts(result)).toContain('side#1');
    expect(reasons(result)).toContain(`Killing: Init container side failed ${kind} probe`);
  });

  it('the terminationGracePeriodSeconds of a probe limit the stop of its run', async () => {
    const result = await live({
      pod: simulatedPod({
        apps: ['app'],
        each: { livenessProbe: { ...exec, periodSeconds: 1, failureThreshold: 1, terminationGracePeriodSeconds: 5 } },
      }),
      scripts: { app: [{}, { stopMillis: 1 }] },
      probe: ({ attempt }) => (attempt === 0 ? 'Failure' : 'Success'),
      limitMillis: 30_000,
    });
    const [signal, exit] = ['signal', 'exit'].map(
      (wanted) => result.trace.find(({ what }) => what === wanted)?.at ?? 0,
    );
    expect(Math.round(((exit ?? 0) - (signal ?? 0)) / 1000)).toBe(5);
  });

  it('a startup probe delays the other probes until it succeeds, and ends a run that does not start up', async () => {
    const each = {
      startupProbe: { ...exec, periodSeconds: 1, failureThreshold: 30 },
      livenessProbe: { ...exec, periodSeconds: 1, failureThreshold: 1 },
      readinessProbe: { ...exec, periodSeconds: 1 },
    };
    const slow = await live({
      pod: simulatedPod({ apps: ['app'], each }),
      scripts: { app: forever },
      probe: (_run, aliveMillis) => (aliveMillis < 20_000 ? 'Failure' : 'Success'),
      limitMillis: 40_000,
    });
    expect(starts(slow)).toEqual(['app#0']);
    expect(readyAt(slow, true)).toBeGreaterThan(20_000);
    expect(slow.probes.slice(0, 20).every(({ probe }) => probe === 'startup')).toBe(true);

    const stuck = await live({
      pod: simulatedPod({ apps: ['app'], each: { startupProbe: { ...exec, periodSeconds: 1, failureThreshold: 5 } } }),
      scripts: { app: forever },
      probe: () => 'Failure',
      limitMillis: 8_000,
    });
    expect(starts(stuck)).toEqual(['app#0', 'app#1']);
    expect(reasons(stuck)).toContain('Killing: Container app failed startup probe, will be restarted');
  });

  it('the startup probe of a sidecar delays the containers after it', async () => {
    const pod = simulatedPod({ sidecars: ['side'], init: ['init'], apps: ['app'] });
    Object.assign(pod.spec?.initContainers?.[0] ?? {}, {
      startupProbe: { ...exec, periodSeconds: 1, failureThreshold: 99 },
    });
    const result = await live({
      pod,
      scripts: { side: forever, init: [{ runMillis: 10 }], app: forever },
      probe: (_run, aliveMillis) => (aliveMillis < 7000 ? 'Failure' : 'Success'),
      limitMillis: 20_000,
    });
    expect(starts(result)).toEqual(['side#0', 'init#0', 'app#0']);
    expect(
      (result.trace.find(({ name, what }) => name === 'init' && what === 'start')?.at ?? 0) - result.start,
    ).toBeGreaterThan(7000);
  });

  it('once the Pod terminates, only readiness is probed', async () => {
    const result = await live({
      pod: simulatedPod({
        apps: ['app'],
        each: { livenessProbe: { ...exec, periodSeconds: 1 }, readinessProbe: { ...exec, periodSeconds: 1 } },
      }),
      scripts: { app: [{ stopMillis: 8000 }] },
      deletions: [{ at: 10_000, graceSeconds: 30 }],
    });
    const late = new Set(result.probes.filter(({ at }) => at > result.start + 10_100).map(({ probe }) => probe));
    expect([...late]).toEqual(['readiness']);
  });

  it('a restart of the agent does not make a ready container unready', async () => {
    const result = await live({
      pod: simulatedPod({
        apps: ['app'],
        each: { readinessProbe: { ...exec, periodSeconds: 10, initialDelaySeconds: 5 } },
      }),
      scripts: { app: forever },
      crashes: [{ action: 8, asked: true }],
      limitMillis: 60_000,
    });
    const verdicts = result.statuses.map(({ status }) => status.containerStatuses?.[0]?.ready);
    expect(verdicts.indexOf(true)).toBeGreaterThan(0);
    expect(verdicts.slice(verdicts.indexOf(true))).not.toContain(false);
  });
});

describe('hooks', () => {
  it('a container counts as running once its postStart hook has succeeded', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app'], each: { lifecycle: { postStart: exec } } }),
      scripts: { app: forever },
      hook: () => ({ millis: 5000 }),
      limitMillis: 20_000,
    });
    const running = result.statuses.find(({ status }) => status.containerStatuses?.[0]?.state?.running !== undefined);
    expect((running?.at ?? 0) - result.start).toBeGreaterThan(5000);
    expect(result.hooks).toHaveLength(1);
  });

  it('a container whose postStart hook fails is killed and restarted', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app'], each: { lifecycle: { postStart: exec } } }),
      scripts: { app: forever },
      hook: () => ({ millis: 10, failure: 'it said no' }),
      limitMillis: 5_000,
    });
    expect(starts(result)).toEqual(['app#0', 'app#1']);
    const shown = result.statuses.map(({ status: { containerStatuses: [app] = [] } }) => {
      const { waiting, running, terminated } = app?.state ?? {};
      const why = waiting?.reason === 'PostStartHookError' ? waiting.message : waiting?.reason;
      return `${why ?? (running ? 'running' : terminated?.reason)}${app?.lastState?.terminated ? ', again' : ''}`;
    });
    expect(shown.filter((each, i) => each !== shown[i - 1])).toEqual([
      'ContainerCreating',
      'it said no',
      'it said no, again',
      'CrashLoopBackOff, again',
    ]);
    expect(reasons(result)).toContain('FailedPostStartHook: PostStartHook failed');
    expect(reasons(result)).toContain('Killing: FailedPostStartHook');
  });

  it('the stop signal waits for preStop, which counts against the grace period', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app'], each: { lifecycle: { preStop: exec } } }),
      scripts: { app: [{}] },
      hook: () => ({ millis: 4000 }),
      deletions: [{ at: 10_000, graceSeconds: 10 }],
    });
    const at = (wanted: string) => (result.trace.find(({ what }) => what === wanted)?.at ?? 0) - result.start;
    expect(Math.round(at('signal') / 1000)).toBe(14);
    expect(Math.round(at('exit') / 1000)).toBe(20);
  });

  it('a preStop hook that outlasts the grace period leaves 2 s between signal and kill', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app'], each: { lifecycle: { preStop: exec } } }),
      scripts: { app: [{}] },
      hook: () => ({ millis: 60_000 }),
      deletions: [{ at: 10_000, graceSeconds: 5 }],
    });
    const at = (wanted: string) => (result.trace.find(({ what }) => what === wanted)?.at ?? 0) - result.start;
    expect(Math.round(at('signal') / 1000)).toBe(15);
    expect(Math.round(at('exit') / 1000)).toBe(17);
    expect(result.goneAt).toBeLessThan(result.start + 17_500);
  });

  it('the preStop hook of a sidecar begins with those of the apps; its stop signal waits for its turn', async () => {
    const lifecycle = { preStop: exec };
    const sidecars = ['side-1', 'side-2'];
    const result = await live({
      pod: simulatedPod({ sidecars, apps: ['app'], each: { lifecycle }, eachSidecar: { lifecycle } }),
      scripts: { 'side-1': forever, 'side-2': forever, app: forever },
      hook: ({ name }) => ({ millis: { app: 1000, 'side-1': 2000, 'side-2': 4000 }[name] ?? 0 }),
      deletions: [{ at: 10_000, graceSeconds: 30 }],
    });
    const at = (time: number): number => Math.round((time - result.start) / 1000);
    expect(result.hooks.map((hook) => `${hook.container} ${at(hook.at)}`).sort()).toEqual([
      'app 10',
      'side-1 10',
      'side-2 10',
    ]);
    const signals = result.trace.filter(({ what }) => what === 'signal');
    expect(signals.map((signal) => [signal.name, at(signal.at)])).toEqual([
      ['app', 11],
      ['side-2', 14],
      ['side-1', 14],
    ]);
  });

  it('no preStop hook runs for a container that ended on its own', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app'], restartPolicy: 'Never', each: { lifecycle: { preStop: exec } } }),
      scripts: { app: [{ runMillis: 1000 }] },
      deletions: [{ at: 10_000, graceSeconds: 10 }],
    });
    expect(result.hooks).toEqual([]);
  });
});

describe('changes of a running Pod', () => {
  const withImage = (pod: Pod, list: 'containers' | 'initContainers', image: string): Pod => ({
    ...pod,
    spec: { ...pod.spec, [list]: pod.spec?.[list]?.map((container) => ({ ...container, image })) } as Pod['spec'],
  });

  it('a changed image of an app restarts only its container, that of an init container restarts nothing', async () => {
    const result = await live({
      pod: simulatedPod({ init: ['init'], apps: ['app'] }),
      scripts: { init: [{ runMillis: 10 }], app: forever },
      edits: [
        { at: 10_000, edit: (pod) => withImage(pod, 'initContainers', 'busybox:2') },
        { at: 20_000, edit: (pod) => withImage(pod, 'containers', 'busybox:2') },
      ],
      limitMillis: 30_000,
    });
    expect(starts(result)).toEqual(['init#0', 'app#0', 'app#1']);
    expect(result.trace.findLast(({ what }) => what === 'start')?.at).toBeGreaterThan(result.start + 20_000);
    expect(reasons(result)).toContain('Killing: Container app definition changed, will be restarted');
  });

  it('a changed image of a sidecar restarts only the sidecar, and the Event calls it an init container', async () => {
    const result = await live({
      pod: simulatedPod({ sidecars: ['side'], apps: ['app'] }),
      scripts: { side: forever, app: forever },
      edits: [{ at: 10_000, edit: (pod) => withImage(pod, 'initContainers', 'busybox:2') }],
      limitMillis: 30_000,
    });
    expect(starts(result)).toEqual(['side#0', 'app#0', 'side#1']);
    expect(reasons(result)).toContain('Killing: Init container side definition changed');
  });

  it('an added ephemeral container runs exactly once, in parallel with the others', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: forever, debug: [{ runMillis: 2000, exitCode: 1 }] },
      edits: [
        {
          at: 10_000,
          edit: (pod) => ({
            ...pod,
            spec: {
              ...pod.spec,
              ephemeralContainers: [{ name: 'debug', image: 'busybox:1.28', targetContainerName: 'app' }],
            } as Pod['spec'],
          }),
        },
      ],
      crashes: [{ action: 9, asked: true }],
      limitMillis: 60_000,
    });
    expect(starts(result)).toEqual(['app#0', 'debug#0']);
    expect(result.statuses.at(-1)?.status.ephemeralContainerStatuses?.[0]?.state?.terminated?.exitCode).toBe(1);
    expect(result.statuses.at(-1)?.status.phase).toBe('Running');
    expect(conditionNow(result, 'Ready')).toBe('True');
  });

  it('an ephemeral container waits for its target, and reports that once', async () => {
    const withDebugger = (pod: Pod, name: string, targetContainerName: string): Pod => ({
      ...pod,
      spec: {
        ...pod.spec,
        ephemeralContainers: [
          ...(pod.spec?.ephemeralContainers ?? []),
          { name, image: 'busybox:1.28', imagePullPolicy: 'IfNotPresent', targetContainerName },
        ],
      } as Pod['spec'],
    });
    const result = await live({
      pod: simulatedPod({ init: ['init'], apps: ['app', 'brief'], restartPolicy: 'Never' }),
      scripts: { init: [{ runMillis: 10_000 }], app: forever, brief: [{ runMillis: 1000 }] },
      edits: [
        { at: 5_000, edit: (pod) => withDebugger(pod, 'early', 'app') },
        { at: 6_000, edit: (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { edited: '' } } }) },
        { at: 20_000, edit: (pod) => withDebugger(pod, 'late', 'brief') },
      ],
      limitMillis: 30_000,
    });
    expect(starts(result)).toEqual(['init#0', 'app#0', 'brief#0', 'early#0']);
    const shown = (at: number) =>
      result.statuses.findLast((each) => each.at < result.start + at)?.status.ephemeralContainerStatuses ?? [];
    const waiting = (message: string) => ({ waiting: { reason: 'CreateContainerConfigError', message } });
    expect(shown(9_000)[0]?.state).toEqual(waiting('unable to find target container app'));
    expect(shown(30_000)[0]?.state?.running).toBeDefined();
    expect(shown(30_000)[1]?.state).toEqual(waiting('target container brief is not running'));
    expect(reasons(result).filter((each) => each.startsWith('Failed'))).toEqual([
      'Failed: Error: unable to find target container app',
      'Failed: Error: target container brief is not running',
    ]);
  });

  it('a container whose image changes before it starts runs the new image, without the back-off of the old one', async () => {
    const pod = simulatedPod({ init: ['init'], apps: ['app'] });
    const whileInitializing = await live({
      pod,
      scripts: { init: [{ runMillis: 10_000 }], app: forever },
      edits: [{ at: 5_000, edit: (each) => withImage(each, 'containers', 'busybox:2') }],
      limitMillis: 30_000,
    });
    expect(whileInitializing.actions.findLast(({ action }) => action.kind === 'startContainer')?.action).toMatchObject({
      container: 'app',
      imageId: 'sha256:busybox:2',
    });

    const afterBadImage = await live({
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: forever },
      absentImages: true,
      pullable: (reference) => reference === 'busybox:2',
      edits: [{ at: 60_000, edit: (each) => withImage(each, 'containers', 'busybox:2') }],
      limitMillis: 90_000,
    });
    expect((afterBadImage.trace.find(({ what }) => what === 'start')?.at ?? 0) - afterBadImage.start).toBeLessThan(
      61_000,
    );
  });

  it('a lost sandbox is stopped before the next one is created', async () => {
    const result = await live({
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: forever },
      sandboxLostAt: 10_000,
      limitMillis: 30_000,
    });
    const kinds = result.actions.map(({ action }) => action.kind);
    expect(kinds.indexOf('stopSandbox')).toBeGreaterThan(0);
    expect(kinds.indexOf('stopSandbox')).toBeLessThan(kinds.lastIndexOf('createSandbox'));
  });

  it('sidecars that ignore the signal are killed together at the deadline', async () => {
    const sidecars = ['side-1', 'side-2', 'side-3'];
    const result = await live({
      pod: simulatedPod({ sidecars, apps: ['app'] }),
      scripts: { app: forever, ...Object.fromEntries(sidecars.map((name) => [name, [{}]])) },
      deletions: [{ at: 10_000, graceSeconds: 10 }],
    });
    expect(result.goneAt).toBeLessThan(result.start + 22_500);
  });
});
