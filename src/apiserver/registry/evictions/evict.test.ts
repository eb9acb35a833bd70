import { describe, expect, test } from 'vitest';
import type { Pod, PodDisruptionBudget } from '../../../api/generated/types.ts';
import { POD_DISRUPTION_BUDGETS } from '../../../api/resources.ts';
import type { ApiError } from '../../../machinery/status.ts';
import type { ResourceApi } from '../../../ports/backend.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import type { Store, Txn } from '../../../store/store.ts';
import { failure, object, PODS, pod, startRegistry } from '../testing.ts';

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

describe('an eviction with a PodDisruptionBudget', () => {
  const labels = { app: 'web' };
  const withBudget = async ({ registry }: { registry: ResourceApi }, status: object, isReady = true): Promise<void> => {
    const made = object('PodDisruptionBudget', 'web', { spec: { minAvailable: 2, selector: { matchLabels: labels } } });
    const budget = { ...made, apiVersion: 'policy/v1' };
    const created = await registry.create(POD_DISRUPTION_BUDGETS, 'default', budget);
    const numbers = { currentHealthy: 3, desiredHealthy: 2, expectedPods: 3, observedGeneration: 1, ...status };
    await registry.update(POD_DISRUPTION_BUDGETS, { ...created, status: numbers } as PodDisruptionBudget, {
      subresource: 'status',
    });
    for (const name of ['a', 'b']) await running({ registry }, name, isReady);
  };
  const running = async ({ registry }: { registry: ResourceApi }, name: string, isReady = true): Promise<void> => {
    const created = await registry.create(PODS, 'default', pod(name, bound, { labels }));
    const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }];
    await registry.update(PODS, { ...created, status: { phase: 'Running', conditions } } as Pod, {
      subresource: 'status',
    });
  };
  const evictionOf = (name: string, deleteOptions: object = {}) => ({
    ...object('Eviction', name, { deleteOptions }),
    apiVersion: 'policy/v1',
  });
  const evict = ({ registry }: { registry: ResourceApi }, name: string, options: object = {}) =>
    registry.create(PODS, 'default', evictionOf(name), { name, subresource: 'eviction', ...options });
  const budgetOf = async ({ registry }: { registry: ResourceApi }) =>
    (await registry.get(POD_DISRUPTION_BUDGETS, 'default', 'web')) as PodDisruptionBudget;
  const podOf = async ({ registry }: { registry: ResourceApi }, name: string) =>
    (await registry.get(PODS, 'default', name)) as Pod;

  test('an eviction charges the budget, and a refused one changes nothing', async () => {
    const started = await startRegistry();
    await withBudget(started, { disruptionsAllowed: 1 });
    await evict(started, 'a');
    expect((await podOf(started, 'a')).metadata.deletionTimestamp).toBeDefined();
    const charged = await budgetOf(started);
    expect(charged.status).toMatchObject({
      disruptionsAllowed: 0,
      disruptedPods: { a: expect.any(String) },
      conditions: [{ type: 'DisruptionAllowed', status: 'False', reason: 'InsufficientPods' }],
    });
    const before = await podOf(started, 'b');
    const { status } = (await evict(started, 'b').catch((error: unknown) => error)) as ApiError;
    expect(status).toMatchObject({
      code: 429,
      reason: 'TooManyRequests',
      details: {
        causes: [
          { reason: 'DisruptionBudget', message: 'The disruption budget web needs 2 healthy pods and has 3 currently' },
        ],
      },
    });
    expect(await podOf(started, 'b')).toEqual(before);
    expect(await budgetOf(started)).toEqual(charged);
  });

  test('a dry run of an eviction is refused like an eviction, and otherwise takes nothing', async () => {
    const started = await startRegistry();
    await withBudget(started, { disruptionsAllowed: 1 });
    const before = await budgetOf(started);
    await evict(started, 'a', { dryRun: true });
    expect(await budgetOf(started)).toEqual(before);
    expect((await podOf(started, 'a')).metadata.deletionTimestamp).toBeUndefined();
    await evict(started, 'a');
    expect(await failure(evict(started, 'b', { dryRun: true }))).toMatchObject({ code: 429 });
  });

  test('an eviction is refused through a second API server on the same store', async () => {
    const first = await startRegistry();
    await withBudget(first, { disruptionsAllowed: 1 });
    const second = await startRegistry({ store: first.store });
    const both = await Promise.allSettled([evict(first, 'a'), evict(second, 'b')]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect((await budgetOf(second)).status?.disruptionsAllowed).toBe(0);
  });

  test('an eviction of an unready Pod is refused if the Pod becomes ready before its deletion', async () => {
    let left = Number.POSITIVE_INFINITY;
    const memory = createMemoryStore();
    const store: Store = Object.assign(Object.create(memory), {
      async txn(txn: Txn) {
        if (--left === 0) {
          const current = await podOf(started, 'a');
          const conditions = [{ type: 'Ready', status: 'True' }];
          await started.registry.update(PODS, { ...current, status: { ...current.status, conditions } } as Pod, {
            subresource: 'status',
          });
        }
        return memory.txn(txn);
      },
    });
    const started = await startRegistry({ store });
    await withBudget(started, { disruptionsAllowed: 0, currentHealthy: 2 }, false);
    // The second write is the deletion.
    left = 2;
    expect(await failure(evict(started, 'a'))).toMatchObject({ code: 429 });
    expect((await podOf(started, 'a')).metadata.deletionTimestamp).toBeUndefined();
  });

  test('an eviction of a Pending Pod is judged again if the Pod starts to run before its deletion', async () => {
    let left = Number.POSITIVE_INFINITY;
    const memory = createMemoryStore();
    const store: Store = Object.assign(Object.create(memory), {
      async txn(txn: Txn) {
        if (--left === 0) {
          const current = await podOf(started, 'c');
          const status = { ...current.status, phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
          await started.registry.update(PODS, { ...current, status } as Pod, { subresource: 'status' });
        }
        return memory.txn(txn);
      },
    });
    const started = await startRegistry({ store });
    await withBudget(started, { disruptionsAllowed: 0 });
    await started.registry.create(PODS, 'default', pod('c', bound, { labels }));
    left = 2;
    expect(await failure(evict(started, 'c'))).toMatchObject({ code: 429 });
    expect((await podOf(started, 'c')).metadata.deletionTimestamp).toBeUndefined();
  });
});
