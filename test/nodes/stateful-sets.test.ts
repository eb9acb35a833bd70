import { expect, test } from 'vitest';
import type { PersistentVolumeClaim, Pod, StatefulSet, StatefulSetSpec } from '../../src/api/generated/types.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS } from '../../src/api/resources.ts';
import { allReady, isReady, simpleDeployment } from '../support/simulated-nodes/objects.ts';
import {
  type SimulatedCluster,
  type SimulatedClusterOptions,
  startSimulatedCluster,
} from '../support/simulated-nodes/simulated-cluster.ts';

const STRATEGIC = 'application/strategic-merge-patch+json';

const start = (options: Partial<SimulatedClusterOptions> = {}): Promise<SimulatedCluster> =>
  startSimulatedCluster({ nodes: 3, time: 'virtual', ...options });

async function created(
  cluster: SimulatedCluster,
  replicas: number,
  spec: Partial<StatefulSetSpec> = {},
): Promise<void> {
  const { selector = {}, template = {} } = simpleDeployment('db', replicas).spec ?? {};
  const object: StatefulSet = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db', namespace: 'default' },
    spec: { replicas, serviceName: 'db', selector, template, ...spec },
  };
  await cluster.during(cluster.client.resource<StatefulSet>(STATEFUL_SETS).create(object));
}

/** `replicas` Pods are available and have the current template, and the status is up to date. */
const isComplete =
  (replicas: number) =>
  ([set]: readonly StatefulSet[]): boolean => {
    const { observedGeneration, currentRevision, updateRevision, ...counts } = set?.status ?? { replicas: -1 };
    const isCurrent = observedGeneration === set?.metadata.generation && currentRevision === updateRevision;
    const all = [counts.replicas, counts.availableReplicas, counts.updatedReplicas ?? 0];
    return isCurrent && all.every((count) => count === replicas);
  };

const change = ({ client, during }: SimulatedCluster, spec: object): Promise<StatefulSet> =>
  during(client.resource<StatefulSet>(STATEFUL_SETS).patch('db', 'default', STRATEGIC, { spec }));

const version = (value: string): object => ({
  template: { spec: { containers: [{ name: 'app', env: [{ name: 'V', value }] }] } },
});
const versionOf = ({ spec }: Pod): string => spec?.containers[0]?.env?.[0]?.value ?? '1';
const isActive = ({ metadata }: Pod): boolean => metadata.deletionTimestamp === undefined;
const ordinalOf = ({ metadata }: Pod): number => Number(metadata.name.slice('db-'.length));
const byOrdinal = (pods: readonly Pod[]): Pod[] => [...pods].sort((a, b) => ordinalOf(a) - ordinalOf(b));

async function completed(
  cluster: SimulatedCluster,
  replicas: number,
  to: string,
  check: (pods: readonly Pod[]) => void = () => undefined,
): Promise<void> {
  await cluster.until<Pod>(PODS, (pods) => {
    check(pods);
    return allReady(replicas)(pods) && pods.every((pod) => isActive(pod) && versionOf(pod) === to);
  });
  await cluster.until<StatefulSet>(STATEFUL_SETS, isComplete(replicas));
}

test('Pods start in order over the nodes, each once the one before is available', async () => {
  await using cluster = await start();
  await created(cluster, 4, { minReadySeconds: 20 });
  await completed(cluster, 4, '1', (pods) => {
    const ordered = byOrdinal(pods);
    for (const [index, pod] of ordered.entries()) {
      expect(ordinalOf(pod)).toBe(index);
      if (index < ordered.length - 1) expect(isReady(pod)).toBe(true);
    }
  });
  const pods = byOrdinal(await cluster.until<Pod>(PODS, allReady(4)));
  const starts = pods.map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? ''));
  for (const [index, at] of starts.entries())
    if (index > 0) expect(at - (starts[index - 1] ?? 0)).toBeGreaterThanOrEqual(20_000);
  expect(pods.map(({ spec }) => spec?.hostname)).toEqual(['db-0', 'db-1', 'db-2', 'db-3']);
});

test('an update replaces one Pod after another from the highest ordinal, and stops at the partition', async () => {
  await using cluster = await start();
  await created(cluster, 3);
  await completed(cluster, 3, '1');
  await change(cluster, {
    ...version('2'),
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } },
  });
  const isOrdered = (pods: readonly Pod[]): void => {
    expect(pods.filter((pod) => isReady(pod) && isActive(pod)).length).toBeGreaterThanOrEqual(2);
    const updated = byOrdinal(pods).map((pod) => versionOf(pod) === '2');
    expect(updated).toEqual(updated.toSorted());
  };
  const canary = await cluster.until<Pod>(PODS, (pods) => {
    isOrdered(pods);
    return allReady(3)(pods) && pods.every(isActive) && pods.filter((pod) => versionOf(pod) === '2').length === 2;
  });
  expect(byOrdinal(canary).map(versionOf)).toEqual(['1', '2', '2']);
  await change(cluster, { updateStrategy: { rollingUpdate: { partition: 0 } } });
  await completed(cluster, 3, '2', isOrdered);
});

