import { expect, test } from 'vitest';
import { kinds } from '../../api/kinds.ts';
import { CONFIG_MAPS, NAMESPACES } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { createObjects, planObjects, problemsOfSome, type SessionOf } from './create-objects.ts';
import type { FindKind } from './discovery.ts';
import { SESSION_LABEL } from './plan.ts';
import type { OwnRecord, RecordedObject } from './session-records.ts';

const findKind: FindKind = (apiVersion, name) => {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const kind = kinds.find((each) => each.group === group && each.version === version && each.kind === name);
  return Promise.resolve(kind && { group, version, resource: kind.plural, kind: name, namespaced: kind.namespaced });
};

async function create(
  objects: object[],
  existing: string[] = [],
  sourceOf = (index: number) => `${index}.yaml`,
  sessionOf?: SessionOf,
) {
  const backend = await registryBackend();
  for (const name of existing) await backend.set(CONFIG_MAPS, config(name));
  const manifests = objects.map((object, index) => ({ object: object as KubeObject, source: sourceOf(index) }));
  const [created, warnings, recorded] = [[] as string[], [] as string[], [] as RecordedObject[]];
  const record = { id: 's1', write: (all: RecordedObject[]) => recorded.push(...all) } as unknown as OwnRecord;
  const client = clientOf(backend);
  const { signal } = new AbortController();
  const error = await planObjects(manifests, { client, findKind, namespace: 'a', signal, sessionOf })
    .then((plan) =>
      createObjects(plan, {
        client,
        record,
        created: (object, title) => created.push(`${title} ${object.metadata.labels?.[SESSION_LABEL]}`),
        warn: (text) => warnings.push(text),
        signal,
        sessionOf,
      }),
    )
    .then(
      () => undefined,
      (error: Error) => error.message,
    );
  const has = (name: string): boolean => backend.objects(CONFIG_MAPS).some(({ metadata }) => metadata.name === name);
  return { backend, created, warnings, recorded, error, has };
}
const config = (name: string, more: object = {}, namespace = 'a'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace },
  ...more,
});
const namespace = (name: string): object => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

test('objects are created in order, with the label of the session, after the record names them', async () => {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'g-' },
    spec: { containers: [{ name: 'a', image: 'i' }] },
  };
  const { created, recorded, error, backend } = await create([pod, config('one'), namespace('new')]);
  expect(error).toBeUndefined();
  expect(created).toEqual(['namespace/new s1', 'configmap/one s1', expect.stringMatching(/^pod\/g-\w+ s1$/)]);
  expect(recorded.map(({ resource, name }) => [resource, name])).toEqual([
    ['namespaces', 'new'],
    ['configmaps', 'one'],
    ['pods', undefined],
  ]);
  // The dry runs precede the first write.
  expect(backend.calls.filter((call) => call.startsWith('create ')).map((call) => call.split(' ')[1])).toEqual([
    'namespaces',
    'configmaps',
    'pods',
    'namespaces',
    'configmaps',
    'pods',
  ]);
});

test('nothing is created and nothing is recorded if some objects are wrong, and the error names each of them', async () => {
  const { created, recorded, error, has } = await create(
    [config('fine'), config('Wrong'), config('strict', { datta: {} }), config('mine'), config('lost', {}, 'nowhere')],
    ['mine'],
  );
  expect(error?.split('\n')).toEqual([
    expect.stringMatching(/^1\.yaml: configmap\/Wrong in namespace a: ConfigMap "Wrong" is invalid: metadata\.name: /),
    expect.stringMatching(/^2\.yaml: configmap\/strict in namespace a: .*unknown field "datta"/),
    '3.yaml: configmap/mine in namespace a exists already, and a session changes no object that it has not created: delete it or choose another name',
    '4.yaml: the namespace nowhere of configmap/lost does not exist: create it, or add it to the manifests',
  ]);
  expect([created, recorded, has('fine')]).toEqual([[], [], false]);
});

test('a value whose error names no field in the API is reported with its place', async () => {
  const pod = (memory: string): object => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'a', image: 'i', resources: { limits: { memory } } }] },
  });
  const { error } = await create([pod('16Q')]);
  expect(error).toBe(
    '0.yaml: pod/p in namespace a: spec.containers[0].resources.limits[memory]: Invalid value: "16Q": quantities must match ' +
      "the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  );
});

