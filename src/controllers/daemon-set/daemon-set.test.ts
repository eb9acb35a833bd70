import { describe, expect, test } from 'vitest';
import type { ControllerRevision, CoreV1Event, DaemonSet, Node, Pod } from '../../api/generated/types.ts';
import { CONTROLLER_REVISIONS, DAEMON_SETS, EVENTS, NODES, PODS } from '../../api/resources.ts';
import { backend, controllerOptions, settled, timers, useRegistry } from '../controller-fixture.ts';
import { startDaemonSets } from './daemon-set.ts';
import { daemonSet, imageOf, makeReady, node, rolling, templateWith } from './daemon-set-fixture.ts';
import { HASH } from './daemons.ts';
import { nodeOf } from './placement.ts';

const MERGE = 'application/merge-patch+json';

useRegistry();

async function start(nodes: readonly Node[] = ['n1', 'n2', 'n3'].map((name) => node(name))): Promise<void> {
  for (const each of nodes) await backend.set(NODES, each);
  await startDaemonSets(controllerOptions());
  await settled();
}
const create = async (spec: Parameters<typeof daemonSet>[0] = {}): Promise<void> => {
  await backend.create(DAEMON_SETS, 'a', daemonSet(spec));
  await settled();
};
const change = async (spec: object): Promise<void> => {
  await backend.patch(DAEMON_SETS, 'a', 'agent', MERGE, { spec });
  await settled();
};
const agent = (): DaemonSet => backend.objects(DAEMON_SETS)[0] as DaemonSet;
const pods = (): Pod[] => backend.objects(PODS) as Pod[];
const revisions = (): ControllerRevision[] =>
  (backend.objects(CONTROLLER_REVISIONS) as ControllerRevision[]).sort((a, b) => a.revision - b.revision);
const running = (): string =>
  pods()
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map((pod) => `${nodeOf(pod)}:${imageOf(pod)}`)
    .sort()
    .join(' ');
const events = (): string[] =>
  (backend.objects(EVENTS) as CoreV1Event[]).map(({ reason, message = '' }) => `${reason}: ${message}`);
const on = (name: string): Pod[] => pods().filter((pod) => nodeOf(pod) === name);
const ready = async (...names: string[]): Promise<void> => {
  for (const pod of pods()) {
    const isDone = pod.status?.phase === 'Running' || pod.metadata.deletionTimestamp !== undefined;
    if (!isDone && (names.length === 0 || names.includes(nodeOf(pod) ?? '')))
      await makeReady(backend, pod, timers.now());
  }
  await settled();
};
/** Acts as the nodes: removes the Pods that are being deleted. */
const ended = async (): Promise<void> => {
  for (const { metadata } of pods())
    if (metadata.deletionTimestamp !== undefined) await backend.remove(PODS, 'a', metadata.name);
  await settled();
};

