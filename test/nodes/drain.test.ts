/**
 * Runs the example of the page "Disruptions" of v1.33, step by step, on three simulated nodes: a Deployment with three replicas, of which
 * its PodDisruptionBudget requires two, and another Pod without a budget, while the nodes are drained one after the other. Also tests
 * budgets of Pods with defer containers.
 */
import { expect, test } from 'vitest';
import type {
  Deployment,
  Node,
  Pod,
  PodDisruptionBudget,
  PodSpec,
  ReplicaSet,
  StatefulSet,
} from '../../src/api/generated/types.ts';
import {
  DEPLOYMENTS,
  NODES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  REPLICA_SETS,
  STATEFUL_SETS,
} from '../../src/api/resources.ts';
import type { ApiError } from '../../src/machinery/status.ts';
import { isReady, simpleDeployment, simplePod, simpleReplicaSet } from '../support/simulated-nodes/objects.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../support/simulated-nodes/simulated-cluster.ts';

const STOP_MILLIS = 30_000;
const START_MILLIS = 90_000;

/** A node has room for only two of these Pods. */
const podSpec = (nodeSelector: Record<string, string> = {}) => {
  const readinessProbe = { exec: { command: ['check'] }, periodSeconds: 10 };
  const resources = { requests: { cpu: '1' } };
  const containers = [{ name: 'app', image: 'busybox:1.28', readinessProbe, resources }];
  return { terminationGracePeriodSeconds: 60, nodeSelector, containers };
};

const [deployment, other] = [simpleDeployment('web', 3), simpleReplicaSet('x', 1)];
const WEB = {
  ...deployment,
  spec: { ...deployment.spec, template: { ...deployment.spec?.template, spec: podSpec() } },
} as Deployment;
/** The label of the nodes on which the page shows the other Pod. */
const OTHERS = { others: 'run-here' };
const X = {
  ...other,
  spec: { ...other.spec, template: { ...other.spec?.template, spec: podSpec(OTHERS) } },
} as ReplicaSet;
const BUDGET: PodDisruptionBudget = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'web', namespace: 'default' },
  spec: { minAvailable: 2, selector: { matchLabels: { app: 'web' } } },
};

const isOfWeb = ({ metadata }: Pod): boolean => metadata.labels?.['app'] === 'web';

const stateOf = (pod: Pod): string => {
  if (pod.metadata.deletionTimestamp !== undefined) return 'terminating';
  if (!pod.spec?.nodeName) return 'pending';
  return isReady(pod) ? 'available' : 'starting';
};

class Example {
  readonly #cluster: SimulatedCluster;
  /** The names that the page gives to Pods, by UID. The lists contain the names that no Pod has yet. */
  readonly #names = new Map<string, string>();
  readonly #left = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) => `pod-${letter}`);
  readonly #othersLeft = ['pod-x', 'pod-y'];

  constructor(cluster: SimulatedCluster) {
    this.#cluster = cluster;
  }

  /** Checks that at least two Pods of the Deployment are available until the table is as on the page. */
  async table(expected: Record<string, string[]>): Promise<void> {
    let shown: Record<string, string[]> = {};
    const text = JSON.stringify(expected);
    const isReached = this.#cluster.until<Pod>(PODS, (pods) => {
      expect(pods.filter((pod) => isOfWeb(pod) && stateOf(pod) === 'available').length).toBeGreaterThanOrEqual(2);
      shown = this.#tableOf(pods);
      return JSON.stringify(shown) === text;
    });
    await isReached.catch((error: Error) => {
      expect(shown, error.message.slice(0, 200)).toEqual(expected);
      throw error;
    });
  }

  async budget(numbers: [currentHealthy: number, disruptionsAllowed: number]): Promise<void> {
    await this.#cluster.until<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS, ([budget]) => {
      const { currentHealthy, disruptionsAllowed } = budget?.status ?? {};
      return currentHealthy === numbers[0] && disruptionsAllowed === numbers[1];
    });
  }

  /**
   * Cordons the node, and tries once to evict each of its Pods, ordered by name; `kubectl drain` repeats this. Resolves with the results by
   * Pod.
   */
  async drain(node: string): Promise<Record<string, string>> {
    const { client, during } = this.#cluster;
    const change = { spec: { unschedulable: true } };
    await during(client.resource<Node>(NODES).patch(node, undefined, 'application/merge-patch+json', change));
    const { items } = await during(client.resource<Pod>(PODS).list());
    const due = items.filter((pod) => pod.spec?.nodeName === node && stateOf(pod) !== 'terminating');
    return this.evict(...due.map((pod) => this.#nameOf(pod)).sort());
  }

  async evict(...names: string[]): Promise<Record<string, string>> {
    const { client, during } = this.#cluster;
    const pods = client.resource<Pod>(PODS);
    const { items } = await during(pods.list());
    const results: Record<string, string> = {};
    for (const each of names) {
      const { name = '', namespace = '' } = items.find((pod) => this.#nameOf(pod) === each)?.metadata ?? {};
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
      const evicted = pods.createSubresource(name, namespace, 'eviction', eviction).then(
        () => 'evicted',
        ({ status }: ApiError) => `${status.code}: ${status.details?.causes?.[0]?.message}`,
      );
      results[each] = await during(evicted);
    }
    return results;
  }

  #nameOf(pod: Pod): string {
    const { uid = '', name } = pod.metadata;
    const known = this.#names.get(uid) ?? (isOfWeb(pod) ? this.#left : this.#othersLeft).shift() ?? name;
    this.#names.set(uid, known);
    return known;
  }

  /** The result has the form of the tables of the page. */
  #tableOf(pods: readonly Pod[]): Record<string, string[]> {
    const places = [...new Set(pods.map(({ spec }) => spec?.nodeName ?? 'without a node'))].sort();
    const at = (place: string): Pod[] => pods.filter(({ spec }) => (spec?.nodeName ?? 'without a node') === place);
    return Object.fromEntries(
      places.map((place) => [
        place,
        at(place)
          .map((pod) => `${this.#nameOf(pod)} ${stateOf(pod)}`)
          .sort(),
      ]),
    );
  }
}