test('an object that another running session has created is refused with the PID of that session', async () => {
  const { error } = await create([config('mine')], ['mine'], undefined, ({ name }) =>
    name === 'mine' ? 7 : undefined,
  );
  expect(error).toBe(
    '0.yaml: configmap/mine in namespace a exists already, because another session has created it (PID 7): wait until that session has ended, or choose another name',
  );
});

test('the missing namespace of a Pod without a manifest is named with the ways to have one', async () => {
  const { error } = await create([config('lost', {}, 'nowhere')], [], () => '');
  expect(error).toBe(
    "the namespace nowhere of configmap/lost does not exist: give another --namespace, or use 'lifepod up FILE' with a manifest of the Namespace and of the Pod",
  );
});

test('an object in a Namespace of the manifests is checked when the Namespace exists, before other objects are created', async () => {
  const { created, recorded, error, has, backend } = await create([
    config('fine'),
    namespace('new'),
    config('Wrong', {}, 'new'),
  ]);
  expect(error).toMatch(/^2\.yaml: configmap\/Wrong in namespace new: /);
  expect(created).toEqual(['namespace/new s1']);
  // The session deletes the Namespace, because the record names it.
  expect(recorded).toHaveLength(3);
  expect([has('fine'), backend.objects(NAMESPACES).some(({ metadata }) => metadata.name === 'new')]).toEqual([
    false,
    true,
  ]);
});

test('a Pod may need a ServiceAccount that needs a Namespace', async () => {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'sa', namespace: 'team' } };
  const pod = (serviceAccountName: string, image = 'i') => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'team' },
    spec: { serviceAccountName, containers: [{ name: 'a', image }] },
  });
  const right = await create([pod('sa'), account, namespace('team')]);
  expect(right.error).toBeUndefined();
  expect(right.created).toEqual(['namespace/team s1', 'serviceaccount/sa s1', 'pod/web s1']);
  const wrong = await create([pod('sa', ''), config('one', {}, 'team'), account, namespace('team')]);
  expect(wrong.error).toMatch(/^0\.yaml: pod\/web in namespace team: .*image: Required value/);
  expect(wrong.has('one')).toBe(false);
});

test.each([
  [
    { apiVersion: 'v1', kind: 'Nothing', metadata: { name: 'a' } },
    '0.yaml: the server has no kind Nothing in v1: correct apiVersion and kind',
  ],
  [
    { ...namespace('n'), metadata: { name: 'n', namespace: 'a' } },
    '0.yaml: namespace/n cannot have a namespace: omit metadata.namespace',
  ],
])('an object that cannot be planned is refused: %j', async (object, message) => {
  expect((await create([object])).error).toBe(message);
});

test('objects that cannot be planned are reported together with others that are wrong by themselves', async () => {
  const unknown = { apiVersion: 'v1', kind: 'Nothing', metadata: { name: 'a' } };
  const { error, created, has } = await create([
    unknown,
    config('Wrong'),
    config('fine'),
    config('fine'),
    config('lost', {}, 'nowhere'),
  ]);
  expect(error?.split('\n')).toEqual([
    '0.yaml: the server has no kind Nothing in v1: correct apiVersion and kind',
    'configmap/fine in namespace a is defined twice: in 2.yaml and in 3.yaml',
    expect.stringMatching(/^1\.yaml: configmap\/Wrong in namespace a: ConfigMap "Wrong" is invalid: /),
  ]);
  expect([created, has('fine')]).toEqual([[], false]);
});

test('if files cannot be read, only errors that these files cannot explain are reported', async () => {
  const backend = await registryBackend();
  const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'a' } };
  const objects = [widget, config('Wrong'), config('lost', {}, 'nowhere'), { ...config('x'), kind: 'Nothing' }];
  const manifests = objects.map((object, index) => ({ object: object as KubeObject, source: `${index}.yaml` }));
  const { signal } = new AbortController();
  expect(await problemsOfSome(manifests, { client: clientOf(backend), findKind, namespace: 'a', signal })).toEqual([
    '3.yaml: the server has no kind Nothing in v1: correct apiVersion and kind',
    expect.stringMatching(/^1\.yaml: configmap\/Wrong in namespace a: ConfigMap "Wrong" is invalid: /),
  ]);
  expect(backend.objects(CONFIG_MAPS)).toEqual([]);
});

test('warnings of the server name their object', async () => {
  const spec = { containers: [{ name: 'a', image: 'i' }], deferContainers: [{ name: 'b', image: 'i' }] };
  const { warnings } = await create([{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec }]);
  expect(warnings).toEqual([expect.stringMatching(/^pod\/p: spec\.deferContainers\[0\]/)]);
});
