/** What all objects take of the memory is bounded for clients; lifepod itself writes on. */
import { expect, test } from 'vitest';
import type { UserInfo } from '../../machinery/backend.ts';
import type { KubeObject } from '../../machinery/meta.ts';
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
const user: UserInfo = { name: 'admin', groups: ['system:masters'] };
const text = 'x'.repeat(100_000);
const FULL =
  /^the objects take .* of memory, this one .* more, and the limit is 2\.0 MiB: delete objects that are not needed$/;

/** A registry in which a ConfigMap more has no room. */
async function fullRegistry() {
  const started = await startRegistry({ roomBytes: 2 * MEBIBYTE });
  const { registry } = started;
  const create = (name: string) => registry.create(CONFIG_MAPS, 'default', configMap(name, { text }), { user });
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

test('a client creates nothing more, and does again once there is room', async () => {
  const { registry, create, last } = await fullRegistry();
  await registry.delete(CONFIG_MAPS, 'default', last, { user });
  await create('again');
  expect(await failure(create('more'))).toMatchObject({ code: 507 });
});

test('an object may shrink, and may not grow beyond the room, by whatever verb', async () => {
  const { registry, last } = await fullRegistry();
  const grown = { data: { text: text.repeat(4) } };
  const patch = (body: object) =>
    registry.patch(CONFIG_MAPS, 'default', last, 'application/merge-patch+json', body, { user });
  expect(await failure(patch(grown))).toMatchObject({ code: 507 });
  const applied = { ...configMap(last, {}, { namespace: 'default' }), ...grown } as KubeObject;
  expect(await failure(registry.update(CONFIG_MAPS, applied, { user }))).toMatchObject({ code: 507 });
  const apply = registry.patch(CONFIG_MAPS, 'default', last, 'application/apply-patch+yaml', applied, {
    ...{ user, fieldManager: 'test', force: true },
  });
  expect(await failure(apply)).toMatchObject({ code: 507 });
  await patch({ data: { text: 'small' } });
});

test('many small values count for what they take in memory', async () => {
  const { registry } = await startRegistry({ roomBytes: 2 * MEBIBYTE });
  const secrets = Array.from({ length: 40_000 }, () => ({}));
  const account = { ...object('ServiceAccount', 'large'), secrets } as KubeObject;
  const create = registry.create({ group: '', version: 'v1', resource: 'serviceaccounts' }, 'default', account, {
    user,
  });
  expect(await failure(create)).toMatchObject({ code: 507 });
});

test('parts of lifepod write where there is no room: statuses, deletions, and what an engine starts with', async () => {
  const { registry } = await fullRegistry();
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
  // A graceful delete marks the Pod.
  const deleted = (await registry.delete(PODS, 'default', 'web', { user })) as KubeObject;
  expect(deleted.metadata.deletionTimestamp).toBeDefined();
  await registry.delete(SERVICES, 'default', 'kubernetes', { user });
  await bootstrap(registry, { serviceCidr: SERVICE_CIDR, apiServerPort: 6443 });
  await registry.get(SERVICES, 'default', 'kubernetes');
  await registry.create(NAMESPACES, undefined, object('Namespace', 'going'));
  await registry.delete(NAMESPACES, undefined, 'going', { user });
});

test('a registry that starts counts what is stored', async () => {
  const { store } = await fullRegistry();
  const { registry } = await startRegistry({ store, roomBytes: 2 * MEBIBYTE });
  const create = registry.create(CONFIG_MAPS, 'default', configMap('more', { text }), { user });
  expect(await failure(create)).toMatchObject({ code: 507 });
});

test('of those that come at once no more are written than there is room for', async () => {
  const { registry } = await startRegistry({ roomBytes: 2 * MEBIBYTE });
  const creates = Array.from({ length: 50 }, (_, i) =>
    registry.create(CONFIG_MAPS, 'default', configMap(`c${i}`, { text }), { user }),
  );
  const outcomes = await Promise.allSettled(creates);
  const written = outcomes.filter(({ status }) => status === 'fulfilled').length;
  expect(written).toBeGreaterThan(5);
  expect(written).toBeLessThan(11);
});