/** The message reports three healthy Pods until the controller has seen the previous eviction, and two Pods afterwards. */
const REFUSED = expect.stringMatching(/^429: The disruption budget web needs 2 healthy pods and has [23] currently$/);

test('a cluster of three nodes is drained node by node as on the page "Disruptions"', async () => {
  const capacity = { cpus: 2 };
  await using cluster = await startSimulatedCluster({
    nodes: [{ capacity, labels: OTHERS }, { capacity }, { capacity, labels: OTHERS }],
    time: 'virtual',
    script: () => ({ readyAfterMillis: START_MILLIS, stopMillis: STOP_MILLIS }),
  });
  const { client, during, until } = cluster;
  const example = new Example(cluster);
  await during(client.resource<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS).create(BUDGET));
  await during(client.resource<Deployment>(DEPLOYMENTS).create(WEB));
  await until<Pod>(PODS, (pods) => pods.length === 3 && pods.every(isReady));
  await example.table({ 'node-1': ['pod-a available'], 'node-2': ['pod-b available'], 'node-3': ['pod-c available'] });
  await during(client.resource<ReplicaSet>(REPLICA_SETS).create(X));
  await example.table({
    'node-1': ['pod-a available', 'pod-x available'],
    'node-2': ['pod-b available'],
    'node-3': ['pod-c available'],
  });
  await example.budget([3, 1]);

  // The administrator drains node-1. Both Pods terminate, and their replacements start on the other nodes.
  expect(await example.drain('node-1')).toEqual({ 'pod-a': 'evicted', 'pod-x': 'evicted' });
  await example.table({
    'node-1': ['pod-a terminating', 'pod-x terminating'],
    'node-2': ['pod-b available', 'pod-d starting'],
    'node-3': ['pod-c available', 'pod-y starting'],
  });

  // The Pods have terminated. An impatient administrator cannot evict pod-b or pod-c, because only two Pods are available.
  await example.table({
    'node-2': ['pod-b available', 'pod-d starting'],
    'node-3': ['pod-c available', 'pod-y starting'],
  });
  expect(await example.evict('pod-b', 'pod-c')).toEqual({ 'pod-b': REFUSED, 'pod-c': REFUSED });

  // After some time, pod-d is available.
  await example.table({
    'node-2': ['pod-b available', 'pod-d available'],
    'node-3': ['pod-c available', 'pod-y available'],
  });
  await example.budget([3, 1]);

  // The drain of node-2 evicts pod-b and not pod-d. There is no room for pod-e, so the drain blocks, even after pod-b has terminated.
  expect(await example.drain('node-2')).toEqual({ 'pod-b': 'evicted', 'pod-d': REFUSED });
  await example.table({
    'node-2': ['pod-b terminating', 'pod-d available'],
    'node-3': ['pod-c available', 'pod-y available'],
    'without a node': ['pod-e pending'],
  });
  await example.table({
    'node-2': ['pod-d available'],
    'node-3': ['pod-c available', 'pod-y available'],
    'without a node': ['pod-e pending'],
  });
  expect(await example.drain('node-2')).toEqual({ 'pod-d': REFUSED });

  // The administrator adds a node, and the drain continues when pod-e is available.
  await cluster.addNode({ capacity });
  await example.table({
    'node-2': ['pod-d available'],
    'node-3': ['pod-c available', 'pod-y available'],
    'node-4': ['pod-e starting'],
  });
  expect(await example.drain('node-2')).toEqual({ 'pod-d': REFUSED });
  await example.table({
    'node-2': ['pod-d available'],
    'node-3': ['pod-c available', 'pod-y available'],
    'node-4': ['pod-e available'],
  });
  await example.budget([3, 1]);
  expect(await example.drain('node-2')).toEqual({ 'pod-d': 'evicted' });
  await example.table({
    'node-3': ['pod-c available', 'pod-y available'],
    'node-4': ['pod-e available', 'pod-f starting'],
  });
  await example.table({
    'node-3': ['pod-c available', 'pod-y available'],
    'node-4': ['pod-e available', 'pod-f available'],
  });
});

