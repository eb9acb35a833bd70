import { expect, test } from 'vitest';
import type { ConfigMap, Pod } from '../../api/generated/types.ts';
import { CONFIG_MAPS, PODS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { ObjectMeta } from '../../machinery/meta.ts';
import { forbidden, insufficientStorage } from '../../machinery/status.ts';
import { systemTimers } from '../../platform/node-js.ts';
import type { Timer } from '../../platform/platform.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { deleteObjects, reversed } from './delete-objects.ts';
import { SESSION_LABEL } from './plan.ts';

const POD = { ...PODS, kind: 'Pod', namespace: 'a' };
const CONFIG = { ...CONFIG_MAPS, kind: 'ConfigMap', namespace: 'a' };
const metadata = (name: string, id?: string): ObjectMeta => ({
  name,
  namespace: 'a',
  labels: id === undefined ? {} : { [SESSION_LABEL]: id },
});

async function session() {
  const backend = await registryBackend();
  const config = (name: string, id?: string): ConfigMap => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: metadata(name, id),
  });
  const pod = (name: string, id?: string): Pod => {
    // A Pod that is bound to a node would remain until a node agent has ended it.
    const spec = { containers: [{ name: 'app', image: 'x' }] };
    return { apiVersion: 'v1', kind: 'Pod', metadata: metadata(name, id), spec };
  };
  for (const each of [config('mine', 's1'), config('other', 's2'), config('free')])
    await backend.set(CONFIG_MAPS, each);
  for (const each of [pod('one', 's1'), pod('two', 's1'), pod('free')]) await backend.set(PODS, each);
  const said: string[] = [];
  const platform = { timers: systemTimers(), log: silentLog };
  const objects = [CONFIG, { ...POD, name: 'two' }, { ...POD, name: 'one' }].map((each) => ({ name: 'mine', ...each }));
  const stop = new AbortController();
  const run = (more: object = {}) =>
    deleteObjects(
      { id: 's1', pid: 1, objects },
      { client: clientOf(backend), platform, say: (line) => said.push(line), ...more },
      stop.signal,
    );
  const names = (): string[] =>
    [...backend.objects(PODS), ...backend.objects(CONFIG_MAPS)]
      .filter((each) => each.metadata.namespace === 'a')
      .map((each) => each.metadata.name);
  const deletes = (): string[] => backend.calls.filter((call) => call.startsWith('delete '));
  return { backend, run, said, names, deletes, stop };
}

test('the objects of a session are deleted in reverse order, Pods first, and no others', async () => {
  const { run, said, names, deletes } = await session();
  let left: string[] = [];
  const podsGone = async (): Promise<void> => {
    left = names();
  };
  await run({ podsGone });
  expect(deletes()).toEqual(['delete pods a/one', 'delete pods a/two', 'delete configmaps a/mine']);
  expect(left).toContain('mine');
  expect(names()).toEqual(expect.arrayContaining(['free', 'other']));
  expect(names().filter((name) => ['one', 'two', 'mine'].includes(name))).toEqual([]);
  expect(said.sort()).toEqual(['configmap/mine deleted', 'pod/one deleted', 'pod/two deleted']);
});

test('the deletion announces that it begins once, and not if no object is left', async () => {
  const { run, said } = await session();
  const begins = (): void => void said.push('begins');
  await run({ begins });
  await run({ begins });
  expect(said.filter((line) => line === 'begins')).toHaveLength(1);
  expect(said[0]).toBe('begins');
});

test('a delete that fails for a while is repeated, and one that is refused ends the deletion', async () => {
  const { backend, run, said } = await session();
  backend.failNext('delete pods a/one', insufficientStorage('the disk is full'));
  backend.failNext('delete configmaps', forbidden(CONFIG_MAPS, 'mine', 'no'));
  await expect(run()).rejects.toThrow('no');
  expect(said).toContain('pod/one cannot be deleted yet: the disk is full; retrying');
});

test('the deletion of a Pod with a finalizer does not wait for the finalizer', async () => {
  const { backend, run, said } = await session();
  const pod = await backend.get(PODS, 'a', 'one');
  await backend.set(PODS, { ...pod, metadata: { ...pod.metadata, finalizers: ['example.com/keep'] } });
  await run();
  expect(said).toContain('pod/one ended, but its finalizers keep the object');
});

test('lifepod down does not wait for finalizers of other programs', async () => {
  const { backend, run, said } = await session();
  const config = await backend.get(CONFIG_MAPS, 'a', 'mine');
  await backend.set(CONFIG_MAPS, { ...config, metadata: { ...config.metadata, finalizers: ['example.com/keep'] } });
  await run({ limitMillis: 1 });
  expect(said).toContain('not deleted yet: configmap/mine');
});

test('a Pod that has not ended after 5 s is reported', async () => {
  const { backend, run, stop } = await session();
  const spec = { containers: [{ name: 'app', image: 'x' }], nodeName: 'node' };
  await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: metadata('bound', 's1'), spec });
  const at = (time: number, callback: () => void): Timer => {
    if (time === 5000) queueMicrotask(callback);
    return { cancel: () => undefined };
  };
  const reported = new Promise((resolve) => {
    const pods = () => backend.objects(PODS).filter((each) => each.metadata.name === 'bound');
    const platform = { timers: { now: () => 0, at }, log: silentLog };
    run({ platform, pods, isSlow: (pod: Pod) => resolve(pod.metadata.name) }).catch(() => undefined);
  });
  expect(await reported).toBe('bound');
  stop.abort();
});

test('the deletion ends when its signal aborts', async () => {
  const { run, stop } = await session();
  stop.abort(new Error('the engine has stopped'));
  await expect(run()).rejects.toThrow('the engine has stopped');
});

test('objects whose name the server has chosen are deleted in the place of their manifest', () => {
  const found = ['x-1', 'b', 'a'].map((name) => ({
    object: { apiVersion: 'v1', kind: 'Pod', metadata: { name } },
    first: POD,
  }));
  const order = reversed(found, [{ ...POD, name: 'a' }, POD, { ...POD, name: 'b' }]);
  expect(order.map(({ object }) => object.metadata.name)).toEqual(['b', 'x-1', 'a']);
});