test('a Pod that is deleted, replaced or scaled down has no successor before its defer containers have ended', async () => {
  const script: SimulatedClusterOptions['script'] = ({ container }) =>
    container === 'bye' ? { runMillis: 60_000 } : {};
  await using cluster = await start({ script });
  const { template } = simpleDeployment('db', 1).spec ?? {};
  const deferContainers = [{ name: 'bye', image: 'busybox:1.28' }];
  const spec = { containers: [], ...template?.spec, deferContainers, terminationGracePeriodSeconds: 300 };
  await created(cluster, 2, { podManagementPolicy: 'Parallel', template: { ...template, spec } });
  await completed(cluster, 2, '1');
  const alive = new Map<string, string>();
  /** No Pod may be replaced within 60 s of its deletion, because its defer containers cannot have ended by then. */
  const began = new Map<string, number>();
  const check = (pods: readonly Pod[]): void => {
    for (const pod of pods) {
      const { name, uid = '', deletionTimestamp } = pod.metadata;
      const before = alive.get(name);
      if (before !== undefined && before !== uid)
        expect(cluster.timers.now() - (began.get(before) ?? 0)).toBeGreaterThanOrEqual(60_000);
      alive.set(name, uid);
      if (deletionTimestamp !== undefined && !began.has(uid)) began.set(uid, cluster.timers.now());
    }
  };
  const reasonOf = (pod: Pod | undefined): string | undefined =>
    pod?.status?.conditions?.find(({ type }) => type === 'DeletionReason')?.reason;
  await change(cluster, version('2'));
  await completed(cluster, 2, '2', (pods) => {
    check(pods);
    for (const pod of pods.filter((each) => !isActive(each))) expect(reasonOf(pod)).toBe('Replaced');
  });
  await cluster.during(cluster.client.resource<Pod>(PODS).delete('db-0', 'default'));
  await cluster.until<Pod>(PODS, (pods) => {
    check(pods);
    return allReady(2)(pods) && pods.every((pod) => isActive(pod));
  });
  await change(cluster, { replicas: 1 });
  await cluster.until<Pod>(PODS, (pods) => {
    check(pods);
    for (const pod of pods.filter((each) => !isActive(each))) expect(reasonOf(pod)).toBe('ScaledDown');
    return allReady(1)(pods);
  });
  expect(began.size).toBe(4);
});

test('a StatefulSet keeps its Pods while the agent of a node is killed and started again', async () => {
  await using cluster = await start();
  await created(cluster, 3);
  await completed(cluster, 3, '1');
  const before = byOrdinal(await cluster.until<Pod>(PODS, allReady(3)));
  cluster.node('node-1').kill();
  await cluster.restart('node-1');
  await cluster.pass(30_000);
  const after = byOrdinal(await cluster.until<Pod>(PODS, allReady(3)));
  expect(after.map(({ metadata }) => metadata.uid)).toEqual(before.map(({ metadata }) => metadata.uid));
});

test('claims are deleted with their Pod on a scale-down and with the StatefulSet, as the retention policy says', async () => {
  await using cluster = await start({ nodes: 1 });
  const claim: PersistentVolumeClaim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
  };
  const persistentVolumeClaimRetentionPolicy = { whenDeleted: 'Delete', whenScaled: 'Delete' };
  await created(cluster, 2, { volumeClaimTemplates: [claim], persistentVolumeClaimRetentionPolicy });
  await completed(cluster, 2, '1');
  const untilClaims = (...names: string[]): Promise<readonly PersistentVolumeClaim[]> =>
    cluster.until<PersistentVolumeClaim>(
      PERSISTENT_VOLUME_CLAIMS,
      (claims) =>
        claims
          .map(({ metadata }) => metadata.name)
          .sort()
          .join() === names.join(),
    );
  const [, scaled] = [...(await untilClaims('data-db-0', 'data-db-1'))].sort((a, b) =>
    a.metadata.name < b.metadata.name ? -1 : 1,
  );
  await change(cluster, { replicas: 1 });
  await untilClaims('data-db-0');
  await change(cluster, { replicas: 2 });
  await completed(cluster, 2, '1');
  const again = await untilClaims('data-db-0', 'data-db-1');
  expect(again.map(({ metadata }) => metadata.uid)).not.toContain(scaled?.metadata.uid);
  await cluster.during(cluster.client.resource<StatefulSet>(STATEFUL_SETS).delete('db', 'default'));
  await untilClaims();
});

test('a StatefulSet that is created again adopts the Pods of one that was deleted with orphans', async () => {
  await using cluster = await start();
  await created(cluster, 2);
  await completed(cluster, 2, '1');
  const before = byOrdinal(await cluster.until<Pod>(PODS, allReady(2)));
  const sets = cluster.client.resource<StatefulSet>(STATEFUL_SETS);
  await cluster.during(sets.delete('db', 'default', { propagationPolicy: 'Orphan' }));
  await cluster.until<StatefulSet>(STATEFUL_SETS, (all) => all.length === 0);
  await created(cluster, 2);
  await completed(cluster, 2, '1');
  const after = byOrdinal(await cluster.until<Pod>(PODS, allReady(2)));
  expect(after.map(({ metadata }) => metadata.uid)).toEqual(before.map(({ metadata }) => metadata.uid));
  expect(after.every(({ metadata }) => metadata.ownerReferences?.[0]?.kind === 'StatefulSet')).toBe(true);
});
