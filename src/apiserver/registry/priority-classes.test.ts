import { expect, test } from 'vitest';
import type { Pod, PriorityClass } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { failure, PODS, pod, ref, startRegistry } from './testing.ts';

const CLASSES = ref('priorityclasses', 'scheduling.k8s.io');
const classOf = (name: string, more: Partial<PriorityClass> = {}): KubeObject =>
  ({
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value: 5,
    ...more,
  }) as KubeObject;

test('a Pod gets the values of its PriorityClass, and keeps them if an update omits them or the class is deleted', async () => {
  const { registry } = await startRegistry();
  await registry.create(CLASSES, undefined, classOf('gold', { preemptionPolicy: 'Never' }));
  const created = (await registry.create(PODS, 'default', pod('a', { priorityClassName: 'gold' }))) as Pod;
  expect(created.spec).toMatchObject({ priority: 5, preemptionPolicy: 'Never' });
  await registry.delete(CLASSES, undefined, 'gold');
  const { priority: _p, preemptionPolicy: _q, ...spec } = created.spec as NonNullable<Pod['spec']>;
  const metadata = { ...created.metadata, labels: { a: 'b' } };
  const updated = (await registry.update(PODS, { ...created, metadata, spec } as KubeObject)) as Pod;
  expect(updated.spec).toMatchObject({ priority: 5, preemptionPolicy: 'Never' });
  expect(await failure(registry.create(PODS, 'default', pod('b', { priorityClassName: 'gold' })))).toMatchObject({
    code: 403,
    message: 'pods "b" is forbidden: no PriorityClass with name gold was found',
  });
});

test('only one PriorityClass can be the default', async () => {
  const { registry } = await startRegistry();
  await registry.create(CLASSES, undefined, classOf('usual', { globalDefault: true }));
  expect(((await registry.create(PODS, 'default', pod('a'))) as Pod).spec).toMatchObject({
    priorityClassName: 'usual',
    priority: 5,
  });
  const refused = {
    code: 403,
    message:
      'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass usual is already marked as default. Only one default can exist',
  };
  const other = classOf('other', { globalDefault: true });
  expect(await failure(registry.create(CLASSES, undefined, other))).toMatchObject(refused);
  const kept = await registry.create(CLASSES, undefined, classOf('other'));
  expect(await failure(registry.update(CLASSES, { ...kept, globalDefault: true } as KubeObject))).toMatchObject(
    refused,
  );
});

test('the system PriorityClasses exist and cannot be deleted', async () => {
  const { registry } = await startRegistry();
  const { items } = await registry.list(CLASSES, {});
  expect(items.map(({ metadata }) => metadata.name)).toEqual(['system-cluster-critical', 'system-node-critical']);
  expect(await failure(registry.delete(CLASSES, undefined, 'system-node-critical'))).toMatchObject({
    code: 403,
    message:
      'priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: this is a system priority class and cannot be deleted',
  });
});
