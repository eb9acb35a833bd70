import { describe, expect, test } from 'vitest';
import type { ConfigMap, Pod } from '../../api/generated/types.ts';
import { CONFIG_MAPS, EVENTS, NAMESPACES, PODS, SECRETS } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { forbidden } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { claim } from './claim.ts';
import { executeClaim } from './claiming.ts';
import { controllerReference, controllerUids } from './owner.ts';
import { availableAt, isPodActive, isPodAvailable } from './pod-state.ts';
import { createPod, deletePod, podFromTemplate, slowStart } from './pods-of-owner.ts';

const SECRET_KIND = { apiVersion: 'v1', kind: 'Secret', resource: SECRETS };
const owner = (metadata: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'o', namespace: 'a', uid: 'u', ...metadata },
});
const owned = (name: string, metadata: object = {}): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'a', labels: { app: 'x' }, ...metadata },
});
const mine = { ownerReferences: [controllerReference(owner(), SECRET_KIND)] };
const others = { ownerReferences: [controllerReference(owner({ uid: 'other' }), SECRET_KIND)] };
const selector = { matchLabels: { app: 'x' } };
const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z' };

describe('claim()', () => {
  const names = (objects: KubeObject[]) => objects.map(({ metadata }) => metadata.name).join(' ');
  test.each([
    ['keeps an owned object that matches', {}, mine, 'owned'],
    ['keeps an owned object that is being deleted', {}, { ...mine, ...DELETED }, 'owned'],
    ['releases an owned object that no longer matches', {}, { ...mine, labels: {} }, 'release'],
    ['adopts a matching object without a controller', {}, {}, 'adopt'],
    ['ignores a matching object that is being deleted', {}, DELETED, ''],
    ['ignores an object of another controller', {}, others, ''],
    ['ignores an object that does not match', {}, { labels: {} }, ''],
    ['ignores an object of another namespace', {}, { namespace: 'b' }, ''],
    ['adopts nothing while the owner is being deleted', DELETED, {}, ''],
    ['releases nothing while the owner is being deleted', DELETED, { ...mine, labels: {} }, ''],
    ['keeps owned objects while the owner is being deleted', DELETED, mine, 'owned'],
  ])('%s', (_, ownerMetadata, metadata, expected) => {
    const result = claim(owner(ownerMetadata), selector, [owned('c', metadata)]);
    const found = Object.entries(result).flatMap(([what, objects]) => (names(objects) === 'c' ? [what] : []));
    expect(found.join(' ')).toBe(expected);
  });

  test('an empty selector adopts nothing', () => {
    expect(claim(owner(), {}, [owned('c')]).adopt).toEqual([]);
  });
});

async function setUp() {
  const backend = await registryBackend();
  const client = clientOf(backend);
  const timers = createVirtualTimers();
  const events = createEventRecorder(client, { component: 'test', timers, log: silentLog });
  const stored = await backend.set(SECRETS, { ...owner({ uid: undefined }) });
  const messages = async () => {
    await events.flushed();
    return backend.objects(EVENTS).map((event) => {
      const { reason, message } = event as KubeObject & { reason: string; message: string };
      return `${reason}: ${message}`;
    });
  };
  const fresh = () => client.resource(SECRETS).get('o', 'a');
  return { backend, client, owner: stored, fresh, messages, writer: { client, events, now: timers.now } };
}

describe('executeClaim()', () => {
  test('patches the references, and the index finds the objects by their controller', async () => {
    const { backend, client, owner, fresh } = await setUp();
    const free = await backend.set(CONFIG_MAPS, owned('free'));
    const left = await backend.set(
      CONFIG_MAPS,
      owned('left', { labels: {}, ownerReferences: [controllerReference(owner, SECRET_KIND)] }),
    );
    const claimant = { owner, kind: SECRET_KIND, fresh };
    const result = await executeClaim(client.resource(CONFIG_MAPS), claimant, {
      owned: [],
      adopt: [free],
      release: [left],
    });
    expect(result.map(({ metadata }) => metadata.name)).toEqual(['free']);
    expect(
      backend
        .objects(CONFIG_MAPS)
        .filter(({ metadata }) => metadata.namespace === 'a')
        .map(controllerUids),
    ).toEqual([[owner.metadata.uid], ['orphan/a']]);
  });

  test('does not adopt for an owner that has been deleted or replaced', async () => {
    const { backend, client, owner, fresh } = await setUp();
    const adopt = [await backend.set(CONFIG_MAPS, owned('free'))];
    await backend.remove(SECRETS, 'a', 'o');
    const none = { owned: [], adopt, release: [] };
    const claimant = { owner, kind: SECRET_KIND, fresh };
    await expect(executeClaim(client.resource(CONFIG_MAPS), claimant, none)).rejects.toMatchObject({ code: 404 });
    await backend.set(SECRETS, { ...owner, metadata: { name: 'o', namespace: 'a' } });
    await expect(executeClaim(client.resource(CONFIG_MAPS), claimant, none)).rejects.toThrow('is gone: got uid');
  });

  test('skips an object that another controller adopted first', async () => {
    const { backend, client, owner, fresh } = await setUp();
    const free = await backend.set(CONFIG_MAPS, owned('free'));
    await backend.set(CONFIG_MAPS, { ...free, metadata: { ...free.metadata, ...others } });
    const claimant = { owner, kind: SECRET_KIND, fresh };
    const none = { owned: [], adopt: [free], release: [] };
    expect(await executeClaim(client.resource(CONFIG_MAPS), claimant, none)).toEqual([]);
  });
});

