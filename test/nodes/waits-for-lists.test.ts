import { expect, test } from 'vitest';
import type { Pod, PodSpec } from '../../src/api/generated/types.ts';
import { DAEMON_SETS, DEPLOYMENTS, JOBS, PODS, STATEFUL_SETS } from '../../src/api/resources.ts';
import type { KubeObject, ResourceRef } from '../../src/machinery/meta.ts';
import { isReady } from '../support/simulated-nodes/objects.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../support/simulated-nodes/simulated-cluster.ts';

const STRATEGIC = 'application/strategic-merge-patch+json';
const IMAGE = 'busybox:1.28';
const LIST_MILLIS = 20_000;
const LABELS = { app: 'web' };

const template = (spec: Partial<PodSpec> = {}): object => ({
  metadata: { labels: LABELS },
  spec: {
    containers: [{ name: 'app', image: IMAGE }],
    deferContainers: [{ name: 'hand-over', image: IMAGE, timeoutSeconds: 25 }],
    ...spec,
  },
});
const object = (apiVersion: string, kind: string, spec: object): KubeObject =>
  ({ apiVersion, kind, metadata: { name: 'web', namespace: 'default' }, spec }) as KubeObject;
const workload = (kind: string, spec: object): KubeObject =>
  object('apps/v1', kind, { selector: { matchLabels: LABELS }, template: template(), ...spec });
const NEW_VERSION = {
  spec: { template: { spec: { containers: [{ name: 'app', env: [{ name: 'V', value: '2' }] }] } } },
};

interface Lists {
  cluster: SimulatedCluster;
  /** When each list of defer containers began, by the name of the Pod. */
  begun: ReadonlyMap<string, number>;
  isRunning(pod: Pod): boolean;
}

async function start(): Promise<Lists & AsyncDisposable> {
  const begun = new Map<string, number>();
  const cluster = await startSimulatedCluster({
    nodes: 2,
    time: 'virtual',
    script({ pod, container }) {
      if (container !== 'hand-over') return {};
      if (!begun.has(pod.name)) begun.set(pod.name, cluster.timers.now());
      return { runMillis: LIST_MILLIS };
    },
  });
  return {
    cluster,
    begun,
    isRunning: ({ metadata }) => cluster.timers.now() < (begun.get(metadata.name) ?? -LIST_MILLIS) + LIST_MILLIS,
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

async function create(
  { cluster }: Lists,
  ref: ResourceRef,
  created: KubeObject,
  count: number,
): Promise<readonly Pod[]> {
  await cluster.during(cluster.client.resource(ref).create(created));
  return cluster.until<Pod>(PODS, (pods) => pods.length === count && pods.every(isReady));
}

const change = ({ cluster }: Lists, ref: ResourceRef, body: object): Promise<KubeObject> =>
  cluster.during(cluster.client.resource(ref).patch('web', 'default', STRATEGIC, body));

const isDeleting = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
const uidsOf = (pods: readonly Pod[]): Set<string | undefined> => new Set(pods.map(({ metadata }) => metadata.uid));
const isUpdated = ({ spec }: Pod): boolean => spec?.containers[0]?.env?.[0]?.value === '2';

test('a StatefulSet deletes the next Pod of a scale-down once the list of the one before has ended', async () => {
  await using lists = await start();
  await create(lists, STATEFUL_SETS, workload('StatefulSet', { replicas: 3, serviceName: 'web' }), 3);
  await change(lists, STATEFUL_SETS, { spec: { replicas: 1 } });
  await lists.cluster.until<Pod>(PODS, (pods) => {
    expect(pods.filter(isDeleting).length).toBeLessThanOrEqual(1);
    return pods.length === 1;
  });
  const [first = 0, second = 0] = [lists.begun.get('web-2'), lists.begun.get('web-1')];
  expect(second - first).toBeGreaterThanOrEqual(LIST_MILLIS);
  expect([...lists.begun.keys()]).toEqual(['web-2', 'web-1']);
});

test('a successor in a StatefulSet is created once the list of its predecessor has ended', async () => {
  await using lists = await start();
  const old = uidsOf(
    await create(lists, STATEFUL_SETS, workload('StatefulSet', { replicas: 2, serviceName: 'web' }), 2),
  );
  await change(lists, STATEFUL_SETS, NEW_VERSION);
  await lists.cluster.until<Pod>(PODS, (pods) => {
    for (const pod of pods) if (!old.has(pod.metadata.uid)) expect(lists.isRunning(pod)).toBe(false);
    return pods.length === 2 && pods.every((pod) => isUpdated(pod) && isReady(pod));
  });
  expect([...lists.begun.keys()]).toEqual(['web-1', 'web-0']);
});

test.each([
  ['Deployment with the strategy Recreate', DEPLOYMENTS, { replicas: 2, strategy: { type: 'Recreate' } }],
  ['DaemonSet without a surge', DAEMON_SETS, {}],
] as const)(
  'a %s creates Pods of a new template once the lists of the Pods in their places have ended',
  async (_, ref, spec) => {
    await using lists = await start();
    const kind = ref === DEPLOYMENTS ? 'Deployment' : 'DaemonSet';
    const old = await create(lists, ref, workload(kind, spec), 2);
    await change(lists, ref, NEW_VERSION);
    await lists.cluster.until<Pod>(PODS, (pods) => {
      const running = old.filter((pod) => lists.isRunning(pod));
      const blocked = new Set(running.map((pod) => pod.spec?.nodeName));
      const mustWait = (pod: Pod): boolean =>
        kind === 'Deployment' ? running.length > 0 : blocked.has(pod.spec?.nodeName);
      expect(pods.filter(isUpdated).filter(mustWait)).toEqual([]);
      return pods.length === 2 && pods.every((pod) => isUpdated(pod) && isReady(pod));
    });
    expect(lists.begun.size).toBe(2);
  },
);

test.each([
  ['Failed', true],
  ['TerminatingOrFailed', false],
])('a Job with the podReplacementPolicy %s replaces a deleted Pod only after its list: %s', async (policy, waits) => {
  await using lists = await start();
  const spec = { podReplacementPolicy: policy, template: template({ restartPolicy: 'Never' }) };
  const [old] = await create(lists, JOBS, object('batch/v1', 'Job', spec), 1);
  const { name = '', uid } = old?.metadata ?? {};
  await lists.cluster.during(lists.cluster.client.resource<Pod>(PODS).delete(name, 'default'));
  const replaced = await lists.cluster.until<Pod>(PODS, (pods) => pods.some(({ metadata }) => metadata.uid !== uid));
  const begun = lists.begun.get(name);
  const hasEnded = begun !== undefined && lists.cluster.timers.now() >= begun + LIST_MILLIS;
  expect([hasEnded, replaced.length > 0]).toEqual([waits, true]);
});
