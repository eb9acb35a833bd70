import { describe, expect, test } from 'vitest';
import type { Namespace, Pod } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import {
  CONFIG_MAPS,
  configMap,
  failure,
  NAMESPACES,
  object,
  PODS,
  pod,
  type Started,
  startRegistry,
} from './testing.ts';

const FINALIZERS = { finalizers: ['example.com/hold'] };

async function boundPod({ registry }: Started, graceSeconds = 30): Promise<Pod> {
  return (await registry.create(
    PODS,
    'default',
    pod('a', { nodeName: 'n1', terminationGracePeriodSeconds: graceSeconds }),
  )) as Pod;
}

describe('immediate delete', () => {
  test('an immediate delete returns a Status that identifies the deleted object', async () => {
    const { registry } = await startRegistry();
    const { metadata } = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    expect(await registry.delete(CONFIG_MAPS, 'default', 'a')).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'a', kind: 'configmaps', uid: metadata.uid },
    });
    expect(await failure(registry.delete(CONFIG_MAPS, 'default', 'a'))).toEqual({
      code: 404,
      reason: 'NotFound',
      message: 'configmaps "a" not found',
    });
  });

  test('the name of a deleted object stays in use while a finalizer keeps the object', async () => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a', {}, FINALIZERS));
    await registry.delete(CONFIG_MAPS, 'default', 'a');
    expect(await failure(registry.create(CONFIG_MAPS, 'default', configMap('a')))).toEqual({
      code: 409,
      reason: 'AlreadyExists',
      message: 'object is being deleted: configmaps "a" already exists',
    });
  });

  test('a dry run of a delete keeps the object', async () => {
    const { registry } = await startRegistry();
    const created = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    await registry.delete(CONFIG_MAPS, 'default', 'a', { dryRun: true });
    expect(await registry.get(CONFIG_MAPS, 'default', 'a')).toEqual(created);
  });

  test.each([
    ['uid', { uid: 'x' }, /the UID in the precondition \(x\) does not match the UID in record/],
    ['resourceVersion', { resourceVersion: '1' }, /the ResourceVersion in the precondition \(1\) does not match/],
  ])('a delete fails with a conflict if the %s in the preconditions differs', async (_, preconditions, message) => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    const refusal = await failure(registry.delete(CONFIG_MAPS, 'default', 'a', { preconditions }));
    expect(refusal).toMatchObject({ code: 409, reason: 'Conflict', message: expect.stringMatching(message) });
  });
});

