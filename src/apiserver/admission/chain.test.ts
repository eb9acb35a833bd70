import { beforeEach, expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { forbidden } from '../../machinery/status.ts';
import type { RequestContext } from '../../ports/request.ts';
import {
  asClient,
  CONFIG_MAPS,
  configMap,
  failure,
  NAMESPACES,
  object,
  PODS,
  pod,
  type Started,
  startRegistry,
  TEST_USER,
} from '../registry/testing.ts';
import type { AdmissionPlugin, AdmissionRequest } from './plugin.ts';
import { admissionPlugins } from './plugins.ts';

const dataOf = (of: KubeObject | undefined): unknown => (of as { data?: unknown } | undefined)?.data;
const inDefault = { namespace: 'default' };

let seen: string[];
let started: Started;
let plugin: Partial<AdmissionPlugin>;

const shown = ({ operation, groupResource, subresource, name, old, object: now, dryRun }: AdmissionRequest): string =>
  [
    `${operation} ${groupResource.resource}${subresource === '' ? '' : `/${subresource}`} ${name}:`,
    JSON.stringify(dataOf(old) ?? null),
    '->',
    JSON.stringify(dataOf(now) ?? null),
    ...(dryRun ? ['(dry run)'] : []),
  ].join(' ');

beforeEach(async () => {
  seen = [];
  plugin = {};
  const recorder: AdmissionPlugin = {
    name: 'Recorder',
    handles: ({ kind }) => kind.kind === 'ConfigMap' || kind.kind === 'Pod',
    admit: (request) => plugin.admit?.(request),
    validate: (request) => {
      seen.push(shown(request));
      return plugin.validate?.(request);
    },
  };
  started = await startRegistry({ admission: [...admissionPlugins, () => recorder] });
});

test('plugins see creates, updates and all patches with the old and the new object', async () => {
  const { registry } = started;
  await registry.create(CONFIG_MAPS, 'default', configMap('a', { k: '1' }));
  await registry.update(CONFIG_MAPS, configMap('a', { k: '2' }, inDefault));
  const patch = (type: Parameters<typeof registry.patch>[3], body: unknown, force = false) =>
    registry.patch(CONFIG_MAPS, 'default', 'a', type, body, { fieldManager: 'm', force });
  await patch('application/merge-patch+json', { data: { k: '3' } });
  await patch('application/strategic-merge-patch+json', { data: { k: '4' } });
  await patch('application/json-patch+json', [{ op: 'replace', path: '/data/k', value: '5' }]);
  await patch('application/apply-patch+yaml', configMap('a', { k: '6' }), true);
  await registry.delete(CONFIG_MAPS, 'default', 'a');
  expect(seen).toEqual([
    'CREATE configmaps a: null -> {"k":"1"}',
    'UPDATE configmaps a: {"k":"1"} -> {"k":"2"}',
    'UPDATE configmaps a: {"k":"2"} -> {"k":"3"}',
    'UPDATE configmaps a: {"k":"3"} -> {"k":"4"}',
    'UPDATE configmaps a: {"k":"4"} -> {"k":"5"}',
    'UPDATE configmaps a: {"k":"5"} -> {"k":"6"}',
    'DELETE configmaps a: {"k":"6"} -> null',
  ]);
});

test('plugins see a server-side apply that creates an object as a create', async () => {
  const type = 'application/apply-patch+yaml';
  await started.registry.patch(CONFIG_MAPS, 'default', 'a', type, configMap('a', { k: '1' }), { fieldManager: 'm' });
  expect(seen).toEqual(['CREATE configmaps a: null -> {"k":"1"}']);
});

test('plugins see each object that deletecollection deletes, and dry runs as such', async () => {
  const { registry } = started;
  await registry.create(CONFIG_MAPS, 'default', configMap('a'), { dryRun: true });
  for (const name of ['a', 'b']) await registry.create(CONFIG_MAPS, 'default', configMap(name));
  seen = [];
  await registry.update(CONFIG_MAPS, configMap('a', { k: '2' }, inDefault), { dryRun: true });
  await registry.delete(CONFIG_MAPS, 'default', 'a', { dryRun: true });
  await registry.deleteCollection(CONFIG_MAPS, inDefault);
  expect(seen).toEqual([
    'UPDATE configmaps a: {} -> {"k":"2"} (dry run)',
    'DELETE configmaps a: {} -> null (dry run)',
    'DELETE configmaps a: {} -> null',
    'DELETE configmaps b: {} -> null',
  ]);
});

test('plugins see writes to subresources: the status, a Binding, and an Eviction without the delete that it causes', async () => {
  const { registry } = started;
  await registry.create(PODS, 'default', pod('p'));
  const binding = object('Binding', 'p', { target: { name: 'n1' } });
  await registry.create(PODS, 'default', binding, { name: 'p', subresource: 'binding' });
  const status = { status: { phase: 'Running' } };
  await registry.patch(PODS, 'default', 'p', 'application/merge-patch+json', status, { subresource: 'status' });
  const eviction = { ...object('Eviction', 'p'), apiVersion: 'policy/v1' };
  await registry.create(PODS, 'default', eviction, { name: 'p', subresource: 'eviction' });
  expect(seen).toEqual([
    'CREATE pods p: null -> null',
    'CREATE pods/binding p: null -> null',
    'UPDATE pods/status p: null -> null',
    'CREATE pods/eviction p: null -> null',
  ]);
});

test('a plugin changes the object before it is validated, adds audit annotations, and knows the user', async () => {
  const annotations: string[] = [];
  plugin.admit = ({ object: created, context }) => {
    context.audit.set('test/seen-by', context.user.name);
    annotations.push(...context.audit.values());
    (created as KubeObject & { data?: object }).data = { k: 'from the plugin' };
  };
  const client = asClient(started.backend, { name: 'jane', groups: [] });
  expect(dataOf(await client.create(CONFIG_MAPS, 'default', configMap('a')))).toEqual({ k: 'from the plugin' });
  expect(annotations).toEqual(['jane']);
  expect(seen).toEqual(['CREATE configmaps a: null -> {"k":"from the plugin"}']);
});

test('a plugin that rejects a write leaves the object unchanged', async () => {
  const { registry } = started;
  await registry.create(CONFIG_MAPS, 'default', configMap('a', { k: '1' }));
  plugin.validate = ({ groupResource, name }) => {
    throw forbidden(groupResource, name, 'no');
  };
  const rejected = { code: 403, message: 'configmaps "a" is forbidden: no' };
  expect(await failure(registry.update(CONFIG_MAPS, configMap('a', { k: '2' }, inDefault)))).toMatchObject(rejected);
  expect(await failure(registry.delete(CONFIG_MAPS, 'default', 'a'))).toMatchObject(rejected);
  expect(dataOf(await registry.get(CONFIG_MAPS, 'default', 'a'))).toEqual({ k: '1' });
});

test('a plugin that waits holds up only its own request', async () => {
  const { registry } = started;
  for (const name of ['a', 'b']) await registry.create(CONFIG_MAPS, 'default', configMap(name, { k: '1' }));
  const waits = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const wait = ({ name }: AdmissionRequest): Promise<void> | undefined => {
    if (name !== 'a') return undefined;
    reached.resolve();
    return waits.promise;
  };
  plugin.validate = wait;
  const held = registry.update(CONFIG_MAPS, configMap('a', { k: '2' }, inDefault));
  await reached.promise;
  // Writes of large objects need the slot of longWork(), which the waiting request must not occupy.
  const large = 'x'.repeat(900_000);
  await registry.update(CONFIG_MAPS, configMap('b', { k: large }, inDefault));
  await registry.create(CONFIG_MAPS, 'default', configMap('c', { k: large }));
  await registry.create(NAMESPACES, undefined, object('Namespace', 'other'));
  waits.resolve();
  expect(dataOf(await held)).toEqual({ k: '2' });
});

test('an update is admitted again from the newest state after a conflict with another writer', async () => {
  const { registry } = started;
  await registry.create(CONFIG_MAPS, 'default', configMap('a', { k: '1' }));
  seen = [];
  let others = 1;
  plugin.validate = async () => {
    if (others-- <= 0) return;
    await registry.patch(CONFIG_MAPS, 'default', 'a', 'application/merge-patch+json', { data: { other: 'x' } });
  };
  await registry.patch(CONFIG_MAPS, 'default', 'a', 'application/merge-patch+json', { data: { k: '2' } });
  expect(seen).toEqual([
    'UPDATE configmaps a: {"k":"1"} -> {"k":"2"}',
    'UPDATE configmaps a: {"k":"1"} -> {"k":"1","other":"x"}',
    'UPDATE configmaps a: {"k":"1","other":"x"} -> {"k":"2","other":"x"}',
  ]);
});

test('a write whose client has disconnected while a plugin waited stores nothing', async () => {
  const gone = new AbortController();
  plugin.admit = async () => gone.abort();
  const request: RequestContext = {
    user: TEST_USER,
    source: 'client',
    verb: 'create',
    resource: CONFIG_MAPS,
    namespace: 'default',
    signal: gone.signal,
    audit: new Map(),
  };
  await expect(started.backend.create(request, configMap('a'))).rejects.toThrow('aborted');
  expect(await failure(started.registry.get(CONFIG_MAPS, 'default', 'a'))).toMatchObject({ code: 404 });
});

test('a plugin can change an object that a write to a subresource changes, but not its system fields', async () => {
  const { registry } = started;
  const { metadata } = await registry.create(PODS, 'default', pod('p'));
  plugin.admit = ({ object: changed, subresource }) => {
    if (subresource !== 'status') return;
    const { spec, metadata: own } = changed as Pod;
    (spec?.containers[0] as { image: string }).image = 'other';
    own.labels = { from: 'plugin' };
    own.uid = 'other';
  };
  const status = { status: { phase: 'Running' } };
  await registry.patch(PODS, 'default', 'p', 'application/merge-patch+json', status, { subresource: 'status' });
  const stored = (await registry.get(PODS, 'default', 'p')) as Pod;
  expect(stored.metadata).toMatchObject({ labels: { from: 'plugin' }, uid: metadata.uid });
  expect(stored.spec?.containers[0]?.image).toBe('other');
});

test('nothing is stored if a plugin renames a new object, which is a defect of the plugin', async () => {
  plugin.admit = ({ object: created }) => {
    (created as KubeObject).metadata.namespace = 'kube-system';
  };
  await expect(started.registry.create(CONFIG_MAPS, 'default', configMap('a'))).rejects.toThrow('must not change');
});
