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

describe('delete at once', () => {
  test('answers a Status with what went', async () => {
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

  test('the name is taken as long as a finalizer holds the object', async () => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a', {}, FINALIZERS));
    await registry.delete(CONFIG_MAPS, 'default', 'a');
    expect(await failure(registry.create(CONFIG_MAPS, 'default', configMap('a')))).toEqual({
      code: 409,
      reason: 'AlreadyExists',
      message: 'object is being deleted: configmaps "a" already exists',
    });
  });

  test('a dry run leaves it', async () => {
    const { registry } = await startRegistry();
    const created = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    await registry.delete(CONFIG_MAPS, 'default', 'a', { dryRun: true });
    expect(await registry.get(CONFIG_MAPS, 'default', 'a')).toBe(created);
  });

  test.each([
    ['uid', { uid: 'x' }, /the UID in the precondition \(x\) does not match the UID in record/],
    ['resourceVersion', { resourceVersion: '1' }, /the ResourceVersion in the precondition \(1\) does not match/],
  ])('another %s than expected is a conflict', async (_, preconditions, message) => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    const answer = await failure(registry.delete(CONFIG_MAPS, 'default', 'a', { preconditions }));
    expect(answer).toMatchObject({ code: 409, reason: 'Conflict', message: expect.stringMatching(message) });
  });
});

describe('graceful delete of a Pod', () => {
  test('writes when it has to be gone; the delete with grace 0 removes it', async () => {
    const started = await startRegistry();
    const { registry } = started;
    await boundPod(started);
    const answer = (await registry.delete(PODS, 'default', 'a')) as Pod;
    expect(answer.metadata).toMatchObject({
      deletionTimestamp: '2026-01-01T00:00:30Z',
      deletionGracePeriodSeconds: 30,
      generation: 2,
    });
    await registry.delete(PODS, 'default', 'a', { gracePeriodSeconds: 0 });
    expect(await failure(registry.get(PODS, 'default', 'a'))).toMatchObject({ code: 404 });
  });

  test.each([
    ['a shorter one shortens it', 10, { deletionTimestamp: '2026-01-01T00:00:10Z', deletionGracePeriodSeconds: 10 }],
    [
      'one that is over leaves a second',
      2,
      { deletionTimestamp: '2026-01-01T00:00:05Z', deletionGracePeriodSeconds: 1 },
    ],
    ['a negative one is one second', -1, { deletionTimestamp: '2026-01-01T00:00:05Z', deletionGracePeriodSeconds: 1 }],
    ['a longer one changes nothing', 60, { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 }],
    ['none changes nothing', undefined, { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 }],
  ])('a second delete 5 s later: %s', async (_, gracePeriodSeconds, expected) => {
    const started = await startRegistry();
    await boundPod(started);
    await started.registry.delete(PODS, 'default', 'a');
    started.timers.advance(5000);
    const answer = (await started.registry.delete(PODS, 'default', 'a', { gracePeriodSeconds })) as Pod;
    expect(answer.metadata).toMatchObject({ ...expected, generation: 2 });
  });

  test.each([300e9, 9e15, Number.MAX_SAFE_INTEGER])(
    'one of %d s ends with the last time of all, and can be shortened',
    async (graceSeconds) => {
      const started = await startRegistry();
      await boundPod(started, graceSeconds);
      const answer = (await started.registry.delete(PODS, 'default', 'a')) as Pod;
      expect(answer.metadata).toMatchObject({
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

  test('an update cannot take back the deletion', async () => {
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

  test('metadata.deletionTimestamp stays where the node moves the deadline later', async () => {
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

  test('a client cannot move metadata.deletionTimestamp', async () => {
    const started = await startRegistry();
    await boundPod(started);
    await started.registry.delete(PODS, 'default', 'a');
    const times = { deletionTimestamp: '2026-01-01T01:00:00Z', deletionGracePeriodSeconds: 3600 };
    const { metadata } = await writeStatus(started, { metadata: times, ...deadline('2026-01-01T00:00:30.500000Z') });
    expect(metadata).toMatchObject({ deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 });
  });
});

describe('finalizers', () => {
  test('keep the object until an update removes the last of them', async () => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a', {}, FINALIZERS));
    const waiting = await registry.delete(CONFIG_MAPS, 'default', 'a');
    expect(waiting.metadata).toMatchObject({
      deletionTimestamp: '2026-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 0,
    });
    expect(await registry.delete(CONFIG_MAPS, 'default', 'a')).toBe(waiting);
    const added = registry.update(
      CONFIG_MAPS,
      configMap('a', {}, { namespace: 'default', finalizers: ['example.com/hold', 'example.com/more'] }),
    );
    expect((await failure(added)).message).toContain('no new finalizers can be added if the object is being deleted');
    await registry.update(CONFIG_MAPS, configMap('a', {}, { namespace: 'default' }));
    expect(await failure(registry.get(CONFIG_MAPS, 'default', 'a'))).toMatchObject({ code: 404 });
  });

  test('a patch can remove the last of them too', async () => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a', {}, FINALIZERS));
    await registry.delete(CONFIG_MAPS, 'default', 'a');
    await registry.patch(CONFIG_MAPS, 'default', 'a', 'application/merge-patch+json', {
      metadata: { finalizers: null },
    });
    expect(await failure(registry.get(CONFIG_MAPS, 'default', 'a'))).toMatchObject({ code: 404 });
  });

  test('a Pod goes when both its grace period and its finalizers are over', async () => {
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
  test('end when they are finalized', async () => {
    const { registry } = await startRegistry();
    await registry.create(NAMESPACES, undefined, object('Namespace', 'x'));
    const ending = (await registry.delete(NAMESPACES, undefined, 'x')) as Namespace;
    expect(ending.status?.phase).toBe('Terminating');
    expect(ending.metadata.deletionTimestamp).toBeDefined();
    expect(await registry.delete(NAMESPACES, undefined, 'x')).toBe(ending);
    const finalized = { ...ending, spec: { finalizers: [] } } as KubeObject;
    await registry.update(NAMESPACES, finalized, { subresource: 'finalize' });
    expect(await failure(registry.get(NAMESPACES, undefined, 'x'))).toMatchObject({ code: 404 });
  });

  test('of the system stay', async () => {
    const { registry } = await startRegistry();
    expect(await failure(registry.delete(NAMESPACES, undefined, 'default'))).toEqual({
      code: 403,
      reason: 'Forbidden',
      message: 'namespaces "default" is forbidden: this namespace may not be deleted',
    });
  });
});

test('deleteCollection deletes what it selects, and answers it', async () => {
  const { registry } = await startRegistry();
  for (const name of ['a', 'b', 'c']) {
    await registry.create(CONFIG_MAPS, 'default', configMap(name, {}, { labels: { odd: String(name !== 'b') } }));
  }
  const gone = await registry.deleteCollection(CONFIG_MAPS, { namespace: 'default', labelSelector: 'odd=true' });
  expect(gone.items.map((item) => item.metadata.name)).toEqual(['a', 'c']);
  const left = await registry.list(CONFIG_MAPS, { namespace: 'default' });
  expect(left.items.map((item) => item.metadata.name)).toEqual(['b']);
});
