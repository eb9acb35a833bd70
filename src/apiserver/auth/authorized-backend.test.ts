import { expect, test } from 'vitest';
import { PODS } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { apiFor } from '../../ports/api-for.ts';
import { type Authorizer, isPath } from '../../ports/authorizer.ts';
import type { ResourceApi, ResourceBackend } from '../../ports/backend.ts';
import { API_SERVER, type UserInfo } from '../../ports/request.ts';
import { authorizedBackend } from './authorized-backend.ts';

const jane: UserInfo = { name: 'jane', groups: [] };
const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'a' } } as KubeObject;
const never = new AbortController().signal;
const MERGE = 'application/merge-patch+json';

/** `allowed`: the requests that the authorizer allows, each as `VERB RESOURCE NAMESPACE/NAME`, followed by the selected fields. */
function backendOf(allowed: readonly string[], user = jane) {
  const called: string[] = [];
  const asked: string[] = [];
  const refused: string[] = [];
  const backend = new Proxy({} as ResourceBackend, {
    get:
      (_, method) =>
      async (_request: unknown, _type: unknown, _body: unknown, options?: { mayCreate?: () => unknown }) => {
        await options?.mayCreate?.();
        called.push(String(method));
      },
    ownKeys: () => [],
  });
  const authorizer: Authorizer = {
    async authorize(attributes) {
      if (isPath(attributes)) throw new Error('not about a path');
      const { verb, resource, subresource, namespace = '', name = '', fieldSelector = [] } = attributes;
      const what = subresource ? `${resource}/${subresource}` : resource;
      const text = [verb, what, `${namespace}/${name}`, ...fieldSelector.map(({ field }) => field)].join(' ');
      asked.push(text);
      return { allowed: allowed.includes(text), reason: 'because' };
    },
    rulesFor: async () => ({ roles: [], errors: [] }),
  };
  const api = apiFor(
    authorizedBackend(backend, authorizer, ({ verb }, reason) => refused.push(`${verb}: ${reason}`)),
    user,
  );
  return { api, called, asked, refused };
}

const calls: [string, string, (api: ResourceApi) => Promise<unknown>][] = [
  ['get', 'get pods a/p', (api) => api.get(PODS, 'a', 'p')],
  ['list', 'list pods a/ spec.nodeName', (api) => api.list(PODS, { namespace: 'a', fieldSelector: 'spec.nodeName=n' })],
  [
    'watch',
    'watch pods /p metadata.name',
    (api) => api.watch(PODS, { fieldSelector: 'metadata.name=p' }, () => {}, never),
  ],
  ['create', 'create pods a/', (api) => api.create(PODS, 'a', pod)],
  ['create', 'create pods/binding a/p', (api) => api.create(PODS, 'a', pod, { name: 'p', subresource: 'binding' })],
  ['update', 'update pods/status a/p', (api) => api.update(PODS, pod, { subresource: 'status' })],
  ['patch', 'patch pods a/p', (api) => api.patch(PODS, 'a', 'p', MERGE, {})],
  ['delete', 'delete pods a/p', (api) => api.delete(PODS, 'a', 'p')],
  ['deleteCollection', 'deletecollection pods a/', (api) => api.deleteCollection(PODS, { namespace: 'a' })],
];

test.each(calls)('%s needs the right to %s', async (method, right, call) => {
  const isPatch = method === 'patch';
  const granted = backendOf(isPatch ? [right, 'create pods a/p'] : [right]);
  await call(granted.api);
  expect(granted.called).toEqual([method]);
  expect(granted.asked[0]).toBe(right);

  const refused = backendOf([]);
  await expect(call(refused.api)).rejects.toMatchObject({
    code: 403,
    message: expect.stringContaining('"jane" cannot'),
  });
  expect(refused.called).toEqual([]);
  expect(refused.refused).toEqual([`${right.split(' ')[0]}: because`]);
});

test('a patch that creates the object needs the right to create it', async () => {
  const { api, called, refused } = backendOf(['patch pods a/p']);
  await expect(api.patch(PODS, 'a', 'p', 'application/apply-patch+yaml', {})).rejects.toMatchObject({ code: 403 });
  expect([called, refused]).toEqual([[], ['create: because']]);
});

test('the API server needs no role', async () => {
  const { api, called, asked } = backendOf([], API_SERVER);
  for (const [, , call] of calls) await call(api);
  expect(called).toHaveLength(calls.length);
  expect(asked).toEqual([]);
});
