import { describe, expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { RequestContext } from '../../ports/request.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { StorageFullError } from '../../store/store.ts';
import { turns } from '../server-fixture.ts';
import {
  CONFIG_MAPS,
  configMap,
  failure,
  NAMESPACES,
  object,
  PODS,
  pod,
  ref,
  SERVICE_ACCOUNTS,
  startRegistry,
  TEST_USER,
} from './testing.ts';

const data = (object: KubeObject): Record<string, string> => (object as { data?: Record<string, string> }).data ?? {};

describe('create', () => {
  test('create sets the system metadata and returns the stored object', async () => {
    const { registry } = await startRegistry();
    const created = await registry.create(CONFIG_MAPS, 'default', configMap('a', { k: 'v' }, { uid: 'mine' }));
    expect(created).toMatchObject({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a', namespace: 'default', creationTimestamp: '2026-01-01T00:00:00Z' },
      data: { k: 'v' },
    });
    expect(created.metadata.uid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(created.metadata.resourceVersion).toBe(String(registry.revision()));
    expect(await registry.get(CONFIG_MAPS, 'default', 'a')).toEqual(created);
    expect(() => {
      created.metadata.name = 'b';
    }).toThrow(TypeError);
  });

  test.each([
    ['a name that is in use', configMap('taken'), 409, 'AlreadyExists', 'configmaps "taken" already exists'],
    [
      'a namespace other than that of the request',
      configMap('a', {}, { namespace: 'other' }),
      400,
      'BadRequest',
      'the namespace of the provided object does not match the namespace sent on the request',
    ],
    [
      'a resourceVersion',
      configMap('a', {}, { resourceVersion: '7' }),
      500,
      '',
      'resourceVersion should not be set on objects to be created',
    ],
    [
      'a body of another kind',
      object('Secret', 'a'),
      400,
      'BadRequest',
      'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (v1.ConfigMap): unknown conversion',
    ],
    [
      'a body of another apiVersion',
      { ...configMap('a'), apiVersion: 'v2' },
      400,
      'BadRequest',
      'the API version in the data (v2) does not match the expected API version (v1)',
    ],
    [
      'an object without a name',
      configMap(''),
      422,
      'Invalid',
      'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    ],
    [
      'a field of the wrong type',
      object('ConfigMap', 'a', { data: { k: 1 } }),
      400,
      'BadRequest',
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
    ],
  ])('create refuses %s', async (_, body, code, reason, message) => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('taken'));
    expect(await failure(registry.create(CONFIG_MAPS, 'default', body))).toEqual({ code, reason, message });
  });

  test("create generates a name from upstream's alphabet, and another name if the first one is in use", async () => {
    let calls = 0;
    // The first two generated suffixes are equal.
    const randomBytes = (size: number) => {
      const first = size === 5 && calls++ < 2;
      return Uint8Array.from({ length: size }, (_, index) => (first ? 0 : calls + index));
    };
    const { registry } = await startRegistry({ randomBytes });
    const base = { generateName: 'web-' };
    const one = await registry.create(CONFIG_MAPS, 'default', configMap('', {}, base));
    const two = await registry.create(CONFIG_MAPS, 'default', configMap('', {}, base));
    expect(one.metadata.name).toBe('web-bbbbb');
    expect(two.metadata.name).toMatch(/^web-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    expect(two.metadata.name).not.toBe('web-bbbbb');
  });

  test('create fails if all generated names are in use', async () => {
    const { registry } = await startRegistry({ randomBytes: (size) => new Uint8Array(size) });
    await registry.create(CONFIG_MAPS, 'default', configMap('web-bbbbb'));
    expect(await failure(registry.create(CONFIG_MAPS, 'default', configMap('', {}, { generateName: 'web-' })))).toEqual(
      {
        code: 409,
        reason: 'AlreadyExists',
        message:
          'configmaps "web-bbbbb" already exists, the server was not able to generate a unique name for the object',
      },
    );
  });

  test('a dry run of a create checks the object and stores nothing', async () => {
    const { registry } = await startRegistry();
    const before = registry.revision();
    const created = await registry.create(CONFIG_MAPS, 'default', configMap('a'), { dryRun: true });
    expect(created.metadata.uid).toBeDefined();
    expect(registry.revision()).toBe(before);
    expect((await failure(registry.get(CONFIG_MAPS, 'default', 'a'))).message).toBe('configmaps "a" not found');
  });

  test('create drops unknown fields, with a warning unless fieldValidation is Ignore, and refuses them if it is Strict', async () => {
    const { registry } = await startRegistry();
    const body = (name: string) => object('ConfigMap', name, { foo: 1, data: { a: 'b' } });
    const warnings: string[] = [];
    const onWarning = (text: string) => warnings.push(text);
    const created = await registry.create(CONFIG_MAPS, 'default', body('a'), { onWarning });
    expect(created).not.toHaveProperty('foo');
    expect(warnings).toEqual(['unknown field "foo"']);
    await registry.create(CONFIG_MAPS, 'default', body('b'), { onWarning, fieldValidation: 'Ignore' });
    expect(warnings).toHaveLength(1);
    expect(
      await failure(registry.create(CONFIG_MAPS, 'default', body('c'), { onWarning, fieldValidation: 'Strict' })),
    ).toEqual({
      code: 400,
      reason: 'BadRequest',
      message: 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "foo"',
    });
  });

  test('create fails with 507 if the store is full', async () => {
    const store = createMemoryStore();
    const { registry } = await startRegistry({ store });
    store.txn = () => Promise.reject(new StorageFullError('/data', 'no space', 'free some', undefined));
    expect(await failure(registry.create(CONFIG_MAPS, 'default', configMap('a')))).toMatchObject({ code: 507 });
  });
});

describe('namespaces and ServiceAccounts', () => {
  test('an object cannot be created without its namespace', async () => {
    const { registry } = await startRegistry();
    expect(await failure(registry.create(CONFIG_MAPS, 'nowhere', configMap('a')))).toEqual({
      code: 404,
      reason: 'NotFound',
      message: 'namespaces "nowhere" not found',
    });
  });

  test('nothing can be created in a terminating namespace', async () => {
    const { registry } = await startRegistry();
    await registry.create(NAMESPACES, undefined, object('Namespace', 'x'));
    await registry.delete(NAMESPACES, undefined, 'x');
    await expect(registry.create(CONFIG_MAPS, 'x', configMap('a'))).rejects.toMatchObject({
      message:
        'configmaps "a" is forbidden: unable to create new content in namespace x because it is being terminated',
      status: {
        code: 403,
        details: {
          causes: [
            {
              reason: 'NamespaceTerminating',
              message: 'namespace x is being terminated',
              field: 'metadata.namespace',
            },
          ],
        },
      },
    });
  });

  test('a create fails if its namespace starts terminating at the same time', async () => {
    const store = createMemoryStore();
    const { registry } = await startRegistry({ store });
    await registry.create(NAMESPACES, undefined, object('Namespace', 'x'));
    const { txn } = store;
    store.txn = async (request) => {
      store.txn = txn;
      await registry.delete(NAMESPACES, undefined, 'x');
      return txn(request);
    };
    expect(await failure(registry.create(CONFIG_MAPS, 'x', configMap('a')))).toMatchObject({ reason: 'Forbidden' });
  });

  test('a new Pod waits for its ServiceAccount and uses it', async () => {
    const { registry, timers } = await startRegistry();
    await registry.create(NAMESPACES, undefined, object('Namespace', 'x'));
    const creating = registry.create(PODS, 'x', pod('a'));
    timers.advance(1999);
    await registry.create(SERVICE_ACCOUNTS, 'x', object('ServiceAccount', 'default'));
    const created = (await creating) as Pod;
    expect(created.spec?.serviceAccountName).toBe('default');
    expect(created.spec?.volumes?.[0]?.name).toMatch(/^kube-api-access-[a-z0-9]{5}$/);
  });

  test('a new Pod is refused if its ServiceAccount does not exist after 2 s', async () => {
    const { registry, timers } = await startRegistry();
    const creating = failure(registry.create(PODS, 'default', pod('a', { serviceAccountName: 'robot' })));
    await turns(1);
    timers.advance(2000);
    expect(await creating).toEqual({
      code: 403,
      reason: 'Forbidden',
      message:
        'pods "a" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found',
    });
  });
});

test('a new Pod no longer waits for its ServiceAccount when its client has disconnected', async () => {
  const { backend } = await startRegistry();
  const gone = new AbortController();
  const request: RequestContext = {
    user: TEST_USER,
    source: 'client',
    verb: 'create',
    resource: PODS,
    namespace: 'default',
    signal: gone.signal,
    audit: new Map(),
  };
  const creating = failure(backend.create(request, pod('a', { serviceAccountName: 'robot' })));
  await turns(1);
  gone.abort();
  expect(await creating).toMatchObject({ code: 403 });
});

test('when more than 256 Pods wait for their ServiceAccounts, the Pod that has waited longest is refused', async () => {
  const { registry, timers } = await startRegistry();
  const ended: number[] = [];
  const creating = Array.from({ length: 258 }, (_, index) =>
    registry.create(PODS, 'default', pod(`p${index}`, { serviceAccountName: 'robot' })).then(
      () => ended.push(index),
      () => ended.push(-index),
    ),
  );
  await Promise.all(creating.slice(0, 2));
  expect(ended).toEqual([-0, -1]);
  await registry.create(SERVICE_ACCOUNTS, 'default', object('ServiceAccount', 'robot'));
  await Promise.all(creating);
  expect(ended.slice(2).sort((a, b) => a - b)).toEqual(Array.from({ length: 256 }, (_, index) => index + 2));
  timers.advance(2000);
});

describe('update', () => {
  test('update replaces the object, keeps its system metadata, and compares the resourceVersion', async () => {
    const { registry } = await startRegistry();
    const created = await registry.create(CONFIG_MAPS, 'default', configMap('a', { k: '1' }));
    const { resourceVersion } = created.metadata;
    const place = { namespace: 'default' };
    const updated = await registry.update(CONFIG_MAPS, configMap('a', { k: '2' }, { ...place, resourceVersion }));
    expect(data(updated)).toEqual({ k: '2' });
    expect(updated.metadata.uid).toBe(created.metadata.uid);
    expect(updated.metadata.creationTimestamp).toBe(created.metadata.creationTimestamp);
    const stale = configMap('a', { k: '3' }, { ...place, resourceVersion });
    expect(await failure(registry.update(CONFIG_MAPS, stale))).toEqual({
      code: 409,
      reason: 'Conflict',
      message:
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    });
    expect(data(await registry.update(CONFIG_MAPS, configMap('a', { k: '4' }, place)))).toEqual({ k: '4' });
  });

  test('an update with another uid fails with a conflict', async () => {
    const { registry } = await startRegistry();
    const { metadata } = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    const other = configMap('a', {}, { namespace: 'default', uid: 'other' });
    expect(await failure(registry.update(CONFIG_MAPS, other))).toEqual({
      code: 409,
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/core/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: ${metadata.uid}`,
    });
  });

  test('an update without a change writes nothing', async () => {
    const { registry } = await startRegistry();
    const created = await registry.create(CONFIG_MAPS, 'default', configMap('a', { x: '1', y: '2' }));
    const same = configMap('a', { y: '2', x: '1' }, { namespace: 'default' });
    expect(await registry.update(CONFIG_MAPS, same)).toEqual(created);
    expect(String(registry.revision())).toBe(created.metadata.resourceVersion);
  });

  test('an update of an invalid or missing object is refused', async () => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    const place = { namespace: 'default' };
    expect(await failure(registry.update(CONFIG_MAPS, configMap('a', { '..': 'x' }, place)))).toEqual({
      code: 422,
      reason: 'Invalid',
      message: `ConfigMap "a" is invalid: data[..]: Invalid value: "..": must not be '..'`,
    });
    expect(await failure(registry.update(CONFIG_MAPS, configMap('b', {}, place)))).toMatchObject({
      code: 404,
      message: 'configmaps "b" not found',
    });
  });

  test('a dry run of an update changes nothing', async () => {
    const { registry } = await startRegistry();
    const created = await registry.create(CONFIG_MAPS, 'default', configMap('a', { k: '1' }));
    const body = configMap('a', { k: '2' }, { namespace: 'default' });
    expect(data(await registry.update(CONFIG_MAPS, body, { dryRun: true }))).toEqual({ k: '2' });
    expect(await registry.get(CONFIG_MAPS, 'default', 'a')).toEqual(created);
  });
});

describe('subresources', () => {
  test('an update of the status subresource leaves the rest of the object unchanged', async () => {
    const { registry } = await startRegistry();
    const created = (await registry.create(PODS, 'default', pod('a'))) as Pod;
    const body = { ...created, spec: { ...created.spec, nodeName: 'n' }, status: { phase: 'Running' } } as Pod;
    const updated = (await registry.update(PODS, body, { subresource: 'status' })) as Pod;
    expect(updated.status?.phase).toBe('Running');
    expect(updated.spec?.nodeName).toBeUndefined();
    expect(await failure(registry.update(PODS, body, { subresource: 'status' }))).toMatchObject({ reason: 'Conflict' });
  });

  test.each([
    ['the creation of its binding subresource', (name: string) => ({ name, subresource: 'binding' }), PODS],
    ['the creation of a Binding', () => ({}), ref('bindings')],
  ])('a Pod is bound by %s', async (_, options, target) => {
    const { registry } = await startRegistry();
    await registry.create(PODS, 'default', pod('a'));
    const binding = object('Binding', 'a', { target: { kind: 'Node', name: 'n1' } });
    expect(await registry.create(target, 'default', binding, options('a'))).toMatchObject({ status: 'Success' });
    expect(((await registry.get(PODS, 'default', 'a')) as Pod).spec?.nodeName).toBe('n1');
    expect(await failure(registry.create(target, 'default', binding, options('a')))).toMatchObject({
      reason: 'Conflict',
      message: 'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"',
    });
  });

  test('a Binding cannot add forbidden annotations or invalid labels', async () => {
    const { registry } = await startRegistry();
    const before = await registry.create(PODS, 'default', pod('a'));
    const bind = (metadata: object) => {
      const binding = object('Binding', 'a', { target: { kind: 'Node', name: 'n1' } });
      return registry.create(ref('bindings'), 'default', {
        ...binding,
        metadata: { ...binding.metadata, ...metadata },
      });
    };
    for (const metadata of [
      { annotations: { 'kubernetes.io/config.mirror': 'x' } },
      { annotations: { 'pod.beta.kubernetes.io/init-containers': '[]' } },
      { labels: { 'not a key': 'x' } },
    ]) {
      expect(await failure(bind(metadata))).toMatchObject({ code: 422, reason: 'Invalid' });
    }
    expect(await registry.get(PODS, 'default', 'a')).toEqual(before);
    await bind({ annotations: { seen: 'yes', 'pod.beta.kubernetes.io/init-container-statuses': '[]' } });
    expect((await registry.get(PODS, 'default', 'a')).metadata.annotations).toEqual({ seen: 'yes' });
  });

  test('a request for an unknown subresource or kind fails with NotFound, and an unsupported verb with MethodNotAllowed', async () => {
    const { registry } = await startRegistry();
    const created = await registry.create(PODS, 'default', pod('a'));
    expect(await failure(registry.update(PODS, created, { subresource: 'scale' }))).toMatchObject({ code: 404 });
    expect(await failure(registry.update(PODS, created, { subresource: 'log' }))).toMatchObject({ code: 405 });
    expect(await failure(registry.get(ref('bindings'), 'default', 'a'))).toMatchObject({ code: 405 });
    expect(await failure(registry.get(ref('frogs'), 'default', 'a'))).toMatchObject({ code: 404 });
  });
});

describe('patch', () => {
  const merge = 'application/merge-patch+json';

  test.each([
    [merge, { data: { k: '2', gone: null } }],
    ['application/strategic-merge-patch+json', { data: { k: '2', gone: null } }],
    [
      'application/json-patch+json',
      [
        { op: 'replace', path: '/data/k', value: '2' },
        { op: 'remove', path: '/data/gone' },
      ],
    ],
  ] as const)('patch applies a patch of type %s', async (type, body) => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a', { k: '1', gone: 'x' }));
    expect(data(await registry.patch(CONFIG_MAPS, 'default', 'a', type, body))).toEqual({ k: '2' });
  });

  test('repeated small patches cannot make an object exceed its maximum size', async () => {
    const { registry } = await startRegistry();
    await registry.create(PODS, 'default', pod('a'));
    const options = { subresource: 'status' };
    const condition = { type: 'Large', status: 'True', message: 'x'.repeat(1_400_000) };
    await registry.patch(PODS, 'default', 'a', merge, { status: { conditions: [condition] } }, options);
    const copy = { op: 'copy', from: '/status/conditions/0', path: '/status/conditions/-' };
    const grow = () => registry.patch(PODS, 'default', 'a', 'application/json-patch+json', [copy, copy], options);
    await grow();
    expect(await failure(grow())).toMatchObject({
      code: 413,
      reason: 'RequestEntityTooLarge',
      message: expect.stringMatching(
        /^Request entity too large: the object would have 7\d+ bytes, the limit is 6291456$/,
      ),
    });
  });

  test('a strategic merge patch merges lists by their merge key', async () => {
    const { registry } = await startRegistry();
    await registry.create(PODS, 'default', pod('a'));
    const patched = (await registry.patch(PODS, 'default', 'a', 'application/strategic-merge-patch+json', {
      spec: { containers: [{ name: 'app', image: 'busybox:2' }] },
    })) as Pod;
    expect(patched.spec?.containers).toHaveLength(1);
    expect(patched.spec?.containers[0]).toMatchObject({ image: 'busybox:2', terminationMessagePolicy: 'File' });
    expect(patched.metadata.generation).toBe(2);
  });

  test.each([
    [
      'a change of the name',
      { metadata: { name: 'b' } },
      400,
      'the name of the object (b) does not match the name on the URL (a)',
    ],
    [
      'a change of the namespace',
      { metadata: { namespace: 'kube-system' } },
      400,
      'the namespace of the object (kube-system) does not match the namespace on the request (default)',
    ],
    [
      'an old resourceVersion',
      { metadata: { resourceVersion: '1' } },
      409,
      'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    ],
    [
      'an unknown field if fieldValidation is Strict',
      { foo: 1 },
      422,
      ' "" is invalid: patch: Invalid value: "map[foo:1]": strict decoding error: unknown field "foo"',
    ],
  ])('patch refuses %s', async (_, body, code, message) => {
    const { registry } = await startRegistry();
    await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    const patching = registry.patch(CONFIG_MAPS, 'default', 'a', merge, body, { fieldValidation: 'Strict' });
    expect(await failure(patching)).toMatchObject({ code, message });
  });

  test('a patch of an object that does not exist fails with NotFound', async () => {
    const { registry } = await startRegistry();
    expect(await failure(registry.patch(CONFIG_MAPS, 'default', 'a', merge, {}))).toMatchObject({ code: 404 });
  });
});

test('two kinds can serve the same stored object', async () => {
  const { registry } = await startRegistry();
  const events = ref('events', 'events.k8s.io');
  const content = {
    note: 'hello',
    type: 'Normal',
    reason: 'Started',
    action: 'Start',
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'kubelet',
    reportingInstance: 'n1',
    regarding: { kind: 'Pod', name: 'a', namespace: 'default' },
  };
  const body = { ...object('Event', 'e', content), apiVersion: 'events.k8s.io/v1' };
  const created = await registry.create(events, 'default', body);
  expect(created).toMatchObject({ apiVersion: 'events.k8s.io/v1', note: 'hello' });
  expect(await registry.get(events, 'default', 'e')).toEqual(created);
  expect(await registry.get(ref('events'), 'default', 'e')).toMatchObject({ apiVersion: 'v1', message: 'hello' });
});
