import { expect, test } from 'vitest';
import { SERVICE_ACCOUNTS } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { ResourceApi } from '../../ports/backend.ts';
import { bootstrap } from './bootstrap.ts';
import {
  CONFIG_MAPS,
  configMap,
  failure,
  NAMESPACES,
  object,
  PODS,
  SERVICE_CIDR,
  SERVICES,
  startRegistry,
} from './testing.ts';

const MEBIBYTE = 2 ** 20;
const text = 'x'.repeat(100_000);
const FULL =
  /^the objects take .* of memory, this object needs .* more, and the limit is 1\.9 MiB: delete objects that are not needed$/;

/** Starts a registry with room for a few ConfigMaps, and fills the room. `last`: the name of the last ConfigMap that was stored. */
async function fullRegistry() {
  const started = await startRegistry({ roomBytes: 2 * MEBIBYTE });
  const { client } = started;
  const create = (name: string) => client.create(CONFIG_MAPS, 'default', configMap(name, { text }));
  let count = 0;
  const full = (async () => {
    for (;;) await create(`c${count++}`);
  })();
  expect(await failure(full)).toEqual({
    code: 507,
    reason: 'InsufficientStorage',
    message: expect.stringMatching(FULL),
  });
  return { ...started, create, last: `c${count - 2}` };
}

test('a client cannot create objects when the room is used up, and can create objects again after a delete', async () => {
  const { client, create, last } = await fullRegistry();
  await client.delete(CONFIG_MAPS, 'default', last);
  await create('again');
  expect(await failure(create('more'))).toMatchObject({ code: 507 });
});

test('when the room is used up, update, patch and apply cannot make an object grow, but a patch can make it shrink', async () => {
  const { client, last } = await fullRegistry();
  const grown = { data: { text: text.repeat(4) } };
  const patch = (body: object) => client.patch(CONFIG_MAPS, 'default', last, 'application/merge-patch+json', body);
  expect(await failure(patch(grown))).toMatchObject({ code: 507 });
  const applied = { ...configMap(last, {}, { namespace: 'default' }), ...grown } as KubeObject;
  expect(await failure(client.update(CONFIG_MAPS, applied))).toMatchObject({ code: 507 });
  const apply = client.patch(CONFIG_MAPS, 'default', last, 'application/apply-patch+yaml', applied, {
    fieldManager: 'test',
    force: true,
  });
  expect(await failure(apply)).toMatchObject({ code: 507 });
  await patch({ data: { text: 'small' } });
});

test('an object with many small values counts with its size in memory', async () => {
  const { client } = await startRegistry({ roomBytes: 2 * MEBIBYTE });
  const secrets = Array.from({ length: 40_000 }, () => ({}));
  const account = { ...object('ServiceAccount', 'large'), secrets } as KubeObject;
  const create = client.create(SERVICE_ACCOUNTS, 'default', account);
  expect(await failure(create)).toMatchObject({ code: 507 });
});

test('when the room is used up, components of lifepod can still write objects, and clients can still delete objects', async () => {
  const { client, registry } = await fullRegistry();
  const pod = { ...object('Pod', 'web'), spec: { containers: [{ name: 'app', image: 'i' }], nodeName: 'node-1' } };
  await registry.create(PODS, 'default', pod as KubeObject);
  const message = 'm'.repeat(200_000);
  await registry.patch(
    PODS,
    'default',
    'web',
    'application/merge-patch+json',
    { status: { message } },
    { subresource: 'status' },
  );
  const deleted = (await client.delete(PODS, 'default', 'web')) as KubeObject;
  expect(deleted.metadata.deletionTimestamp).toBeDefined();
  await client.delete(SERVICES, 'default', 'kubernetes');
  await bootstrap(registry, { serviceCidr: SERVICE_CIDR, apiServerPort: 6443 });
  await registry.get(SERVICES, 'default', 'kubernetes');
  await registry.create(NAMESPACES, undefined, object('Namespace', 'going'));
  await client.delete(NAMESPACES, undefined, 'going');
});

/** Resolves to the number of updates that succeeded before the reserve for small updates was used up. */
async function fillReserve(client: ResourceApi, name: string): Promise<number> {
  for (let updates = 0; ; updates++) {
    const data = { [`k${updates}`]: 'x'.repeat(4000) };
    const patch = client.patch(CONFIG_MAPS, 'default', name, 'application/merge-patch+json', { data });
    const refused = await patch.then(
      () => undefined,
      (error: { code: number }) => error.code,
    );
    if (refused === undefined) continue;
    expect(refused).toBe(507);
    return updates;
  }
}