describe('graceful delete of a Pod', () => {
  test('a graceful delete sets the deletionTimestamp; a delete with grace period 0 removes the Pod', async () => {
    const started = await startRegistry();
    const { registry } = started;
    await boundPod(started);
    const marked = (await registry.delete(PODS, 'default', 'a')) as Pod;
    expect(marked.metadata).toMatchObject({
      deletionTimestamp: '2026-01-01T00:00:30Z',
      deletionGracePeriodSeconds: 30,
      generation: 2,
    });
    await registry.delete(PODS, 'default', 'a', { gracePeriodSeconds: 0 });
    expect(await failure(registry.get(PODS, 'default', 'a'))).toMatchObject({ code: 404 });
  });

  test.each([
    [
      'a shorter grace period shortens the remaining time',
      10,
      { deletionTimestamp: '2026-01-01T00:00:10Z', deletionGracePeriodSeconds: 10 },
    ],
    [
      'a grace period that is already over leaves one second',
      2,
      { deletionTimestamp: '2026-01-01T00:00:05Z', deletionGracePeriodSeconds: 1 },
    ],
    [
      'a negative grace period is one second',
      -1,
      { deletionTimestamp: '2026-01-01T00:00:05Z', deletionGracePeriodSeconds: 1 },
    ],
    [
      'a longer grace period changes nothing',
      60,
      { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 },
    ],
    [
      'no grace period changes nothing',
      undefined,
      { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 },
    ],
  ])('in a second delete of a Pod 5 s later, %s', async (_, gracePeriodSeconds, expected) => {
    const started = await startRegistry();
    await boundPod(started);
    await started.registry.delete(PODS, 'default', 'a');
    started.timers.advance(5000);
    const marked = (await started.registry.delete(PODS, 'default', 'a', { gracePeriodSeconds })) as Pod;
    expect(marked.metadata).toMatchObject({ ...expected, generation: 2 });
  });

  test.each([300e9, 9e15, Number.MAX_SAFE_INTEGER])(
    'a grace period of %d s ends at the last time that RFC 3339 can represent, and can be shortened',
    async (graceSeconds) => {
      const started = await startRegistry();
      await boundPod(started, graceSeconds);
      const marked = (await started.registry.delete(PODS, 'default', 'a')) as Pod;
      expect(marked.metadata).toMatchObject({
        deletionTimestamp: '9999-12-31T23:59:59Z',
        deletionGracePeriodSeconds: graceSeconds,
      });
      started.timers.advance(5000);
      const shorter = (await started.registry.delete(PODS, 'default', 'a', { gracePeriodSeconds: 30 })) as Pod;
      expect(shorter.metadata).toMatchObject({
        deletionTimestamp: '2026-01-01T00:00:35Z',
        deletionGracePeriodSeconds: 30,
      });
    },
  );

  test('an update cannot revoke the deletion of a Pod', async () => {
    const started = await startRegistry();
    await boundPod(started);
    const { metadata, ...rest } = (await started.registry.delete(PODS, 'default', 'a')) as Pod;
    const { deletionTimestamp, deletionGracePeriodSeconds, ...kept } = metadata;
    const body = { ...rest, metadata: { ...kept, labels: { a: 'b' } } } as KubeObject;
    const updated = await started.registry.update(PODS, body);
    expect(updated.metadata).toMatchObject({ deletionTimestamp, deletionGracePeriodSeconds, labels: { a: 'b' } });
  });
});

describe('the deadline of a Pod whose defer containers run', () => {
  const deadline = (text: string) => ({
    status: {
      phase: 'Terminating',
      termination: { reason: 'Deleted', startedAt: '2026-01-01T00:00:00.500000Z', deadline: text },
    },
  });
  const writeStatus = ({ registry }: Started, body: object): Promise<KubeObject> =>
    registry.patch(PODS, 'default', 'a', 'application/strategic-merge-patch+json', body, { subresource: 'status' });

  test('metadata.deletionTimestamp stays the same when the node extends the deadline', async () => {
    const started = await startRegistry();
    await boundPod(started);
    await started.registry.delete(PODS, 'default', 'a');
    const unmoved = { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 };
    const first = await writeStatus(started, deadline('2026-01-01T00:00:30.500000Z'));
    expect(first.metadata).toMatchObject(unmoved);
    const extended = (await writeStatus(started, deadline('2026-01-01T00:00:40.500000Z'))) as Pod;
    expect(extended.metadata).toMatchObject({ ...unmoved, generation: 2 });
    expect(extended.status?.termination?.deadline).toBe('2026-01-01T00:00:40.500000Z');
  });

  test('a client cannot change metadata.deletionTimestamp', async () => {
    const started = await startRegistry();
    await boundPod(started);
    await started.registry.delete(PODS, 'default', 'a');
    const times = { deletionTimestamp: '2026-01-01T01:00:00Z', deletionGracePeriodSeconds: 3600 };
    const { metadata } = await writeStatus(started, { metadata: times, ...deadline('2026-01-01T00:00:30.500000Z') });
    expect(metadata).toMatchObject({ deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 });
  });
});