describe('Pods of an owner', () => {
  const template = {
    metadata: { name: '', labels: { app: 'x' }, annotations: { b: 'c' } },
    spec: { containers: [{ name: 'app', image: 'i' }] },
  };

  test('have no empty annotations', () => {
    const { metadata } = podFromTemplate({ metadata: { name: '', annotations: {} } }, owner(), SECRET_KIND);
    expect(metadata).not.toHaveProperty('annotations');
  });

  test('are created with a generated name and deleted, each with an Event', async () => {
    const { backend, writer, owner, messages } = await setUp();
    const pod = await createPod(writer, owner, podFromTemplate(template, owner, SECRET_KIND));
    expect(pod.metadata).toMatchObject({ name: expect.stringMatching(/^o-.{5}$/), labels: { app: 'x' } });
    await deletePod(writer, owner, pod, 'ScaledDown');
    await deletePod(writer, owner, pod, 'ScaledDown');
    expect(backend.objects(PODS)).toEqual([]);
    expect(backend.calls).not.toContainEqual(expect.stringContaining('pods/status'));
    const { name } = pod.metadata;
    expect(await messages()).toEqual([
      `SuccessfulCreate: Created pod: ${name}`,
      `SuccessfulDelete: Deleted pod: ${name}`,
    ]);
  });

  test('get the reason of their deletion before it if they have defer containers', async () => {
    const { backend, writer, owner } = await setUp();
    const spec = { ...template.spec, deferContainers: [{ name: 'last', image: 'i' }], nodeName: 'n' };
    const pod = await createPod(writer, owner, podFromTemplate({ ...template, spec }, owner, SECRET_KIND));
    await deletePod(writer, owner, pod, 'Replaced');
    const [terminating] = backend.objects(PODS) as Pod[];
    expect(terminating?.metadata.deletionTimestamp).toBeDefined();
    expect(terminating?.status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'DeletionReason', status: 'True', reason: 'Replaced' }),
    );
  });

  test('that the API rejects are reported, except in a namespace that is being deleted', async () => {
    const { backend, writer, owner, messages } = await setUp();
    const pod = podFromTemplate(template, owner, SECRET_KIND);
    backend.failNext('create pods', forbidden({ group: '', resource: 'pods' }, 'o-', 'no room'));
    await expect(createPod(writer, owner, pod)).rejects.toThrow('no room');
    const namespace = await backend.set(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } });
    await backend.remove(NAMESPACES, undefined, namespace.metadata.name);
    await expect(createPod(writer, owner, pod)).rejects.toThrow('being terminated');
    expect(await messages()).toEqual(['FailedCreate: Error creating: pods "o-" is forbidden: no room']);
  });
});

test('slowStart() doubles the batches and ends after the first batch with a failure', async () => {
  const begun: number[] = [];
  const act = async (index: number) => {
    begun.push(index);
    if (index === 4) throw new Error('no');
  };
  expect(await slowStart(20, act)).toEqual({ succeeded: 6, error: new Error('no') });
  expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(await slowStart(3, async () => undefined)).toEqual({ succeeded: 3 });
});

test('a Pod is available once it has been ready for minReadySeconds, and active until it ends or is deleted', () => {
  const pod = (ready: string, rest: object = {}): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    status: { conditions: [{ type: 'Ready', status: ready, lastTransitionTime: '2026-01-01T00:00:00Z' }] },
    ...rest,
  });
  const since = Date.parse('2026-01-01T00:00:00Z');
  expect(isPodAvailable(pod('False'), 0, since)).toBe(false);
  expect(isPodAvailable(pod('True'), 0, since)).toBe(true);
  expect(availableAt(pod('True'), 10)).toBe(since + 10_000);
  expect(isPodAvailable(pod('True'), 10, since + 9_999)).toBe(false);
  expect(isPodActive(pod('True'))).toBe(true);
  expect(isPodActive(pod('True', { status: { phase: 'Failed' } }))).toBe(false);
  expect(isPodActive(pod('True', { metadata: { name: 'p', ...DELETED } }))).toBe(false);
});
