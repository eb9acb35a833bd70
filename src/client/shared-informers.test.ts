import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { CONFIG_MAPS, PODS, SECRETS } from '../api/resources.ts';
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../platform/virtual-timers.ts';
import { type RegistryBackend, registryBackend } from './registry-fixture.ts';
import type { FollowOptions } from './shared-informers.ts';
import { createSharedInformers, type SharedInformers } from './shared-informers.ts';
import { clientOf } from './typed-client.ts';

let backend: RegistryBackend;
let timers: VirtualTimers;
let informers: SharedInformers;
let stop: AbortController;
beforeEach(async () => {
  timers = createVirtualTimers();
  backend = await registryBackend({ timers });
  informers = createSharedInformers({ client: clientOf(backend), timers, log: silentLog });
  stop = new AbortController();
});
afterEach(() => stop.abort());

const configMap = (name: string, data: Record<string, string> = {}): KubeObject & { data: Record<string, string> } => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'a' },
  data,
});
const put = (name: string, data: Record<string, string> = {}) => backend.set(CONFIG_MAPS, configMap(name, data));
const pod = (name: string, nodeName?: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'a' },
  spec: { nodeName, containers: [{ name: 'app', image: 'x' }] },
});

function follower(resource: ResourceRef, options: Partial<FollowOptions> = {}) {
  const heard: string[] = [];
  const record =
    (call: string) =>
    ({ metadata }: KubeObject): void =>
      void heard.push(`${call} ${metadata.name}`);
  const handlers = { added: record('added'), updated: record('updated'), deleted: record('deleted') };
  const informer = informers.follow<KubeObject>(resource, { signal: stop.signal, ...options }, handlers);
  return { heard, informer };
}
const calls = (begin: string): string[] => backend.calls.filter((call) => call.startsWith(begin));
const watched = async (count: number): Promise<void> => {
  while (calls('watch').length < count) await new Promise(setImmediate);
};

test('followers of a resource share one list, one watch, and the same frozen objects', async () => {
  await put('x', { k: '1' });
  const one = follower(CONFIG_MAPS);
  const two = follower(CONFIG_MAPS);
  await Promise.all([one.informer.synced, two.informer.synced]);
  await watched(1);
  await put('y');
  for (const { heard } of [one, two]) expect(heard).toEqual(['added x', 'added y']);
  expect([calls('list'), calls('watch')]).toEqual([['list configmaps /'], ['watch configmaps /']]);
  const found = one.informer.get('a', 'x') as ReturnType<typeof configMap>;
  expect(two.informer.get('a', 'x')).toBe(found);
  expect(() => Object.assign(found.data, { k: '2' })).toThrow(TypeError);
});

test('objects of an API that does not freeze them are frozen', async () => {
  const object = configMap('x', { k: '1' });
  backend.list = async () => ({ apiVersion: 'v1', kind: 'ConfigMapList', metadata: {}, items: [object] });
  const { informer } = follower(CONFIG_MAPS);
  await informer.synced;
  expect(() => Object.assign(object.data, { k: '2' })).toThrow(TypeError);
});

test('a follower that begins late gets the existing objects, after its caller has got the informer, and then the changes', async () => {
  await put('x');
  await follower(CONFIG_MAPS).informer.synced;
  await watched(1);
  const late = follower(CONFIG_MAPS);
  expect(late.heard).toEqual([]);
  await late.informer.synced;
  expect(late.heard).toEqual(['added x']);
  await put('x', { k: '1' });
  await backend.remove(CONFIG_MAPS, 'a', 'x');
  expect(late.heard).toEqual(['added x', 'updated x', 'deleted x']);
  expect(calls('watch')).toHaveLength(1);
});

test('a follower that begins during the first list gets each object once', async () => {
  await put('x');
  const first = follower(CONFIG_MAPS);
  const { list } = backend;
  const second = Promise.withResolvers<ReturnType<typeof follower>>();
  backend.list = async (...call) => {
    const found = await list(...call);
    second.resolve(follower(CONFIG_MAPS));
    return found;
  };
  const { informer, heard } = await second.promise;
  await Promise.all([informer.synced, first.informer.synced]);
  expect([first.heard, heard]).toEqual([['added x'], ['added x']]);
});

