import { expect } from 'vitest';
import { hasEnded } from '../../src/api/core/v1/pod/status/final-phase.ts';
import type { Deployment, Pod, ReplicaSet } from '../../src/api/generated/types.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

const RUN = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';

const create = async (replicas: number): Promise<void> => {
  const container = ['--image=busybox:1.28', `--replicas=${replicas}`, '--', 'sh', '-c', RUN];
  expect(await lifepod.kubectlOk('create', 'deployment', 'web', ...container)).toBe('deployment.apps/web created\n');
  await rolledOut();
};
const rolledOut = async (): Promise<void> => {
  const shown = await lifepod.kubectlOk('rollout', 'status', 'deployment/web', '--timeout=120s');
  expect(shown).toMatch(/deployment "web" successfully rolled out\n$/);
};
const set = (variable: string): Promise<string> => lifepod.kubectlOk('set', 'env', 'deployment/web', variable);
const rollout = (...args: string[]): Promise<string> => lifepod.kubectlOk('rollout', ...args);
const items = async <T>(plural: string): Promise<T[]> =>
  (await lifepod.get<{ items: T[] }>(plural, '-l', 'app=web')).items;
const replicaSets = (): Promise<ReplicaSet[]> => items<ReplicaSet>('replicasets');
const pods = async (): Promise<Pod[]> =>
  (await items<Pod>('pods')).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
const web = (): Promise<Deployment> => lifepod.get<Deployment>('deployment', 'web');
const patch = (spec: object): Promise<string> =>
  lifepod.kubectlOk('patch', 'deployment', 'web', '-p', JSON.stringify({ spec }));
const until = (path: string, value: string): Promise<void> =>
  lifepod.wait('deployment/web', `--for=jsonpath={.status.${path}}=${value}`);
const valuesOf = (all: readonly Pod[]): (string | undefined)[] =>
  all.map(({ spec }) => spec?.containers[0]?.env?.find(({ name }) => name === 'V')?.value);

test('a Deployment rolls over to a new template, is undone and is restarted', async () => {
  await create(3);
  expect(await lifepod.kubectlOk('get', 'deployment', 'web')).toMatch(/^web +3\/3 +3 +3 +\d+s$/m);
  expect(valuesOf(await pods())).toEqual([undefined, undefined, undefined]);
  await lifepod.kubectlOk('annotate', 'deployment/web', 'kubernetes.io/change-cause=the first');

  await set('V=2');
  await lifepod.kubectlOk('annotate', '--overwrite', 'deployment/web', 'kubernetes.io/change-cause=the second');
  await rolledOut();
  expect(valuesOf(await pods())).toEqual(['2', '2', '2']);
  const history = await rollout('history', 'deployment/web');
  expect(history).toMatch(/^deployment\.apps\/web \nREVISION +CHANGE-CAUSE\n1 +the first\n2 +the second\n/);
  expect(await rollout('history', 'deployment/web', '--revision=2')).toMatch(/V:\s+2/);

  expect(await rollout('undo', 'deployment/web')).toBe('deployment.apps/web rolled back\n');
  await rolledOut();
  expect(valuesOf(await pods())).toEqual([undefined, undefined, undefined]);
  expect(await rollout('history', 'deployment/web')).toMatch(/\n2 +the second\n3 +the first\n/);
  expect(await replicaSets()).toHaveLength(2);

  const before = (await pods()).map(({ metadata }) => metadata.name);
  expect(await rollout('restart', 'deployment/web')).toBe('deployment.apps/web restarted\n');
  await rolledOut();
  const after = (await pods()).map(({ metadata }) => metadata.name);
  expect(after.filter((name) => before.includes(name))).toEqual([]);
  expect(await lifepod.kubectlOk('describe', 'deployment', 'web')).toMatch(
    /Normal +ScalingReplicaSet .* deployment-controller +Scaled up replica set web-\S+ from 0 to 3/,
  );
});

