import { expect, test, vi } from 'vitest';
import type { Node, Taint } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { notFound, serviceUnavailable } from '../../machinery/status.ts';
import { formatTime } from '../../machinery/time.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { SUSPENDED_MILLIS } from '../controller.ts';
import { startNodeTaints, wantedTaints } from './node-taints.ts';

const NOW = Date.UTC(2026, 0, 31);
const taint = (name: string, effect = 'NoSchedule'): Taint => ({ key: `node.kubernetes.io/${name}`, effect });
const added = (name: string, effect?: string): Taint => ({ ...taint(name, effect), timeAdded: '2026-01-31T00:00:00Z' });

/** Without a ready node, no node gets a NoExecute taint. */
const addHealthy = (backend: RegistryBackend): Promise<Node> => {
  const healthy = node([]);
  return backend.set<Node>(NODES, { ...healthy, metadata: { ...healthy.metadata, name: 'z' } });
};

const settled = async (): Promise<void> => {
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
};

/** Patches only this field, so that a concurrent write of the controller causes no conflict. */
const cordon = (backend: RegistryBackend) =>
  clientOf(backend)
    .resource<Node>(NODES)
    .patch('n', undefined, 'application/merge-patch+json', { spec: { unschedulable: true } });

interface State {
  pressures?: string[];
  ready?: string;
  unschedulable?: boolean;
  message?: string;
}
const node = (
  taints: Taint[],
  { pressures = [], ready = 'True', unschedulable = false, message = '' }: State = {},
): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n' },
  spec: { taints, unschedulable },
  status: {
    conditions: [
      ...['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({
        type,
        status: pressures.includes(type) ? 'True' : 'False',
      })),
      { type: 'Ready', status: ready, message, lastTransitionTime: formatTime(NOW) },
    ],
  },
});

test.each<[string, Taint[], State, Taint[] | undefined]>([
  ['a ready node without pressure has no taint', [], {}, undefined],
  ['pressure adds a taint', [], { pressures: ['DiskPressure'] }, [added('disk-pressure')]],
  ['a taint that exists is not added again', [taint('disk-pressure')], { pressures: ['DiskPressure'] }, undefined],
  ['the end of the pressure removes the taint', [taint('disk-pressure')], {}, []],
  [
    'other pressures replace the taint',
    [taint('disk-pressure')],
    { pressures: ['MemoryPressure', 'PIDPressure'] },
    [added('memory-pressure'), added('pid-pressure')],
  ],
  [
    'taints of other writers stay when a taint is added',
    [taint('disk-pressure', 'NoExecute'), { key: 'a', effect: 'NoSchedule' }],
    { pressures: ['DiskPressure'] },
    [taint('disk-pressure', 'NoExecute'), { key: 'a', effect: 'NoSchedule' }, added('disk-pressure')],
  ],
  ['taints of others need no update', [{ key: 'a', effect: 'NoExecute' }], {}, undefined],
  ['a node that is not ready gets not-ready', [], { ready: 'False' }, [added('not-ready')]],
  [
    'an unknown state replaces not-ready by unreachable',
    [taint('not-ready')],
    { ready: 'Unknown' },
    [added('unreachable')],
  ],
  ['a cordoned node gets unschedulable', [], { unschedulable: true }, [added('unschedulable')]],
  ['uncordoning removes unschedulable', [added('unschedulable'), taint('x')], {}, [taint('x')]],
])('taints of a node: %s', (_, present, state, wanted) => {
  expect(wantedTaints(node(present, state), { now: NOW, evicts: false })).toEqual(wanted);
});

test('a node that stays not ready gets a NoExecute taint; a node under pressure does not', () => {
  const state = { ready: 'False', pressures: ['DiskPressure'] };
  const present = [added('not-ready'), added('disk-pressure')];
  expect(wantedTaints(node(present, state), { now: NOW, evicts: true })).toEqual([
    ...present,
    added('not-ready', 'NoExecute'),
  ]);
  expect(wantedTaints(node([taint('not-ready', 'NoExecute')]), { now: NOW, evicts: false })).toEqual([]);
});

test('a node that is not ready gets the NoExecute taint after 30 s, even if it was not ready before the start', async () => {
  const backend = await registryBackend();
  const timers = createVirtualTimers(NOW + 3_600_000);
  const stop = new AbortController();
  const taints = () =>
    ((backend.objects(NODES)[0] as Node).spec?.taints ?? []).map(({ key, effect }) => `${key.split('/')[1]}:${effect}`);
  await backend.set(NODES, node([], { ready: 'False' }));
  await addHealthy(backend);
  await startNodeTaints(withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal }));
  await vi.waitFor(() => expect(taints()).toEqual(['not-ready:NoSchedule']));
  await new Promise(setImmediate);
  timers.advance(29_999);
  await new Promise(setImmediate);
  expect(taints()).toEqual(['not-ready:NoSchedule']);
  timers.advance(1);
  await vi.waitFor(() => expect(taints()).toEqual(['not-ready:NoSchedule', 'not-ready:NoExecute']));
  await backend.set(NODES, node((backend.objects(NODES)[0] as Node).spec?.taints ?? []));
  await vi.waitFor(() => expect(taints()).toEqual([]));
  stop.abort();
});

