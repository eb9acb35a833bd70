import { describe, expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { ResourceApi } from '../../ports/backend.ts';
import { CONFIG_MAPS, configMap, failure, object, PODS, pod, ref, type Started, startRegistry } from './testing.ts';

type Options = Parameters<ResourceApi['patch']>[5];

const apply = ({ registry }: Started, by: string, body: object, options: Options = {}): Promise<KubeObject> => {
  const { kind, metadata } = body as KubeObject;
  const target = kind === 'Pod' ? PODS : CONFIG_MAPS;
  const type = 'application/apply-patch+yaml';
  return registry.patch(target, 'default', metadata.name, type, body, { fieldManager: by, ...options });
};
const owners = ({ metadata }: KubeObject): [string | undefined, string | undefined, unknown][] =>
  (metadata.managedFields ?? []).map(({ manager, operation, fieldsV1 }) => [manager, operation, fieldsV1]);
const dataOf = (of: KubeObject): unknown => (of as { data?: unknown }).data;

const entries = [
  { name: 'flush', image: 'busybox:1.28' },
  { name: 'upload', image: 'busybox:1.28', trigger: 'PostExit' },
];
const applied = (deferContainers: object[]): Pod =>
  pod('a', { containers: [{ name: 'app', image: 'busybox:1.28' }], deferContainers });

describe('server-side apply', () => {
  test('server-side apply creates a missing object, whose defaults have no owner', async () => {
    const started = await startRegistry();
    let creations = 0;
    const created = (await apply(started, 'me', applied(entries), { onCreated: () => creations++ })) as Pod;
    expect(creations).toBe(1);
    expect(created.spec?.deferContainers).toMatchObject([{ trigger: 'PreExit' }, { trigger: 'PostExit' }]);
    const entry = { '.': {}, 'f:image': {}, 'f:name': {} };
    expect(owners(created)).toEqual([
      [
        'me',
        'Apply',
        {
          'f:spec': {
            'f:containers': { 'k:{"name":"app"}': entry },
            'f:deferContainers': {
              'k:{"name":"flush"}': entry,
              'k:{"name":"upload"}': { ...entry, 'f:trigger': {} },
            },
          },
        },
      ],
    ]);
    const again = await apply(started, 'me', applied(entries), { onCreated: () => creations++ });
    expect([creations, again.metadata.resourceVersion]).toEqual([1, created.metadata.resourceVersion]);
  });

  test('server-side apply changes one list entry, identified by its name', async () => {
    const started = await startRegistry();
    await apply(started, 'me', applied(entries));
    const body = object('Pod', 'a', { spec: { deferContainers: [{ name: 'upload', image: 'busybox:1.29' }] } });
    const updated = (await apply(started, 'you', body, { force: true })) as Pod;
    expect(updated.spec?.deferContainers?.map(({ image }) => image)).toEqual(['busybox:1.28', 'busybox:1.29']);
    expect(updated.metadata.generation).toBe(2);
  });

  test('server-side apply rejects a field of another owner with a conflict unless forced', async () => {
    const started = await startRegistry();
    await apply(started, 'me', configMap('a', { x: '1' }));
    expect(await failure(apply(started, 'you', configMap('a', { x: '2' })))).toEqual({
      code: 409,
      reason: 'Conflict',
      message: 'Apply failed with 1 conflict: conflict with "me": .data.x',
    });
    expect(dataOf(await apply(started, 'you', configMap('a', { x: '2' }), { force: true }))).toEqual({ x: '2' });
  });

  test('server-side apply removes fields that the manager no longer applies', async () => {
    const started = await startRegistry();
    await apply(started, 'me', configMap('a', { x: '1', y: '2' }));
    await apply(started, 'you', configMap('a', { z: '3' }));
    expect(dataOf(await apply(started, 'me', configMap('a', { x: '1' })))).toEqual({ x: '1', z: '3' });
  });

  test('server-side apply validates the result like an update', async () => {
    const started = await startRegistry();
    await apply(started, 'me', applied(entries));
    expect(await failure(apply(started, 'me', applied(entries.slice(0, 1))))).toMatchObject({
      code: 422,
      message: 'Pod "a" is invalid: spec.deferContainers: Forbidden: pod updates may not add or remove containers',
    });
    const changed = applied([{ ...entries[0], command: ['x'] }, entries[1] as object]);
    expect(await failure(apply(started, 'me', changed))).toMatchObject({
      code: 422,
      message: expect.stringContaining('spec.deferContainers[0].command: unset -> ["x"]'),
    });
  });

  test('server-side apply stores nothing in a dry run', async () => {
    const started = await startRegistry();
    await apply(started, 'me', configMap('a', { x: '1' }), { dryRun: true });
    expect(await failure(started.registry.get(CONFIG_MAPS, 'default', 'a'))).toMatchObject({ code: 404 });
    await apply(started, 'me', configMap('a', { x: '1' }));
    expect(dataOf(await apply(started, 'me', configMap('a', { x: '2' }), { dryRun: true }))).toEqual({ x: '2' });
    expect(dataOf(await started.registry.get(CONFIG_MAPS, 'default', 'a'))).toEqual({ x: '1' });
  });

  test('server-side apply treats differently written but equal quantities as unchanged', async () => {
    const started = await startRegistry();
    const requesting = (cpu: string) =>
      pod('a', { containers: [{ name: 'app', image: 'busybox', resources: { requests: { cpu } } }] });
    const { metadata } = await apply(started, 'me', requesting('500m'));
    const again = await apply(started, 'you', requesting('0.5'));
    expect(owners(again).map(([manager]) => manager)).toEqual(['me', 'you']);
    expect(again.metadata.generation).toBe(metadata.generation);
  });

  test('server-side apply writes only the status on the status subresource', async () => {
    const started = await startRegistry();
    await apply(started, 'me', applied(entries));
    const body = object('Pod', 'a', { status: { message: 'x' }, spec: { hostname: 'h' } });
    const updated = (await apply(started, 'node', body, { subresource: 'status' })) as Pod;
    expect([updated.status?.message, updated.status?.phase, updated.spec?.hostname]).toEqual([
      'x',
      'Pending',
      undefined,
    ]);
    expect(updated.metadata.managedFields?.map(({ manager, subresource }) => [manager, subresource])).toEqual([
      ['me', undefined],
      ['node', 'status'],
    ]);
    const missing = object('Pod', 'none', { status: {} });
    expect(await failure(apply(started, 'node', missing, { subresource: 'status' }))).toMatchObject({ code: 404 });
  });

  test('two concurrent applies of a missing object both succeed', async () => {
    const started = await startRegistry();
    await Promise.all([
      apply(started, 'me', configMap('a', { x: '1' })),
      apply(started, 'you', configMap('a', { y: '2' })),
    ]);
    expect(dataOf(await started.registry.get(CONFIG_MAPS, 'default', 'a'))).toEqual({ x: '1', y: '2' });
  });

  test.each<[string, object, object]>([
    [
      'a body without a kind',
      { apiVersion: 'v1', metadata: { name: 'a' } },
      { code: 400, message: /Object 'Kind' is missing/ },
    ],
    [
      'a body of another apiVersion',
      { ...configMap('a'), apiVersion: 'v2' },
      { code: 400, message: /Specified patch version: v2, expected: v1/ },
    ],
    [
      'a body with managedFields',
      configMap('a', {}, { managedFields: [] }),
      { code: 400, message: /^metadata\.managedFields must be nil$/ },
    ],
    ['a uid without an existing object', configMap('a', {}, { uid: 'u' }), { code: 409, message: /uid mismatch/ }],
    [
      'a field of the wrong type',
      object('ConfigMap', 'a', { data: 'x' }),
      { code: 400, message: /json: cannot unmarshal string into Go struct field/ },
    ],
  ])('server-side apply refuses %s', async (_, body, { code, message }: { code?: number; message?: RegExp }) => {
    const started = await startRegistry();
    const type = 'application/apply-patch+yaml';
    const refusal = await failure(
      started.registry.patch(CONFIG_MAPS, 'default', 'a', type, body, { fieldManager: 'me' }),
    );
    expect(refusal).toMatchObject({ code, message: expect.stringMatching(message ?? /none/) });
  });

  test('server-side apply refuses duplicate list entries', async () => {
    const started = await startRegistry();
    expect(await failure(apply(started, 'me', applied([entries[0] as object, entries[0] as object])))).toMatchObject({
      code: 400,
      message:
        'failed to create typed patch object (default/a; v1, Kind=Pod): .spec.deferContainers: duplicate entries for key [name="flush"]',
    });
  });

  test('server-side apply warns about an unknown field, or refuses it with Strict', async () => {
    const started = await startRegistry();
    const body = object('ConfigMap', 'a', { datum: 'x' });
    const warnings: string[] = [];
    await apply(started, 'me', body, { onWarning: (text) => warnings.push(text) });
    expect(warnings).toEqual(['unknown field "datum"']);
    expect(await failure(apply(started, 'me', body, { fieldValidation: 'Strict' }))).toMatchObject({ code: 400 });
  });
});

describe('the owners of fields', () => {
  test('an object that was never applied server-side has no managedFields', async () => {
    const { registry } = await startRegistry();
    const created = await registry.create(CONFIG_MAPS, 'default', configMap('a', { x: '1' }), { fieldManager: 'm' });
    expect(created.metadata).not.toHaveProperty('managedFields');
    const patch = { data: { x: '2' } };
    const type = 'application/merge-patch+json';
    const patched = await registry.patch(CONFIG_MAPS, 'default', 'a', type, patch, { fieldManager: 'm' });
    expect(patched.metadata).not.toHaveProperty('managedFields');
  });

  test('the first apply conflicts if it changes a field that the object already had', async () => {
    const started = await startRegistry();
    await started.registry.create(CONFIG_MAPS, 'default', configMap('a', { x: '1' }));
    expect((await failure(apply(started, 'me', configMap('a', { x: '2' })))).message).toBe(
      'Apply failed with 1 conflict: conflict with "before-first-apply" using v1 at 2026-01-01T00:00:00Z: .data.x',
    );
    expect(dataOf(await apply(started, 'me', configMap('a', { y: '2' })))).toEqual({ x: '1', y: '2' });
  });

  test('defaults of the configuration of client-side apply have its owner, so that a list element can be removed', async () => {
    const started = await startRegistry();
    const containers = ['a', 'b'].map((name) => ({ name, image: 'x' }));
    const config = object('Pod', 'a', { spec: { containers } });
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(config) };
    const { metadata, ...rest } = config;
    const given = { ...rest, metadata: { ...metadata, annotations } } as KubeObject;
    await started.registry.create(PODS, 'default', given);
    const first = owners(await apply(started, 'kubectl', config));
    const [, , fields] = first.find(([manager]) => manager === 'kubectl-client-side-apply') ?? [];
    expect(fields).toMatchObject({
      'f:spec': { 'f:containers': { 'k:{"name":"b"}': { '.': {}, 'f:name': {}, 'f:imagePullPolicy': {} } } },
    });
    const [, , others] = first.find(([manager]) => manager === 'before-first-apply') ?? [];
    expect(JSON.stringify(others ?? {})).not.toContain('imagePullPolicy');
  });

  test('after an apply, the managers of updates, patches, status writes and bindings are tracked', async () => {
    const started = await startRegistry();
    const { registry } = started;
    await apply(started, 'me', applied(entries));
    const bindings = ref('bindings');
    const binding = object('Binding', 'a', { target: { kind: 'Node', name: 'n1' } });
    await registry.create(bindings, 'default', binding, { fieldManager: 'scheduler' });
    const merge = 'application/merge-patch+json';
    const status = { status: { phase: 'Running' } };
    await registry.patch(PODS, 'default', 'a', merge, status, { fieldManager: 'node', subresource: 'status' });
    const labels = { metadata: { labels: { a: 'b' } } };
    const labeled = await registry.patch(PODS, 'default', 'a', merge, labels, { fieldManager: 'kubectl-label' });
    expect(
      Object.fromEntries(owners(labeled).map(([manager, operation, set]) => [`${manager} ${operation}`, set])),
    ).toMatchObject({
      'kubectl-label Update': { 'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } } },
      'node Update': { 'f:status': { 'f:phase': {} } },
      'scheduler Update': { 'f:spec': { 'f:nodeName': {} } },
    });
    const { metadata, ...rest } = structuredClone(labeled);
    const { managedFields, ...known } = metadata;
    expect(managedFields).toBeDefined();
    const replaced = await registry.update(PODS, { ...rest, metadata: known } as KubeObject, { fieldManager: 'x' });
    expect(replaced.metadata.managedFields).toEqual(managedFields);
  });

  test('a client can replace or delete the managedFields of an object', async () => {
    const started = await startRegistry();
    const { registry } = started;
    const created = await apply(started, 'me', configMap('a', { x: '1' }));
    const mine = created.metadata.managedFields?.map((entry) => ({ ...entry, manager: 'you' })) ?? [];
    const write = (managedFields: unknown) =>
      registry.patch(CONFIG_MAPS, 'default', 'a', 'application/merge-patch+json', { metadata: { managedFields } });
    expect(owners(await write(mine)).map(([manager]) => manager)).toEqual(['you']);
    expect((await write([{}])).metadata).not.toHaveProperty('managedFields');
  });
});

test('invalid managedFields from a client are ignored and do not block later writes', async () => {
  const started = await startRegistry();
  const { registry } = started;
  const { metadata } = await apply(started, 'me', applied(entries));
  const unreadable = { manager: 'x', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1' };
  const managedFields = [{ ...unreadable, fieldsV1: { 'f:status': null } }];
  const patched = await registry.patch(PODS, 'default', 'a', 'application/merge-patch+json', {
    metadata: { managedFields },
  });
  expect(patched.metadata.managedFields).toEqual(metadata.managedFields);
  const running = { ...patched, status: { phase: 'Running' } } as Pod;
  const written = (await registry.update(PODS, running, { subresource: 'status' })) as Pod;
  expect(written.status?.phase).toBe('Running');
});
