import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MIRROR_ANNOTATION } from '../../api/core/v1/pod/mirror.ts';
import type { Pod } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { notFound, objectModified, serviceUnavailable } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { startPodGc } from './pod-gc.ts';

let backend: RegistryBackend;
let timers: VirtualTimers;
let stop: AbortController;
let errors: number;
beforeEach(async () => {
  timers = createVirtualTimers();
  backend = await registryBackend({ timers });
  stop = new AbortController();
  errors = 0;
  await backend.set(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } });
});
afterEach(() => stop.abort());

const put = async (name: string, status: object, annotations = {}, nodeName = 'n'): Promise<void> => {
  const spec = { nodeName, containers: [{ name: 'app', image: 'x' }] };
  const metadata = { name, namespace: 'a', annotations };
  await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec, status });
};
const ended = (name: string, annotations = {}) => put(name, { phase: 'Succeeded' }, annotations);
const names = (): string[] => backend.objects(PODS).map(({ metadata }) => metadata.name);
const settled = async (): Promise<void> => {
  for (let i = 0; i < 100; i++) await new Promise(setImmediate);
};
const start = async (terminatedPods?: number): Promise<void> => {
  const log = { ...silentLog, warn: () => void errors++ };
  await startPodGc(withInformers({ client: clientOf(backend), timers, log, signal: stop.signal, terminatedPods }));
  for (const ref of ['nodes', 'pods']) await vi.waitFor(() => expect(backend.calls).toContain(`watch ${ref} /`));
};

test('among terminated Pods of the same age, those whose names sort first are deleted', async () => {
  for (const name of ['c', 'a', 'd', 'b']) await ended(name);
  await start(2);
  await vi.waitFor(() => expect(names()).toEqual(['c', 'd']));
});

test('all terminated Pods are kept if the limit is 0, and by default many', async () => {
  for (const name of ['a', 'b']) await ended(name);
  await start(0);
  await settled();
  stop.abort();
  stop = new AbortController();
  await start();
  await settled();
  expect(names()).toEqual(['a', 'b']);
});

test('mirror Pods and Pods that run do not count as terminated', async () => {
  await ended('mirror', { [MIRROR_ANNOTATION]: 'static' });
  await put('runs', { phase: 'Running' });
  await ended('a');
  await start(1);
  await settled();
  expect(names()).toEqual(['a', 'mirror', 'runs']);
  await ended('b');
  await vi.waitFor(() => expect(names()).toEqual(['b', 'mirror', 'runs']));
  await backend.remove(PODS, 'a', 'b');
  await settled();
  await ended('c');
  await settled();
  expect(names()).toEqual(['c', 'mirror', 'runs']);
});

test.each([
  ['is unavailable', serviceUnavailable('not now'), 1],
  ['no longer finds the Pod', notFound(PODS, 'a'), 0],
  ['has another Pod of the same name', objectModified(PODS, 'a'), 0],
])(
  'a failed deletion is repeated if the API is unavailable, and not for other causes: the API %s',
  async (_, error, count) => {
    await put('a', { phase: 'Running' }, {}, 'gone');
    backend.failNext('delete pods', error);
    await start();
    timers.advance(40_000);
    await settled();
    expect([names(), errors]).toEqual([['a'], count]);
    timers.advance(60_000);
    await settled();
    expect(names()).toEqual(count === 0 ? ['a'] : []);
  },
);

test('a stopped controller deletes no Pod of a missing node', async () => {
  await put('a', { phase: 'Running' }, {}, 'gone');
  await start();
  stop.abort();
  timers.advance(40_000);
  await settled();
  expect(backend.calls.filter((call) => call.startsWith('delete'))).toEqual([]);
});
