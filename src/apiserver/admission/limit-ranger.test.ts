import { expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { LIMIT_RANGES, PERSISTENT_VOLUME_CLAIMS } from '../../api/resources.ts';
import { failure, object, PODS, pod, startRegistry } from '../registry/testing.ts';

async function startWith(...limits: object[]) {
  const { registry } = await startRegistry();
  await registry.create(LIMIT_RANGES, 'default', object('LimitRange', 'limits', { spec: { limits } }));
  return registry;
}

test('a new Pod gets the defaults of the LimitRange before its QoS class is computed', async () => {
  const registry = await startWith({ type: 'Container', default: { cpu: '1', memory: '1Gi' } });
  const created = (await registry.create(PODS, 'default', pod('a'))) as Pod;
  expect(created.spec?.containers[0]?.resources).toEqual({
    limits: { cpu: '1', memory: '1Gi' },
    requests: { cpu: '1', memory: '1Gi' },
  });
  expect(created.status?.qosClass).toBe('Guaranteed');
  expect(created.metadata.annotations).toEqual({
    'kubernetes.io/limit-ranger':
      'LimitRanger plugin set: cpu, memory request for container app; cpu, memory limit for container app',
  });
});

test('a Pod that violates the LimitRange is rejected with all errors and is not stored', async () => {
  const registry = await startWith({ type: 'Container', min: { cpu: '100m', memory: '1Mi' } });
  const resources = { requests: { cpu: '50m', memory: '1' } };
  const spec = { containers: [{ name: 'app', image: 'busybox', resources }] };
  const cause =
    '[minimum cpu usage per Container is 100m, but request is 50m, minimum memory usage per Container is 1Mi, but request is 1]';
  expect(await failure(registry.create(PODS, 'default', pod('a', spec)))).toEqual({
    code: 403,
    reason: 'Forbidden',
    message: `pods "a" is forbidden: ${cause}`,
  });
  expect(await registry.list(PODS, { namespace: 'default' })).toMatchObject({ items: [] });
});

test('a LimitRange applies neither to other namespaces nor to updates of Pods', async () => {
  const { registry } = await startRegistry();
  const created = await registry.create(PODS, 'default', pod('a'));
  const limits = [{ type: 'Container', min: { cpu: '1' } }];
  await registry.create(LIMIT_RANGES, 'kube-public', object('LimitRange', 'other', { spec: { limits } }));
  await registry.create(PODS, 'default', pod('b'));
  await registry.create(LIMIT_RANGES, 'default', object('LimitRange', 'limits', { spec: { limits } }));
  const labeled = { ...created, metadata: { ...created.metadata, labels: { a: 'b' } } };
  expect((await registry.update(PODS, labeled)).metadata.labels).toEqual({ a: 'b' });
});

const claim = (storage: string) =>
  object('PersistentVolumeClaim', 'c', {
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
  });

test('a claim outside of the bounds is rejected on create', async () => {
  const registry = await startWith({ type: 'PersistentVolumeClaim', max: { storage: '1Gi' } });
  await registry.create(PERSISTENT_VOLUME_CLAIMS, 'default', claim('1Gi'));
  await registry.delete(PERSISTENT_VOLUME_CLAIMS, 'default', 'c');
  expect((await failure(registry.create(PERSISTENT_VOLUME_CLAIMS, 'default', claim('2Gi')))).message).toBe(
    'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi',
  );
});

test('an update of a claim is rejected if the claim is outside of the bounds, unless the claim is being deleted', async () => {
  const { registry } = await startRegistry();
  const created = await registry.create(PERSISTENT_VOLUME_CLAIMS, 'default', claim('2Gi'));
  const limits = [{ type: 'PersistentVolumeClaim', max: { storage: '1Gi' } }];
  await registry.create(LIMIT_RANGES, 'default', object('LimitRange', 'limits', { spec: { limits } }));
  const update = (metadata: object) =>
    registry.update(PERSISTENT_VOLUME_CLAIMS, {
      ...created,
      metadata: { ...created.metadata, resourceVersion: undefined, ...metadata },
    });
  expect((await failure(update({ labels: { a: 'b' } }))).message).toBe(
    'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi',
  );
  await registry.delete(PERSISTENT_VOLUME_CLAIMS, 'default', 'c');
  await update({ finalizers: [] });
  expect(await registry.list(PERSISTENT_VOLUME_CLAIMS, { namespace: 'default' })).toMatchObject({ items: [] });
});
