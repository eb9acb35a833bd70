/**
 * Each controller announces the reason before it deletes a Pod. Each Pod has one entry for each reason; the entry that runs shows the
 * reason. All rows use one cluster, in virtual time, each row a namespace of its own.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { terminationReasons } from '../../src/api/core/v1/pod/status/termination-reasons.ts';
import type { Node, Pod, PodSpec } from '../../src/api/generated/types.ts';
import {
  DAEMON_SETS,
  DEPLOYMENTS,
  JOBS,
  NAMESPACES,
  NODES,
  PODS,
  PRIORITY_CLASSES,
  REPLICA_SETS,
  REPLICATION_CONTROLLERS,
  STATEFUL_SETS,
} from '../../src/api/resources.ts';
import type { KubeObject, ResourceRef } from '../../src/machinery/meta.ts';
import { isReady } from '../support/simulated-nodes/objects.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../support/simulated-nodes/simulated-cluster.ts';

const STRATEGIC = 'application/strategic-merge-patch+json';
const IMAGE = 'busybox:1.28';
const ENTRY_MILLIS = 200;

const entryName = (reason: string): string => reason.replaceAll(/(?<=.)[A-Z]/g, '-$&').toLowerCase();
const reasonOf = new Map(terminationReasons.map((reason) => [entryName(reason), reason]));
/** By namespace: the reason of each entry that has started, as `<Pod> <reason>`. */
const runs = new Map<string, Set<string>>();
const reasonsIn = (namespace: string): string[] =>
  [...new Set([...(runs.get(namespace) ?? [])].map((run) => run.split(' ')[1] ?? ''))].sort();

let cluster: SimulatedCluster;
beforeAll(async () => {
  cluster = await startSimulatedCluster({
    nodes: [{}, { labels: { role: 'small' } }, { labels: { role: 'daemon' } }],
    time: 'virtual',
    script({ pod, container }) {
      const reason = reasonOf.get(container);
      // The Pods of Jobs have the index of the completion in their names.
      if (reason === undefined) return /^(wins|fails)-0-/.test(pod.name) ? ending(pod.name) : {};
      const started = runs.get(pod.namespace) ?? new Set();
      runs.set(pod.namespace, started.add(`${pod.name} ${reason}`));
      return { runMillis: ENTRY_MILLIS };
    },
  });
}, 60_000);
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
}, 60_000);
const ending = (name: string) => ({ runMillis: 10_000, exitCode: name.startsWith('wins') ? 0 : 1 });

const podSpec = (spec: Partial<PodSpec> = {}): PodSpec => ({
  containers: [{ name: 'app', image: IMAGE }],
  deferContainers: terminationReasons.map((reason) => ({
    name: entryName(reason),
    image: IMAGE,
    onReasons: [reason],
    timeoutSeconds: 10,
  })),
  ...spec,
});
const pod = (spec: Partial<PodSpec> = {}): KubeObject => object('v1', 'Pod', podSpec(spec));
const object = (apiVersion: string, kind: string, spec: object): KubeObject =>
  ({ apiVersion, kind, metadata: { name: 'web' }, spec }) as KubeObject;
const LABELS = { app: 'web' };
const template = (spec: Partial<PodSpec> = {}): object => ({ metadata: { labels: LABELS }, spec: podSpec(spec) });
const workload = (kind: string, spec: object, pods: Partial<PodSpec> = {}): KubeObject =>
  object('apps/v1', kind, { selector: { matchLabels: LABELS }, template: template(pods), ...spec });
const job = (spec: object): KubeObject =>
  object('batch/v1', 'Job', { ...spec, template: template({ restartPolicy: 'Never' }) });
const INDEXED = { completionMode: 'Indexed', completions: 2, parallelism: 2 };
const named = (name: string, created: KubeObject): KubeObject => ({
  ...created,
  metadata: { ...created.metadata, name },
});
const ON_DAEMON_NODE = { nodeSelector: { role: 'daemon' } };
const ON_SMALL_NODE = { nodeSelector: { role: 'small' } };
const OTHER_VERSION = {
  spec: { template: { spec: { containers: [{ name: 'app', env: [{ name: 'V', value: '2' }] }] } } },
};

type Act = (namespace: string) => Promise<unknown>;
const patch =
  (ref: ResourceRef, change: object): Act =>
  (namespace) =>
    cluster.client.resource(ref).patch('web', namespace, STRATEGIC, change);
const remove =
  (ref: ResourceRef, propagationPolicy?: string): Act =>
  (namespace) =>
    cluster.client.resource(ref).delete('web', namespace, propagationPolicy ? { propagationPolicy } : {});
