import { describe, expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { ResourceApi } from '../../ports/backend.ts';
import type { UserInfo } from '../../ports/request.ts';
import { asClient, failure, NAMESPACES, object, PODS, pod, ref, type Started, startRegistry } from './testing.ts';

const MIRROR = 'kubernetes.io/config.mirror';
const mirror = (spec: object = {}, metadata: object = {}): Pod =>
  pod('web-node-1', { nodeName: 'node-1', ...spec }, { annotations: { [MIRROR]: 'abc' }, ...metadata });

const admin: UserInfo = { name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] };
const node: UserInfo = { name: 'system:node:node-1', groups: ['system:nodes', 'system:authenticated'] };

async function ownersOf({ registry }: Started): Promise<object[]> {
  const { metadata } = await registry.create(ref('nodes'), undefined, object('Node', 'node-1'));
  return [{ apiVersion: 'v1', kind: 'Node', name: 'node-1', uid: metadata.uid, controller: true }];
}

describe('mirror Pods', () => {
  test('a node can create a mirror Pod, to which admission adds nothing', async () => {
    const started = await startRegistry();
    const owned = mirror({}, { ownerReferences: await ownersOf(started) });
    const created = (await asClient(started.backend, node).create(PODS, 'default', owned)) as Pod;
    expect(created.spec).toMatchObject({ nodeName: 'node-1', containers: [{ name: 'app' }] });
    expect(created.spec?.serviceAccountName).toBeUndefined();
    expect(created.spec?.volumes).toBeUndefined();
    expect(created.spec?.containers[0]?.volumeMounts).toBeUndefined();
  });

  test('a mirror Pod needs no ServiceAccount in its namespace', async () => {
    const started = await startRegistry();
    await started.registry.create(NAMESPACES, undefined, object('Namespace', 'x'));
    const owned = mirror({}, { ownerReferences: await ownersOf(started) });
    expect((await asClient(started.backend, node).create(PODS, 'x', owned)).metadata.namespace).toBe('x');
  });

  test('a user other than a node cannot create a mirror Pod', async () => {
    const { backend } = await startRegistry();
    const client = asClient(backend, admin);
    expect(await failure(client.create(PODS, 'default', mirror()))).toEqual({
      code: 403,
      reason: 'Forbidden',
      message:
        'pods "web-node-1" is forbidden: pod has "kubernetes.io/config.mirror" annotation, only nodes can create mirror pods',
    });
    const own = await client.create(PODS, 'default', pod('own'));
    const annotated = { ...own, metadata: { ...own.metadata, annotations: { [MIRROR]: 'abc' } } };
    expect((await failure(client.update(PODS, annotated))).message).toContain(
      'Forbidden: may not add mirror pod annotation',
    );
  });

  const created = async (finalizers?: string[]) => {
    const started = await startRegistry();
    const owned = mirror({}, { ownerReferences: await ownersOf(started), finalizers });
    const [byAdmin, byNode] = [admin, node].map((user) => asClient(started.backend, user)) as [
      ResourceApi,
      ResourceApi,
    ];
    await byNode.create(PODS, 'default', owned);
    return { byAdmin, byNode };
  };
  const NAME = 'web-node-1';

  test.each([undefined, 0, 1, 30])(
    'a client that is not a node deletes a mirror Pod immediately, also with the grace period %s',
    async (gracePeriodSeconds) => {
      const { byAdmin } = await created();
      await byAdmin.delete(PODS, 'default', NAME, { gracePeriodSeconds });
      expect((await failure(byAdmin.get(PODS, 'default', NAME))).reason).toBe('NotFound');
    },
  );

  test('finalizers keep a mirror Pod that a client has deleted, without a grace period', async () => {
    const { byAdmin } = await created(['a.b/c']);
    await byAdmin.delete(PODS, 'default', NAME);
    expect((await byAdmin.get(PODS, 'default', NAME)).metadata.deletionGracePeriodSeconds).toBe(0);
  });

  test('a mirror Pod that its node has marked as terminating stays when a client deletes it', async () => {
    const { byAdmin, byNode } = await created();
    await byNode.delete(PODS, 'default', NAME, { gracePeriodSeconds: 30 });
    await byAdmin.delete(PODS, 'default', NAME);
    const { metadata } = await byAdmin.get(PODS, 'default', NAME);
    expect(metadata).toMatchObject({ deletionTimestamp: expect.anything(), deletionGracePeriodSeconds: 30 });
    await byNode.delete(PODS, 'default', NAME, { gracePeriodSeconds: 0 });
    expect((await failure(byAdmin.get(PODS, 'default', NAME))).reason).toBe('NotFound');
  });

  test('a mirror Pod cannot refer to a ServiceAccount', async () => {
    const { backend } = await startRegistry();
    const creating = asClient(backend, node).create(PODS, 'default', mirror({ serviceAccountName: 'default' }));
    expect((await failure(creating)).message).toBe(
      'pods "web-node-1" is forbidden: a mirror pod may not reference service accounts',
    );
  });
});
