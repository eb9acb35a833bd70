/** Tests that Pods with rules about other Pods wait until the other Pods let them fit. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Node, Pod } from '../api/generated/types.ts';
import { NAMESPACES, NODES, PODS } from '../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { startScheduler } from './scheduler.ts';

const MERGE = 'application/merge-patch+json';
const HOST = 'kubernetes.io/hostname';

const node = (name: string, spec: object = {}): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { [HOST]: name } },
  spec,
  status: { allocatable: { cpu: '9', memory: '9Gi', pods: '110' }, conditions: [] } as unknown as Node['status'],
});
const pod = (name: string, spec: object = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'a', labels: { app: 'db' } },
  spec: { containers: [{ name: 'app', image: 'x' }], ...spec },
});
const spreading = (name: string): Pod => {
  const labelSelector = { matchLabels: { app: 'db' } };
  const constraint = { maxSkew: 1, topologyKey: HOST, whenUnsatisfiable: 'DoNotSchedule', labelSelector };
  return pod(name, { topologySpreadConstraints: [constraint] });
};

let backend: RegistryBackend;
let stop: AbortController;
const timers = createVirtualTimers();

beforeEach(async () => {
  backend = await registryBackend({ timers, namespaces: ['a', 'b'] });
  stop = new AbortController();
});
afterEach(() => stop.abort());

async function start(nodes: readonly Node[], pods: readonly Pod[]): Promise<void> {
  for (const each of nodes) await backend.set(NODES, each);
  for (const each of pods) await backend.set(PODS, each);
  const shared = { client: clientOf(backend), timers, log: silentLog, signal: stop.signal };
  await startScheduler({ ...withInformers(shared), schedulerName: 'default-scheduler' });
  await settled();
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
}

/** Lists the Pods with their nodes, such as `x:a y:`. */
const shown = (): string =>
  (backend.objects(PODS) as Pod[])
    .map(({ metadata, spec }) => `${metadata.name}:${spec?.nodeName ?? ''}`)
    .sort()
    .join(' ');

test('Pods that are created together get one node each', async () => {
  await start(
    ['a', 'b', 'c'].map((name) => node(name)),
    [],
  );
  await Promise.all(['x', 'y', 'z'].map((name) => backend.set(PODS, spreading(name))));
  await settled();
  expect(
    shown()
      .match(/:[abc]/g)
      ?.sort(),
  ).toEqual([':a', ':b', ':c']);
});

test('a Pod waits for a node that is cordoned instead of running beside another Pod', async () => {
  await start([node('a'), node('b', { unschedulable: true })], ['x', 'y'].map(spreading));
  expect(shown()).toMatch(/^x:a? y:a?$/);
  expect(shown().match(/:a/g)).toHaveLength(1);
  await backend.patch(NODES, undefined, 'b', MERGE, { spec: { unschedulable: null } });
  await settled();
  expect(shown().match(/:[ab]/g)?.sort()).toEqual([':a', ':b']);
});

test.each<[string, () => Promise<unknown>]>([
  ['the other node gets a Pod', () => backend.set(PODS, pod('other', { nodeName: 'b' }))],
  ['the other node is removed', () => backend.remove(NODES, undefined, 'b')],
  ['the Pod on its node is being deleted', () => backend.delete(PODS, 'a', 'x')],
  [
    'the Pod on its node gets other labels',
    () => backend.patch(PODS, 'a', 'x', MERGE, { metadata: { labels: { app: 'web' } } }),
  ],
])('a Pod that waits is scheduled once %s', async (_, change) => {
  await start([node('a'), node('b', { unschedulable: true })], [pod('x', { nodeName: 'a' }), spreading('y')]);
  expect(shown()).toBe('x:a y:');
  await change();
  await settled();
  expect(shown()).toContain('y:a');
});

test('a Pod that fits only beside another is bound once the other runs, or once labels change', async () => {
  const near = (labelSelector: object, namespaceSelector?: object) => ({
    affinity: {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: HOST, labelSelector, namespaceSelector }],
      },
    },
  });
  const other = { ...pod('o', { nodeName: 'b' }), metadata: { name: 'o', namespace: 'b', labels: { app: 'web' } } };
  const byNamespace = near({ matchLabels: { app: 'web' } }, { matchLabels: { team: 'red' } });
  await start(
    [node('a'), node('b')],
    [pod('x', near({ matchLabels: { role: 'cache' } })), pod('y', byNamespace), other],
  );
  expect(shown()).toBe('o:b x: y:');
  await backend.set(PODS, {
    ...pod('z', { nodeName: 'b' }),
    metadata: { name: 'z', namespace: 'a', labels: { role: 'cache' } },
  });
  await settled();
  expect(shown()).toBe('o:b x:b y: z:b');
  await backend.patch(NAMESPACES, undefined, 'b', MERGE, { metadata: { labels: { team: 'red' } } });
  await settled();
  expect(shown()).toBe('o:b x:b y:b z:b');
});