const changeNode =
  (change: object, role: string): Act =>
  async () => {
    const nodes = await cluster.client.resource<Node>(NODES).list();
    const node = nodes.items.find(({ metadata }) => metadata.labels?.['role'] === role);
    await cluster.client.resource<Node>(NODES).patch(node?.metadata.name ?? '', undefined, STRATEGIC, change);
  };
const deletePods: Act = async (namespace) => {
  const pods = await cluster.client.resource<Pod>(PODS).list({ namespace });
  for (const { metadata } of pods.items) await cluster.client.resource<Pod>(PODS).delete(metadata.name, namespace);
};
const evict: Act = (namespace) =>
  cluster.client.resource<Pod>(PODS).createSubresource('web', namespace, 'eviction', {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'web', namespace },
  });
const cpu = (amount: string): PodSpec['containers'] => [
  { name: 'app', image: IMAGE, resources: { requests: { cpu: amount } } },
];
/** The node has no room for this Pod of higher priority. */
const preempt: Act = async (namespace) => {
  const high = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'high' }, value: 1000 };
  await cluster.client.resource(PRIORITY_CLASSES).create(high as KubeObject);
  const by = pod({ ...ON_SMALL_NODE, priorityClassName: 'high', containers: cpu('3') });
  await cluster.client.resource(PODS).create({ ...by, metadata: { name: 'by', namespace } });
};
const nothing: Act = async () => undefined;
const scale = (ref: ResourceRef): Act => patch(ref, { spec: { replicas: 1 } });
const TWO = { replicas: 2 };