test('when the room is used up, small updates use a reserve; deletes, evictions and giving up defer containers need no room', async () => {
  const { client, registry, last } = await fullRegistry();
  const deferContainers = [{ name: 'last', image: 'i', timeoutSeconds: 5 }];
  const bound = { containers: [{ name: 'app', image: 'i' }], nodeName: 'node-1', deferContainers };
  for (const name of ['evicted', 'ending', 'kept']) {
    const finalizers = name === 'kept' ? ['example.com/keep'] : [];
    await registry.create(PODS, 'default', object('Pod', name, { spec: bound }, { finalizers }));
  }
  const status = (name: string, body: object) =>
    client.patch(PODS, 'default', name, 'application/merge-patch+json', { status: body }, { subresource: 'status' });
  await status('evicted', { phase: 'Running', message: 'm'.repeat(1000) });
  expect(await fillReserve(client, last)).toBeGreaterThan(5);

  const eviction = { ...object('Eviction', 'evicted'), apiVersion: 'policy/v1' };
  await client.create(PODS, 'default', eviction, { name: 'evicted', subresource: 'eviction' });
  expect((await registry.get(PODS, 'default', 'evicted')).metadata.deletionTimestamp).toBeDefined();
  await client.delete(PODS, 'default', 'ending');
  const termination = {
    reason: 'Deleted',
    startedAt: '2026-01-01T00:00:00.000000Z',
    deadline: '2026-01-01T00:00:30.000000Z',
  };
  const ending = { status: { phase: 'Terminating', termination } };
  await registry.patch(PODS, 'default', 'ending', 'application/merge-patch+json', ending, { subresource: 'status' });
  const skip = {
    ...object('DeferControl', 'ending', { skip: 'last' }, { namespace: 'default' }),
    apiVersion: 'lifepod.io/v1',
  };
  await client.update(PODS, skip as KubeObject, { subresource: 'defer' });
  await client.delete(PODS, 'default', 'kept', { gracePeriodSeconds: 0 });
  const free = { metadata: { finalizers: null } };
  await client.patch(PODS, 'default', 'kept', 'application/merge-patch+json', free);
  expect(await failure(registry.get(PODS, 'default', 'kept'))).toMatchObject({ code: 404 });
  await client.delete(CONFIG_MAPS, 'default', last);
  await status('ending', { message: 'it has room again' });
});

test('a registry counts the memory of the stored objects when it starts', async () => {
  const { store } = await fullRegistry();
  const { client } = await startRegistry({ store, roomBytes: 2 * MEBIBYTE });
  const create = client.create(CONFIG_MAPS, 'default', configMap('more', { text }));
  expect(await failure(create)).toMatchObject({ code: 507 });
});

test('concurrent writes together do not exceed the room for objects', async () => {
  const { client } = await startRegistry({ roomBytes: 2 * MEBIBYTE });
  const creates = Array.from({ length: 50 }, (_, i) =>
    client.create(CONFIG_MAPS, 'default', configMap(`c${i}`, { text })),
  );
  const outcomes = await Promise.allSettled(creates);
  const written = outcomes.filter(({ status }) => status === 'fulfilled').length;
  expect(written).toBeGreaterThan(5);
  expect(written).toBeLessThan(11);
});

test('a client cannot make an object and its managedFields grow beyond 300,000 values; components of lifepod can', async () => {
  const { client, registry } = await startRegistry();
  const large = configMap(
    'large',
    Object.fromEntries(Array.from({ length: 151_000 }, (_, index) => [`k${index}`, ''])),
  );
  const apply = (by: ResourceApi) =>
    by.patch(CONFIG_MAPS, 'default', 'large', 'application/apply-patch+yaml', large, { fieldManager: 'me' });
  expect(await failure(apply(client))).toMatchObject({
    code: 413,
    message: expect.stringContaining('more than 300000 values, including those of its managedFields'),
  });
  await apply(registry);
  // The object may shrink even if it still has too many values afterwards.
  const fewer = { data: { k0: null } };
  await client.patch(CONFIG_MAPS, 'default', 'large', 'application/merge-patch+json', fewer);
});