test('a paused Deployment is scaled but starts no rollout, which begins when it is resumed', async () => {
  await create(2);
  expect(await rollout('pause', 'deployment/web')).toBe('deployment.apps/web paused\n');
  await set('V=2');
  await lifepod.kubectlOk('scale', 'deployment', 'web', '--replicas=3');
  await until('availableReplicas', '3');
  expect(valuesOf(await pods())).toEqual([undefined, undefined, undefined]);
  expect(await replicaSets()).toHaveLength(1);
  expect((await web()).status?.conditions).toContainEqual(
    expect.objectContaining({ type: 'Progressing', status: 'Unknown', reason: 'DeploymentPaused' }),
  );
  expect(await rollout('resume', 'deployment/web')).toBe('deployment.apps/web resumed\n');
  await rolledOut();
  expect(valuesOf(await pods())).toEqual(['2', '2', '2']);
});

test('a rollout whose Pods never become ready keeps the old Pods, misses its deadline, is scaled and undone', async () => {
  await create(4);
  const never = { exec: { command: ['false'] }, periodSeconds: 1 };
  const containers = [{ name: 'busybox', readinessProbe: never }];
  await patch({ progressDeadlineSeconds: 3, template: { spec: { containers } } });
  const status = await lifepod.kubectl('rollout', 'status', 'deployment/web', '--timeout=60s');
  expect(status.code).toBe(1);
  expect(status.stderr).toContain('error: deployment "web" exceeded its progress deadline');
  const sizes = async (): Promise<(number | undefined)[]> =>
    (await replicaSets()).map(({ spec }) => spec?.replicas).sort();
  expect(await sizes()).toEqual([2, 3]);

  await lifepod.kubectlOk('scale', 'deployment', 'web', '--replicas=8');
  await until('readyReplicas', '6');
  expect(await sizes()).toEqual([4, 6]);
  await rollout('undo', 'deployment/web');
  await until('availableReplicas', '8');
  await rolledOut();
  expect(await sizes()).toEqual([0, 8]);
});

test('the strategy Recreate starts new Pods once the old ones have ended', async () => {
  await create(2);
  await patch({ strategy: { type: 'Recreate', rollingUpdate: null } });
  const old = (await pods()).map(({ metadata }) => metadata.name);
  await set('V=2');
  await rolledOut();
  const started = await pods();
  expect(valuesOf(started)).toEqual(['2', '2']);
  const endedAt = old.map((name) => record.history(name).find(({ pod }) => hasEnded(pod))?.at ?? Number.NaN);
  const createdAt = started.map(({ metadata }) => record.history(metadata.name)[0]?.at ?? 0);
  expect(Math.min(...createdAt)).toBeGreaterThanOrEqual(Math.max(...endedAt));
});

test('the Pods of a Deployment run the defer containers for the reasons Replaced and ScaledDown', async () => {
  await create(1);
  const entry = (name: string, reason: string): object => ({
    name,
    trigger: 'PostExit',
    onReasons: [reason],
    image: 'busybox:1.28',
    command: ['true'],
  });
  const deferContainers = [entry('replaced', 'Replaced'), entry('scaled', 'ScaledDown')];
  const container = { name: 'busybox', image: 'busybox:1.28', command: ['sh', '-c', RUN] };
  const current = await web();
  await lifepod.apply({
    ...current,
    metadata: { name: 'web' },
    status: undefined,
    spec: {
      ...current.spec,
      template: { ...current.spec?.template, spec: { containers: [container], deferContainers } },
    },
  });
  await rolledOut();
  const ranIn = async (name: string): Promise<string[]> => {
    await record.gone(name);
    const statuses = record.now(name).status?.deferContainerStatuses ?? [];
    return statuses.filter(({ state }) => state?.terminated?.reason === 'Completed').map((each) => each.name);
  };
  const [first] = await pods();
  await set('V=2');
  await rolledOut();
  expect(await ranIn(first?.metadata.name ?? '')).toEqual(['replaced']);
  const [second] = await pods();
  await lifepod.kubectlOk('scale', 'deployment', 'web', '--replicas=0');
  expect(await ranIn(second?.metadata.name ?? '')).toEqual(['scaled']);
});