test('a follower with a field selector gets only the objects that match, from the watch that all share', async () => {
  await backend.set(PODS, pod('elsewhere', 'n2'));
  const all = follower(PODS);
  const own = follower(PODS, { fieldSelector: 'spec.nodeName=n1' });
  await Promise.all([all.informer.synced, own.informer.synced]);
  await watched(1);
  await backend.set(PODS, pod('here', 'n1'));
  await backend.set(PODS, pod('waits'));
  const target = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
  const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'waits' }, target };
  await backend.create(PODS, 'a', binding, { name: 'waits', subresource: 'binding' });
  await backend.remove(PODS, 'a', 'here');
  await backend.remove(PODS, 'a', 'elsewhere');
  expect(all.heard.slice(0, 4)).toEqual(['added elsewhere', 'added here', 'added waits', 'updated waits']);
  expect(own.heard.filter((call) => !call.startsWith('updated'))).toEqual([
    'added here',
    'added waits',
    'deleted here',
  ]);
  expect(own.informer.list().map(({ metadata }) => metadata.name)).toEqual(['waits']);
  expect([own.informer.get('a', 'elsewhere'), own.informer.get('a', 'waits')?.metadata.name]).toEqual([
    undefined,
    'waits',
  ]);
  expect(calls('watch')).toEqual(['watch pods /']);
});

test('an object that ceases to match the field selector of a follower counts as deleted in its last matching state', async () => {
  const deleted: (Pod['status'] | undefined)[] = [];
  await backend.set(PODS, { ...pod('x', 'n1'), status: { phase: 'Pending' } });
  const options = { fieldSelector: 'status.phase!=Failed', signal: stop.signal };
  const pods = informers.follow<Pod>(PODS, options, { deleted: ({ status }) => void deleted.push(status) });
  await pods.synced;
  await watched(1);
  await backend.setStatus(PODS, 'a', 'x', { phase: 'Failed' });
  expect(deleted).toMatchObject([{ phase: 'Pending' }]);
  await backend.remove(PODS, 'a', 'x');
  expect(deleted).toHaveLength(1);
});

test('an index follows the changes of the objects', async () => {
  const nodes = ({ spec }: Pod): string[] => (spec?.nodeName ? [spec.nodeName] : []);
  await backend.set(PODS, pod('one', 'n1'));
  await backend.set(PODS, pod('two', 'n1'));
  const indexed: string[][] = [];
  const namesOn = (node: string): string[] => [...pods.by(nodes, node)].map(({ metadata }) => metadata.name);
  const look = (): void => void indexed.push(namesOn('n1'));
  const pods = informers.follow<Pod>(PODS, { signal: stop.signal }, { added: look, updated: look, deleted: look });
  await pods.synced;
  await watched(1);
  expect([namesOn('n1'), namesOn('n2')]).toEqual([['one', 'two'], []]);
  await backend.set(PODS, pod('other', 'n2'));
  await backend.setStatus(PODS, 'a', 'one', { phase: 'Running' });
  expect([namesOn('n1').sort(), namesOn('n2')]).toEqual([['one', 'two'], ['other']]);
  for (const each of pods.by(nodes, 'n1')) expect(each).toBe(pods.get('a', each.metadata.name));
  indexed.length = 0;
  await backend.remove(PODS, 'a', 'one');
  // The handler sees the index without the deleted object.
  expect(indexed.at(-1)).toEqual(['two']);
});

test('an informer ends with its last follower, and the next follower starts a new one', async () => {
  await put('x');
  const [first, second] = [new AbortController(), new AbortController()];
  const ended: boolean[] = [];
  const { watch } = backend;
  backend.watch = async (ref, options, sink, signal) => {
    await watch(ref, options, sink, signal);
    ended.push(signal.aborted);
  };
  const one = follower(CONFIG_MAPS, { signal: first.signal });
  await follower(CONFIG_MAPS, { signal: second.signal }).informer.synced;
  await watched(1);
  first.abort();
  await put('y');
  expect([one.heard, ended]).toEqual([['added x'], []]);
  second.abort();
  await expect.poll(() => ended).toEqual([true]);
  const next = follower(CONFIG_MAPS);
  await next.informer.synced;
  await watched(2);
  expect(next.heard).toEqual(['added x', 'added y']);
  expect(calls('list')).toHaveLength(2);
});

test('a follower whose signal has aborted starts nothing, and its `synced` resolves', async () => {
  const { informer } = follower(SECRETS, { signal: AbortSignal.abort() });
  await informer.synced;
  const ending = new AbortController();
  const { informer: other } = follower(SECRETS, { signal: ending.signal });
  ending.abort();
  await other.synced;
  await new Promise(setImmediate);
  expect(backend.calls).toEqual([]);
});

test('a handler that throws keeps neither other followers nor later objects from being handled', async () => {
  await put('x');
  await put('y');
  const thrown: string[] = [];
  const broken = informers.follow<KubeObject>(
    CONFIG_MAPS,
    { signal: stop.signal },
    {
      added({ metadata }) {
        thrown.push(metadata.name);
        throw new Error('boom');
      },
    },
  );
  const { heard, informer } = follower(CONFIG_MAPS);
  await Promise.all([broken.synced, informer.synced]);
  expect([thrown, heard]).toEqual([
    ['x', 'y'],
    ['added x', 'added y'],
  ]);
});