describe('finalizers', () => {
  test('a deleted object stays until an update removes its last finalizer', async () => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a', {}, FINALIZERS));
    const waiting = await registry.delete(CONFIG_MAPS, 'default', 'a');
    expect(waiting.metadata).toMatchObject({
      deletionTimestamp: '2026-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 0,
    });
    expect(await registry.delete(CONFIG_MAPS, 'default', 'a')).toEqual(waiting);
    const added = registry.update(
      CONFIG_MAPS,
      configMap('a', {}, { namespace: 'default', finalizers: ['example.com/hold', 'example.com/more'] }),
    );
    expect((await failure(added)).message).toContain('no new finalizers can be added if the object is being deleted');
    await registry.update(CONFIG_MAPS, configMap('a', {}, { namespace: 'default' }));
    expect(await failure(registry.get(CONFIG_MAPS, 'default', 'a'))).toMatchObject({ code: 404 });
  });

  test('a patch that removes the last finalizer deletes the object', async () => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a', {}, FINALIZERS));
    await registry.delete(CONFIG_MAPS, 'default', 'a');
    await registry.patch(CONFIG_MAPS, 'default', 'a', 'application/merge-patch+json', {
      metadata: { finalizers: null },
    });
    expect(await failure(registry.get(CONFIG_MAPS, 'default', 'a'))).toMatchObject({ code: 404 });
  });

  test('a deleted Pod is removed once its grace period is over and its finalizers are removed', async () => {
    const started = await startRegistry();
    const { registry } = started;
    await registry.create(PODS, 'default', pod('a', { nodeName: 'n1' }, FINALIZERS));
    await registry.delete(PODS, 'default', 'a');
    const waiting = await registry.delete(PODS, 'default', 'a', { gracePeriodSeconds: 0 });
    expect(waiting.metadata).toMatchObject({ deletionGracePeriodSeconds: 0 });
    await registry.patch(PODS, 'default', 'a', 'application/merge-patch+json', { metadata: { finalizers: null } });
    expect(await failure(registry.get(PODS, 'default', 'a'))).toMatchObject({ code: 404 });
  });
});

describe('namespaces', () => {
  test('a deleted namespace is removed when it is finalized', async () => {
    const { registry } = await startRegistry();
    await registry.create(NAMESPACES, undefined, object('Namespace', 'x'));
    const ending = (await registry.delete(NAMESPACES, undefined, 'x')) as Namespace;
    expect(ending.status?.phase).toBe('Terminating');
    expect(ending.metadata.deletionTimestamp).toBeDefined();
    expect(await registry.delete(NAMESPACES, undefined, 'x')).toEqual(ending);
    const finalized = { ...ending, spec: { finalizers: [] } } as KubeObject;
    await registry.update(NAMESPACES, finalized, { subresource: 'finalize' });
    expect(await failure(registry.get(NAMESPACES, undefined, 'x'))).toMatchObject({ code: 404 });
  });

  test('system namespaces cannot be deleted', async () => {
    const { registry } = await startRegistry();
    expect(await failure(registry.delete(NAMESPACES, undefined, 'default'))).toEqual({
      code: 403,
      reason: 'Forbidden',
      message: 'namespaces "default" is forbidden: this namespace may not be deleted',
    });
  });
});

test('the preconditions of a deleteCollection apply to each object', async () => {
  const { registry } = await startRegistry();
  await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  const options = { namespace: 'default', preconditions: { uid: 'other' } };
  expect(await failure(registry.deleteCollection(CONFIG_MAPS, options))).toMatchObject({ code: 409 });
  expect((await registry.list(CONFIG_MAPS, { namespace: 'default' })).items).toHaveLength(1);
});

test('deleteCollection deletes and returns the selected objects', async () => {
  const { registry } = await startRegistry();
  for (const name of ['a', 'b', 'c']) {
    await registry.create(CONFIG_MAPS, 'default', configMap(name, {}, { labels: { odd: String(name !== 'b') } }));
  }
  const deleted = await registry.deleteCollection(CONFIG_MAPS, { namespace: 'default', labelSelector: 'odd=true' });
  expect(deleted.items.map((item) => item.metadata.name)).toEqual(['a', 'c']);
  const left = await registry.list(CONFIG_MAPS, { namespace: 'default' });
  expect(left.items.map((item) => item.metadata.name)).toEqual(['b']);
});