test.each(['node is shutting down', '[x, node is shutting down]'])(
  'a node that shuts down gets no NoExecute taint: %s',
  async (message) => {
    const backend = await registryBackend();
    const timers = createVirtualTimers(NOW + 3_600_000);
    const stop = new AbortController();
    const taints = () => (backend.objects(NODES)[0] as Node).spec?.taints;
    await backend.set(NODES, node([], { ready: 'False', message }));
    await addHealthy(backend);
    await startNodeTaints(withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal }));
    await vi.waitFor(() => expect(taints()).toMatchObject([taint('not-ready')]));
    timers.advance(60_000);
    // Also cordon the node: the taint for cordoned nodes shows that the controller has reconciled the node after the 60 s.
    await cordon(backend);
    await vi.waitFor(() => expect(taints()).toMatchObject([taint('not-ready'), taint('unschedulable')]));
    stop.abort();
  },
);

test.each([
  [SUSPENDED_MILLIS - 1, ['NoSchedule', 'NoExecute']],
  [SUSPENDED_MILLIS, ['NoSchedule']],
])('a timer that fires %i ms late counts as a suspension only from 10 s on', async (lateMillis, expected) => {
  const backend = await registryBackend();
  const timers = createVirtualTimers(NOW);
  const stop = new AbortController();
  const effects = () => ((backend.objects(NODES)[0] as Node).spec?.taints ?? []).map(({ effect }) => effect);
  await backend.set(NODES, node([], { ready: 'False' }));
  await addHealthy(backend);
  await startNodeTaints(withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal }));
  await vi.waitFor(() => expect(effects()).toEqual(['NoSchedule']));
  await settled();
  timers.suspend(30_000 + lateMillis);
  await settled();
  expect(effects()).toEqual(expected);
  stop.abort();
});

test('a cordoned node that does not report whether it is ready is only tainted as unschedulable', async () => {
  const backend = await registryBackend();
  const stop = new AbortController();
  const silent = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec: { unschedulable: true } };
  await backend.set(NODES, silent);
  const client = clientOf(backend);
  await startNodeTaints(
    withInformers({ client, timers: createVirtualTimers(NOW), log: silentLog, signal: stop.signal }),
  );
  const taints = () => (backend.objects(NODES)[0] as Node).spec?.taints;
  await vi.waitFor(() => expect(taints()).toMatchObject([taint('unschedulable')]));
  stop.abort();
});

test('a failed write of taints is repeated; a deleted node needs no taints and no timer', async () => {
  const backend = await registryBackend();
  const timers = createVirtualTimers(NOW);
  const stop = new AbortController();
  const warnings: string[] = [];
  const times: number[] = [];
  const at: typeof timers.at = (time, callback) => {
    times.push(time);
    return timers.at(time, callback);
  };
  const counted = { ...timers, at };
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
  const taints = () => (backend.objects(NODES)[0] as Node).spec?.taints ?? [];
  await backend.set(NODES, node([], { ready: 'False' }));
  await addHealthy(backend);
  backend.failNext('update nodes', serviceUnavailable('not now'));
  await startNodeTaints(withInformers({ client: clientOf(backend), timers: counted, log, signal: stop.signal }));
  await vi.waitFor(() => expect(warnings).toHaveLength(1));
  timers.advance(29_999);
  await vi.waitFor(() => expect(taints()).toHaveLength(1));
  await settled();
  timers.advance(1);
  await vi.waitFor(() => expect(taints()).toHaveLength(2));
  await settled();
  expect(times.filter((time) => time <= NOW)).toEqual([]);
  const before = times.length;
  backend.failNext('update nodes', notFound(NODES, 'n'));
  await cordon(backend);
  await settled();
  await backend.remove(NODES, undefined, 'n');
  await settled();
  expect([warnings.length, times.length]).toEqual([1, before]);
  stop.abort();
});

test('the 30 s until the NoExecute taint start again when the machine wakes from a suspension', async () => {
  const backend = await registryBackend();
  const timers = createVirtualTimers(NOW);
  const stop = new AbortController();
  const effects = () => ((backend.objects(NODES)[0] as Node).spec?.taints ?? []).map(({ effect }) => effect);
  await backend.set(NODES, node([], { ready: 'False' }));
  await addHealthy(backend);
  await startNodeTaints(withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal }));
  await vi.waitFor(() => expect(effects()).toEqual(['NoSchedule']));
  await new Promise(setImmediate);
  timers.suspend(3_600_000);
  await new Promise(setImmediate);
  timers.advance(29_999);
  await new Promise(setImmediate);
  expect(effects()).toEqual(['NoSchedule']);
  timers.advance(1);
  await vi.waitFor(() => expect(effects()).toEqual(['NoSchedule', 'NoExecute']));
  stop.abort();
});