/** `count`: the number of Pods that are Ready before the act, and the number of Pods that end because of it. */
type Row = [cause: string, reason: string, count: [before: number, ended: number], created: KubeObject, act: Act];
const rows: Row[] = [
  ['a user deletes a Pod', 'Deleted', [1, 1], pod(), remove(PODS)],
  ['the API evicts a Pod', 'Evicted', [1, 1], pod(), evict],
  ['a Pod exceeds its activeDeadlineSeconds', 'DeadlineExceeded', [1, 1], pod({ activeDeadlineSeconds: 20 }), nothing],
  [
    'a Pod of higher priority needs the node',
    'Preempted',
    [1, 1],
    pod({ ...ON_SMALL_NODE, containers: cpu('3') }),
    preempt,
  ],
  ['a ReplicaSet is scaled down', 'ScaledDown', [2, 1], workload('ReplicaSet', TWO), scale(REPLICA_SETS)],
  ['a ReplicaSet is deleted', 'OwnerDeleted', [2, 2], workload('ReplicaSet', TWO), remove(REPLICA_SETS)],
  [
    'a ReplicaSet is deleted in the foreground',
    'OwnerDeleted',
    [2, 2],
    workload('ReplicaSet', TWO),
    remove(REPLICA_SETS, 'Foreground'),
  ],
  [
    'a ReplicationController is scaled down',
    'ScaledDown',
    [2, 1],
    object('v1', 'ReplicationController', { ...TWO, selector: LABELS, template: template() }),
    scale(REPLICATION_CONTROLLERS),
  ],
  [
    'a ReplicationController is deleted',
    'OwnerDeleted',
    [2, 2],
    object('v1', 'ReplicationController', { ...TWO, selector: LABELS, template: template() }),
    remove(REPLICATION_CONTROLLERS, 'Background'),
  ],
  ['a Deployment is scaled down', 'ScaledDown', [2, 1], workload('Deployment', TWO), scale(DEPLOYMENTS)],
  ['a Deployment is updated', 'Replaced', [2, 2], workload('Deployment', TWO), patch(DEPLOYMENTS, OTHER_VERSION)],
  [
    'a Deployment is updated with Recreate',
    'Replaced',
    [2, 2],
    workload('Deployment', { ...TWO, strategy: { type: 'Recreate' } }),
    patch(DEPLOYMENTS, OTHER_VERSION),
  ],
  ['a Deployment is deleted', 'OwnerDeleted', [2, 2], workload('Deployment', TWO), remove(DEPLOYMENTS)],
  [
    'a DaemonSet is updated',
    'Replaced',
    [1, 1],
    workload('DaemonSet', {}, ON_DAEMON_NODE),
    patch(DAEMON_SETS, OTHER_VERSION),
  ],
  [
    'a DaemonSet is updated with a surge',
    'Replaced',
    [1, 1],
    workload(
      'DaemonSet',
      { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
      ON_DAEMON_NODE,
    ),
    patch(DAEMON_SETS, OTHER_VERSION),
  ],
  [
    'a user deletes the Pod of a DaemonSet with OnDelete',
    'Deleted',
    [1, 1],
    workload('DaemonSet', { updateStrategy: { type: 'OnDelete' } }, ON_DAEMON_NODE),
    deletePods,
  ],
  [
    'a node no longer fits a DaemonSet',
    'ScaledDown',
    [1, 1],
    workload('DaemonSet', {}, { nodeSelector: { role: 'daemon', extra: 'yes' } }),
    changeNode({ metadata: { labels: { extra: null } } }, 'daemon'),
  ],
  ['a DaemonSet is deleted', 'OwnerDeleted', [1, 1], workload('DaemonSet', {}, ON_DAEMON_NODE), remove(DAEMON_SETS)],
  [
    'a StatefulSet is scaled down',
    'ScaledDown',
    [2, 1],
    workload('StatefulSet', { ...TWO, serviceName: 'web' }),
    scale(STATEFUL_SETS),
  ],
  [
    'a StatefulSet is updated',
    'Replaced',
    [2, 2],
    workload('StatefulSet', { ...TWO, serviceName: 'web' }),
    patch(STATEFUL_SETS, OTHER_VERSION),
  ],
  [
    'a StatefulSet is deleted',
    'OwnerDeleted',
    [2, 2],
    workload('StatefulSet', { ...TWO, serviceName: 'web' }),
    remove(STATEFUL_SETS),
  ],
  [
    'the parallelism of a Job is lowered',
    'ScaledDown',
    [2, 1],
    job({ parallelism: 2 }),
    patch(JOBS, { spec: { parallelism: 1 } }),
  ],
  ['a Job is suspended', 'ScaledDown', [2, 2], job({ parallelism: 2 }), patch(JOBS, { spec: { suspend: true } })],
  ['a Job exceeds its activeDeadlineSeconds', 'DeadlineExceeded', [1, 1], job({ activeDeadlineSeconds: 20 }), nothing],
  ['a Job is deleted', 'OwnerDeleted', [2, 2], job({ parallelism: 2 }), remove(JOBS, 'Background')],
  [
    'a Job has succeeded by its successPolicy',
    'Completed',
    [2, 2],
    named('wins', job({ ...INDEXED, backoffLimit: 1, successPolicy: { rules: [{ succeededIndexes: '0' }] } })),
    nothing,
  ],
  ['a Job has failed', 'Completed', [2, 2], named('fails', job({ ...INDEXED, backoffLimit: 0 })), nothing],
  [
    'a CronJob replaces its Job',
    'OwnerDeleted',
    [1, 1],
    object('batch/v1', 'CronJob', {
      schedule: '*/5 * * * *',
      concurrencyPolicy: 'Replace',
      jobTemplate: { spec: { template: template({ restartPolicy: 'Never' }) } },
    }),
    nothing,
  ],
  ['a namespace is deleted', 'OwnerDeleted', [1, 1], pod(), (name) => cluster.client.resource(NAMESPACES).delete(name)],
  [
    'a taint of the node evicts a Pod',
    'Evicted',
    [1, 1],
    pod(ON_SMALL_NODE),
    changeNode({ spec: { taints: [{ key: 'maintenance', effect: 'NoExecute' }] } }, 'small'),
  ],
];

const refOf = ({ kind, apiVersion = '' }: KubeObject): ResourceRef => {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  return { group: group ?? '', version: version ?? '', resource: `${kind?.toLowerCase()}s` };
};

test.each(rows.map((row, index): [string, string, Row, string] => [row[0], row[1], row, `row-${index + 1}`]))(
  'if %s, its entry for %s runs, and no other',
  async (_, reason, [, , [before, ended], created, act], namespace) => {
    await cluster.createNamespace(namespace);
    await changeNode({ metadata: { labels: { extra: 'yes' } } }, 'daemon')(namespace);
    const metadata = { ...created.metadata, namespace };
    await cluster.during(cluster.client.resource(refOf(created)).create({ ...created, metadata }));
    const isHere = ({ metadata }: Pod): boolean => metadata.namespace === namespace;
    const pods = await cluster.until<Pod>(PODS, (all) => {
      const here = all.filter(isHere);
      return here.length === before && here.every(isReady);
    });
    const names = new Set(pods.filter(isHere).map(({ metadata }) => metadata.name));
    await cluster.during(act(namespace));
    const seen = new Map<string, string | undefined>();
    await cluster.until<Pod>(PODS, (all) => {
      for (const { metadata, status } of all.filter(isHere))
        if (names.has(metadata.name) && status?.termination) seen.set(metadata.uid ?? '', status.termination.reason);
      return seen.size >= ended && (runs.get(namespace)?.size ?? 0) >= ended;
    });
    expect([...new Set(seen.values())]).toEqual([reason]);
    expect(reasonsIn(namespace)).toEqual([reason]);
  },
);
