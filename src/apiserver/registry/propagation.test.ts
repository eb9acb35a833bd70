import { describe, expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { KindDefinition } from '../../api/kind.ts';
import { kinds } from '../../api/kinds.ts';
import { deleteOptions } from '../http/query.ts';
import { finalizersAfterDelete } from './propagation.ts';
import { CONFIG_MAPS, configMap, failure, object, PODS, pod, startRegistry } from './testing.ts';

type Row = [string, KindDefinition['propagation'], string[], string | undefined, string[]];

test.each<Row>([
  ['no policy adds no finalizer', undefined, ['x.io/y'], undefined, ['x.io/y']],
  ['Background adds no finalizer', undefined, ['x.io/y'], 'Background', ['x.io/y']],
  ['Orphan adds the finalizer orphan', undefined, ['x.io/y'], 'Orphan', ['x.io/y', 'orphan']],
  ['Foreground adds the finalizer foregroundDeletion', undefined, [], 'Foreground', ['foregroundDeletion']],
  [
    'without a policy, the finalizer of the object decides',
    { byDefault: 'Orphan' },
    ['foregroundDeletion'],
    undefined,
    ['foregroundDeletion'],
  ],
  [
    'the policy replaces the finalizer of the object',
    undefined,
    ['orphan', 'x.io/y'],
    'Foreground',
    ['x.io/y', 'foregroundDeletion'],
  ],
  ['Background removes the finalizer of the object', undefined, ['orphan'], 'Background', []],
  [
    'without a policy and a finalizer, the default of the kind decides',
    { byDefault: 'Orphan' },
    [],
    undefined,
    ['orphan'],
  ],
  ['the policy overrides the default of the kind', { byDefault: 'Orphan' }, [], 'Background', []],
  ['a kind without dependents gets no finalizer', 'unsupported', ['orphan'], 'Foreground', []],
])('%s', (_, propagation, finalizers, propagationPolicy, expected) => {
  expect(finalizersAfterDelete({ propagation }, finalizers, { propagationPolicy })).toEqual(expected);
});

test.each<[string, string | undefined]>([
  ['orphanDependents=true', 'Orphan'],
  ['orphanDependents=false', 'Background'],
  ['propagationPolicy=Foreground', 'Foreground'],
  ['', undefined],
])('the query %j of a delete has the propagation policy %s', (query, expected) => {
  expect(deleteOptions(new URLSearchParams(query), undefined).propagationPolicy).toBe(expected);
});

test('the same kinds as in v1.33 orphan their dependents by default or are ignored by the garbage collector, and PodRecords are ignored too', () => {
  const names = (matches: (propagation: KindDefinition['propagation']) => boolean) =>
    kinds.filter(({ propagation }) => matches(propagation)).map(({ kind }) => kind);
  expect(names((propagation) => typeof propagation === 'object')).toEqual(['ReplicationController', 'Job']);
  expect(names((propagation) => propagation === 'unsupported')).toEqual(['Event', 'Event', 'PodRecord']);
});

describe('in the registry', () => {
  test('a delete with the policy Foreground keeps the object until the finalizer is removed', async () => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    const marked = await registry.delete(CONFIG_MAPS, 'default', 'a', { propagationPolicy: 'Foreground' });
    expect(marked.metadata).toMatchObject({
      finalizers: ['foregroundDeletion'],
      deletionTimestamp: '2026-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 0,
    });
    await registry.patch(CONFIG_MAPS, 'default', 'a', 'application/merge-patch+json', { metadata: { finalizers: [] } });
    expect(await failure(registry.get(CONFIG_MAPS, 'default', 'a'))).toMatchObject({ code: 404 });
  });

  test('a later delete with the policy Background removes an object that waits for its dependents', async () => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    await registry.delete(CONFIG_MAPS, 'default', 'a', { propagationPolicy: 'Orphan' });
    expect((await registry.get(CONFIG_MAPS, 'default', 'a')).metadata.finalizers).toEqual(['orphan']);
    await registry.delete(CONFIG_MAPS, 'default', 'a', { propagationPolicy: 'Background' });
    expect(await failure(registry.get(CONFIG_MAPS, 'default', 'a'))).toMatchObject({ code: 404 });
  });

  test('a Pod with the policy Foreground first ends gracefully, then waits for its dependents', async () => {
    const { registry } = await startRegistry();
    await registry.create(PODS, 'default', pod('a', { nodeName: 'n1', terminationGracePeriodSeconds: 30 }));
    const marked = (await registry.delete(PODS, 'default', 'a', { propagationPolicy: 'Foreground' })) as Pod;
    expect(marked.metadata).toMatchObject({ finalizers: ['foregroundDeletion'], deletionGracePeriodSeconds: 30 });
    // A delete that does not shorten the grace period changes nothing.
    await registry.delete(PODS, 'default', 'a', { propagationPolicy: 'Background' });
    const waiting = (await registry.delete(PODS, 'default', 'a', { gracePeriodSeconds: 0 })) as Pod;
    expect(waiting.metadata).toMatchObject({ finalizers: ['foregroundDeletion'], deletionGracePeriodSeconds: 0 });
    // After the grace period has been set to 0, a further delete changes nothing.
    await registry.delete(PODS, 'default', 'a', { gracePeriodSeconds: 0, propagationPolicy: 'Background' });
    expect((await registry.get(PODS, 'default', 'a')).metadata.finalizers).toEqual(['foregroundDeletion']);
  });

  test('a patch that removes the last finalizer leaves no empty list', async () => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a', {}, { finalizers: ['x.io/y'] }));
    const change = { metadata: { finalizers: [] } };
    const patched = await registry.patch(CONFIG_MAPS, 'default', 'a', 'application/merge-patch+json', change);
    expect('finalizers' in patched.metadata).toBe(false);
  });

  test('the policy of a deletecollection applies to each object', async () => {
    const { registry } = await startRegistry();
    for (const name of ['a', 'b']) await registry.create(CONFIG_MAPS, 'default', configMap(name));
    await registry.deleteCollection(CONFIG_MAPS, { namespace: 'default', propagationPolicy: 'Orphan' });
    const { items } = await registry.list(CONFIG_MAPS, { namespace: 'default' });
    expect(items.filter(({ metadata }) => metadata.finalizers?.[0] === 'orphan').length).toBe(2);
  });

  test('a Job without a policy orphans its Pods, with a warning', async () => {
    const { registry } = await startRegistry();
    const jobs = { group: 'batch', version: 'v1', resource: 'jobs' };
    const spec = { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } } };
    const warnings: string[] = [];
    const remove = (name: string, propagationPolicy?: string) =>
      registry.delete(jobs, 'default', name, { propagationPolicy, onWarning: (text) => warnings.push(text) });
    for (const name of ['a', 'b'])
      await registry.create(jobs, 'default', object('Job', name, { apiVersion: 'batch/v1', spec }));
    expect((await remove('a')).metadata).toMatchObject({ finalizers: ['orphan'] });
    expect(await remove('b', 'Background')).toMatchObject({ status: 'Success' });
    expect(warnings).toEqual([
      'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning',
    ]);
  });
});