test('a StatefulSet is drained one Pod at a time, because the successor of a Pod starts only when the Pod has terminated', async () => {
  await using cluster = await startSimulatedCluster({
    nodes: 3,
    time: 'virtual',
    script: () => ({ readyAfterMillis: START_MILLIS, stopMillis: STOP_MILLIS }),
  });
  const { client, during, until } = cluster;
  const { template = {} } = deployment.spec ?? {};
  const selector = { matchLabels: { app: 'web' } };
  await during(
    client.resource<StatefulSet>(STATEFUL_SETS).create({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'web', namespace: 'default' },
      spec: {
        replicas: 3,
        serviceName: 'web',
        podManagementPolicy: 'Parallel',
        selector,
        template: { ...template, spec: podSpec() },
      },
    }),
  );
  const budgets = client.resource<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS);
  await during(budgets.create({ ...BUDGET, spec: { maxUnavailable: 1, selector } }));
  const allowed = (count: number) =>
    until<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS, ([budget]) => budget?.status?.disruptionsAllowed === count);
  const evict = (name: string): Promise<unknown> => {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'default' } };
    return during(client.resource<Pod>(PODS).createSubresource(name, 'default', 'eviction', eviction));
  };
  await allowed(1);
  const names = ['web-0', 'web-1', 'web-2'];
  for (const [index, name] of names.entries()) {
    const next = names[(index + 1) % 3] ?? '';
    await evict(name);
    await expect(evict(next)).rejects.toMatchObject({ code: 429 });
    await until<Pod>(PODS, (pods) => pods.some((pod) => pod.metadata.name === name && stateOf(pod) === 'starting'));
    await expect(evict(next)).rejects.toMatchObject({ code: 429 });
    await until<Pod>(PODS, (pods) => {
      expect(pods.filter((pod) => stateOf(pod) === 'available').length).toBeGreaterThanOrEqual(2);
      return pods.every((pod) => stateOf(pod) === 'available');
    });
    await allowed(1);
  }
});

test('a Pod whose app has ended counts as disrupted while its defer containers run', async () => {
  await using cluster = await startSimulatedCluster({
    nodes: 1,
    time: 'virtual',
    script: ({ pod, container }) => {
      if (container === 'bye') return { runMillis: 60_000, exitCode: 0 };
      return pod.name === 'ends' ? { runMillis: 30_000, exitCode: 0 } : {};
    },
  });
  const { client, during, until } = cluster;
  const pods = client.resource<Pod>(PODS);
  await during(
    client
      .resource<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS)
      .create({ ...BUDGET, spec: { ...BUDGET.spec, minAvailable: 1 } }),
  );
  const deferContainers = [{ name: 'bye', image: 'busybox:1.28', trigger: 'PostExit' }];
  for (const [name, restartPolicy] of [
    ['ends', 'Never'],
    ['stays', 'Always'],
  ] as const) {
    const made = simplePod(name, {
      restartPolicy,
      deferContainers,
      terminationGracePeriodSeconds: 120,
    } as Partial<PodSpec>);
    await during(pods.create({ ...made, metadata: { ...made.metadata, labels: { app: 'web' } } }));
  }
  const counted = (healthy: number) =>
    until<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS, ([budget]) => budget?.status?.currentHealthy === healthy);
  const evict = (name: string): Promise<unknown> => {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'default' } };
    return during(pods.createSubresource(name, 'default', 'eviction', eviction));
  };
  const phaseOf = async (name: string) => (await during(pods.get(name, 'default'))).status?.phase;

  await counted(2);
  await counted(1);
  expect(await phaseOf('ends')).toBe('Terminating');
  await expect(evict('stays')).rejects.toMatchObject({ code: 429 });
  // The Pod whose entry runs is disrupted already: its eviction needs no budget.
  await evict('ends');
  expect(await phaseOf('stays')).toBe('Running');
});
