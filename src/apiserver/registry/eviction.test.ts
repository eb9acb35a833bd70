import { describe, expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import type { Store, Txn } from '../../store/store.ts';
import { failure, object, PODS, pod, startRegistry } from './testing.ts';

const eviction = (more: object = {}) => ({ ...object('Eviction', 'a', more), apiVersion: 'policy/v1' });
const AT = { name: 'a', subresource: 'eviction' };
const bound = { nodeName: 'n1', terminationGracePeriodSeconds: 30 };

describe('eviction', () => {
  test('an eviction sets the condition DisruptionTarget and deletes the Pod with the grace period of the Pod', async () => {
    const { registry } = await startRegistry();
    await registry.create(PODS, 'default', pod('a', bound));
    expect(await registry.create(PODS, 'default', eviction(), AT)).toMatchObject({ status: 'Success', code: 201 });
    const { metadata, status } = (await registry.get(PODS, 'default', 'a')) as Pod;
    expect(metadata.deletionGracePeriodSeconds).toBe(30);
    expect(status?.conditions).toContainEqual({
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'EvictionByEvictionAPI',
      message: 'Eviction API: evicting',
      lastTransitionTime: expect.any(String),
    });
  });

  test('an eviction uses the grace period in its deleteOptions', async () => {
    const { registry } = await startRegistry();
    await registry.create(PODS, 'default', pod('a', bound));
    await registry.create(PODS, 'default', eviction({ deleteOptions: { gracePeriodSeconds: 5 } }), AT);
    expect((await registry.get(PODS, 'default', 'a')).metadata.deletionGracePeriodSeconds).toBe(5);
  });

  test.each<[object, string[] | undefined]>([
    [{ propagationPolicy: 'Foreground' }, ['foregroundDeletion']],
    [{ orphanDependents: true }, ['orphan']],
    [{ orphanDependents: false }, undefined],
    [{ orphanDependents: true, propagationPolicy: 'Foreground' }, ['orphan']],
  ])('an eviction uses the propagation policy in its deleteOptions %j', async (deleteOptions, finalizers) => {
    const { registry } = await startRegistry();
    await registry.create(PODS, 'default', pod('a', bound));
    await registry.create(PODS, 'default', eviction({ deleteOptions }), AT);
    expect((await registry.get(PODS, 'default', 'a')).metadata.finalizers).toEqual(finalizers);
  });

  test.each([
    ['in the options of the request', eviction(), { ...AT, dryRun: true }],
    ['in the body of the request', eviction({ deleteOptions: { dryRun: ['All'] } }), AT],
  ])('a dry run of an eviction changes nothing if it is requested %s', async (_, body, options) => {
    const { registry } = await startRegistry();
    const before = await registry.create(PODS, 'default', pod('a', bound));
    await registry.create(PODS, 'default', body, options);
    expect(await registry.get(PODS, 'default', 'a')).toEqual(before);
  });

  test('an eviction changes nothing if the preconditions do not match the Pod', async () => {
    const { registry } = await startRegistry();
    const before = await registry.create(PODS, 'default', pod('a', bound));
    for (const preconditions of [{ uid: 'other' }, { resourceVersion: '1' }]) {
      const refused = registry.create(PODS, 'default', eviction({ deleteOptions: { preconditions } }), AT);
      expect(await failure(refused)).toMatchObject({ code: 409, reason: 'Conflict' });
    }
    expect(await registry.get(PODS, 'default', 'a')).toEqual(before);
    const { resourceVersion } = before.metadata;
    await registry.create(PODS, 'default', eviction({ deleteOptions: { preconditions: { resourceVersion } } }), AT);
    expect((await registry.get(PODS, 'default', 'a')).metadata.deletionTimestamp).toBeDefined();
  });

  test.each([
    ['the condition is set', 1, 'of the UID'],
    ['the delete', 2, 'of any'],
  ])(
    'an eviction does not change a Pod of the same name that replaces the evicted Pod before %s',
    async (_, write, whose) => {
      let left = Number.POSITIVE_INFINITY;
      const memory = createMemoryStore();
      const store: Store = Object.assign(Object.create(memory), {
        async txn(txn: Txn) {
          if (--left === 0) {
            await registry.delete(PODS, 'default', 'a', { gracePeriodSeconds: 0 });
            await registry.create(PODS, 'default', pod('a', bound));
          }
          return memory.txn(txn);
        },
      });
      const { registry } = await startRegistry({ store });
      const { uid = '' } = (await registry.create(PODS, 'default', pod('a', bound))).metadata;
      left = write;
      const body = eviction(whose === 'of any' ? {} : { deleteOptions: { preconditions: { uid } } });
      expect(await failure(registry.create(PODS, 'default', body, AT))).toMatchObject({ code: 409 });
      const { metadata, status } = (await registry.get(PODS, 'default', 'a')) as Pod;
      expect(metadata.uid).not.toBe(uid);
      expect(metadata.deletionTimestamp).toBeUndefined();
      expect(status?.conditions ?? []).toEqual([]);
    },
  );

  test('an eviction is refused if the name differs from the URL or the Pod does not exist', async () => {
    const { registry } = await startRegistry();
    await registry.create(PODS, 'default', pod('a', bound));
    expect(await failure(registry.create(PODS, 'default', eviction(), { ...AT, name: 'b' }))).toMatchObject({
      code: 400,
      message: 'name in URL does not match name in Eviction object',
    });
    const absent = { ...eviction(), metadata: { name: 'c' } };
    expect(await failure(registry.create(PODS, 'default', absent, { ...AT, name: 'c' }))).toMatchObject({ code: 404 });
  });
});