describe('a DaemonSet', () => {
  test('has a Pod on each node, also on nodes that are added, and none on nodes that are removed', async () => {
    await start();
    await create();
    expect(running()).toBe('n1:v1 n2:v1 n3:v1');
    await ready();
    expect(agent().status).toMatchObject({
      desiredNumberScheduled: 3,
      currentNumberScheduled: 3,
      numberReady: 3,
      numberAvailable: 3,
      updatedNumberScheduled: 3,
      observedGeneration: 1,
    });
    await backend.set(NODES, node('n4'));
    await settled();
    expect(running()).toBe('n1:v1 n2:v1 n3:v1 n4:v1');
    expect(agent().status).toMatchObject({ desiredNumberScheduled: 4, numberAvailable: 3, numberUnavailable: 1 });
    await backend.remove(NODES, undefined, 'n4');
    await settled();
    // This controller deletes the Pod of the removed node, because the Pod was not bound yet. pod-gc deletes bound Pods.
    expect(running()).toBe('n1:v1 n2:v1 n3:v1');
  });

  test('runs only on nodes that match its node selector and whose taints it tolerates', async () => {
    const taint = (effect: string) => [{ key: 'a.b/c', effect }];
    await start([
      node('plain'),
      node('gpu', [], { gpu: 'yes' }),
      node('gpu-tainted', taint('NoSchedule'), { gpu: 'yes' }),
      node('gpu-pressed', [{ key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' }], { gpu: 'yes' }),
    ]);
    await create({ template: templateWith('v1', { nodeSelector: { gpu: 'yes' } }) });
    expect(running()).toBe('gpu-pressed:v1 gpu:v1');
    await ready();
    await backend.set(NODES, node('gpu', taint('NoSchedule'), { gpu: 'yes' }));
    await settled();
    expect(running()).toBe('gpu-pressed:v1 gpu:v1');
    expect(agent().status).toMatchObject({ desiredNumberScheduled: 1, numberMisscheduled: 1 });
    await backend.set(NODES, node('gpu', taint('NoExecute'), { gpu: 'yes' }));
    await settled();
    expect(running()).toBe('gpu-pressed:v1');
  });

  test('replaces a failed Pod, and waits longer each time', async () => {
    await start([node('n1')]);
    await create();
    const fail = async (): Promise<string> => {
      const name = pods()[0]?.metadata.name ?? '';
      await backend.setStatus(PODS, 'a', name, { phase: 'Failed' });
      await settled();
      return name;
    };
    const first = await fail();
    expect(events()).toContain(`FailedDaemonPod: Found failed daemon pod a/${first} on node n1, will try to kill it`);
    expect(running()).toBe('n1:v1');
    const second = await fail();
    expect(pods().map(({ metadata }) => metadata.name)).toEqual([second]);
    timers.advance(1_000);
    await settled();
    expect(pods().map(({ metadata }) => metadata.name)).not.toContain(second);
  });

  test('keeps the oldest of several Pods on a node', async () => {
    await start([node('n1')]);
    await create();
    await ready();
    const [first] = pods();
    const { name: _, uid, resourceVersion, ...metadata } = first?.metadata ?? { name: '' };
    timers.advance(5_000);
    await backend.create(PODS, 'a', { ...first, metadata: { ...metadata, name: 'second' }, status: {} } as Pod);
    await settled();
    const left = pods().filter(({ metadata: { deletionTimestamp } }) => deletionTimestamp === undefined);
    expect(left.map((pod) => pod.metadata.uid)).toEqual([uid]);
    expect(resourceVersion).toBeDefined();
  });
});

describe('an update of a DaemonSet', () => {
  test('replaces one available Pod after another with maxUnavailable 1', async () => {
    await start();
    await create();
    await ready();
    await change({ template: templateWith('v2') });
    expect(pods().filter(({ metadata }) => metadata.deletionTimestamp !== undefined)).toHaveLength(1);
    await ended();
    expect(running().match(/v2/g)).toHaveLength(1);
    expect(running().match(/v1/g)).toHaveLength(2);
    for (let i = 0; i < 3; i++) {
      await ready();
      await ended();
    }
    await ready();
    expect(running()).toBe('n1:v2 n2:v2 n3:v2');
    expect(agent().status).toMatchObject({ updatedNumberScheduled: 3, numberAvailable: 3, observedGeneration: 2 });
  });

  test('replaces Pods that are not available at once', async () => {
    await start();
    await create();
    await ready('n1');
    await change({ template: templateWith('v2') });
    expect(running()).toBe('n1:v1 n2:v2 n3:v2');
  });

  test('starts the new Pod first with a surge, and deletes the old one once the new one is available', async () => {
    await start();
    await create({ updateStrategy: rolling(1, 0) });
    await ready();
    await change({ template: templateWith('v2') });
    expect(running()).toBe('n1:v1 n1:v2 n2:v1 n3:v1');
    await ready();
    expect(running()).toBe('n1:v2 n2:v1 n2:v2 n3:v1');
    await ended();
    await ready();
    await ended();
    await ready();
    await ended();
    expect(running()).toBe('n1:v2 n2:v2 n3:v2');
  });

  test('waits for users to delete the Pods with the strategy OnDelete', async () => {
    await start([node('n1')]);
    await create({ updateStrategy: { type: 'OnDelete' } });
    await ready();
    await change({ template: templateWith('v2') });
    expect(running()).toBe('n1:v1');
    await backend.remove(PODS, 'a', on('n1')[0]?.metadata.name ?? '');
    await settled();
    expect(running()).toBe('n1:v2');
  });

  test('is recorded in revisions, is undone by the patch in a revision, and keeps as many as its limit', async () => {
    await start([node('n1')]);
    await create({ revisionHistoryLimit: 1 });
    const [first] = revisions();
    expect(first).toMatchObject({ revision: 1, data: { spec: { template: { $patch: 'replace' } } } });
    expect(on('n1')[0]?.metadata.labels).toMatchObject({
      [HASH]: first?.metadata.labels?.[HASH],
      'pod-template-generation': '1',
    });
    await change({ template: templateWith('v2') });
    await ended();
    expect(revisions().map(({ revision }) => revision)).toEqual([1, 2]);
    await backend.patch(DAEMON_SETS, 'a', 'agent', 'application/strategic-merge-patch+json', first?.data);
    await settled();
    await ended();
    expect(revisions().map(({ revision }) => revision)).toEqual([2, 3]);
    expect(revisions()[1]?.metadata.uid).toBe(first?.metadata.uid);
    expect(running()).toBe('n1:v1');
    await change({ template: templateWith('v3') });
    await ended();
    expect(revisions().map(({ revision }) => revision)).toEqual([3, 4]);
  });
});

describe('a Pod with defer containers', () => {
  const deferring = (image: string) =>
    templateWith(image, { deferContainers: [{ name: 'bye', image: 'x' }], terminationGracePeriodSeconds: 30 });
  const reason = (pod: Pod | undefined) => pod?.status?.conditions?.find(({ type }) => type === 'DeletionReason');

  test('gets the reason Replaced on an update, and ScaledDown where its node no longer fits', async () => {
    await start([node('n1'), node('n2')]);
    await create({ template: deferring('v1') });
    await ready();
    await backend.set(NODES, node('n2', [{ key: 'a.b/c', effect: 'NoExecute' }]));
    await settled();
    expect(reason(on('n2')[0])).toMatchObject({ status: 'True', reason: 'ScaledDown' });
    await ended();
    await change({ template: deferring('v2') });
    expect(reason(on('n1')[0])).toMatchObject({ status: 'True', reason: 'Replaced' });
  });

  test('that is marked but no longer deleted is unmarked', async () => {
    await start([node('n1')]);
    await create({ template: deferring('v1') });
    await ready();
    const [pod] = pods();
    const mark = { type: 'DeletionReason', status: 'True', reason: 'Replaced' };
    const conditions = [...(pod?.status?.conditions ?? []), mark];
    await backend.setStatus(PODS, 'a', pod?.metadata.name ?? '', { ...pod?.status, conditions });
    await settled();
    expect(reason(pods()[0])).toMatchObject({ status: 'False' });
    expect(pods()[0]?.metadata.deletionTimestamp).toBeUndefined();
  });
});

test('a DaemonSet that does not change causes no writes', async () => {
  await start();
  await create();
  await ready();
  const before = backend.calls.length;
  await backend.patch(DAEMON_SETS, 'a', 'agent', MERGE, { metadata: { labels: { a: 'b' } } });
  await settled();
  const writes = backend.calls.slice(before).filter((call) => /^(create|update|delete)/.test(call));
  expect(writes).toEqual([]);
});
