/** Tests requests whose responses would be very long or cannot be encoded. Such a request affects at most its own connection. */
import { expect, test, vi } from 'vitest';
import { createCatalog } from '../api/catalog.ts';
import { kinds } from '../api/kinds.ts';
import { MAX_ERROR_CHARS } from '../machinery/error-text.ts';
import type { KubeObject, Status } from '../machinery/meta.ts';
import { ApiError } from '../machinery/status.ts';
import { isHttp2 } from './client-fixture.ts';
import { OTHERS_WAIT_MILLIS, PODS, startHostileServer, whileServingOthers } from './hostile-fixture.ts';
import { ref } from './registry/testing.ts';
import { readText, startTestServer } from './server-fixture.ts';

/** The serialization of the returned object fails, as for an object whose text exceeds the maximum string length. */
const unwritable = (kind: string): object => ({
  kind,
  code: 409,
  message: 'a',
  metadata: { name: 'a' },
  toJSON() {
    throw new RangeError('Invalid string length');
  },
});
const CONFIG_MAP = '/api/v1/namespaces/default/configmaps/a';

test('the response to conflicts that repeat a long key a thousand times is short', async () => {
  await using at = await startHostileServer();
  const list = Array.from({ length: 1000 }, (_, index) => `e${index}`);
  const name = 'a'.repeat(300_000);
  const spec = { containers: [{ name: 'app', image: 'b' }] };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'one' }, spec };
  expect((await at.call('POST', PODS, { body: JSON.stringify(pod) })).code).toBe(201);
  const env = Object.fromEntries(list.map((each) => [`k:{"name":"${each}"}`, {}]));
  const fieldsV1 = { 'f:spec': { 'f:containers': { [`k:${JSON.stringify({ name })}`]: { 'f:env': env } } } };
  const entry = { manager: 'other', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1 };
  const patch = (type: string, query: string, body: object) =>
    at.call('PATCH', `${PODS}/one${query}`, { body: JSON.stringify(body), headers: { 'content-type': type } });
  const owned = await patch('application/merge-patch+json', '', { metadata: { managedFields: [entry] } });
  expect(owned.code).toBe(200);
  const container = { name, image: 'b', env: list.map((each) => ({ name: each, value: 'c' })) };
  const { code, json, text, othersWaited } = await whileServingOthers(at, () =>
    patch('application/apply-patch+yaml', '?fieldManager=me', { ...pod, spec: { containers: [container] } }),
  );
  expect(code).toBe(409);
  expect(json.message).toMatch(
    /^Apply failed with 1000 conflicts: conflicts with "other" using v1:\n- \.spec\.containers/,
  );
  expect(text.length).toBeLessThan(3 * MAX_ERROR_CHARS);
  expect(othersWaited).toBeLessThan(OTHERS_WAIT_MILLIS);
  expect(at.errors).toEqual([]);
});

test.each<[string, string, () => Error | object]>([
  [
    'a failure',
    'cannot send the response to a failed request',
    () => new ApiError(unwritable('Status') as unknown as Status),
  ],
  ['an object', 'request failed', () => unwritable('ConfigMap')],
])('%s that cannot be serialized leads to 500', async (_what, logged, make) => {
  await using at = await startTestServer();
  at.backend.get = async () => {
    const made = make();
    if (made instanceof Error) throw made;
    return made as KubeObject;
  };
  const { code, json } = await at.call('GET', CONFIG_MAP);
  expect([code, json.kind, json.reason]).toEqual([500, 'Status', 'InternalError']);
  expect(at.errors).toMatchObject([{ message: logged, fields: { path: CONFIG_MAP } }]);
  expect((await at.call('GET', '/version')).code).toBe(200);
});

test('a watch whose events cannot be encoded ends without affecting the server', async () => {
  const row = () => {
    throw new Error('cannot make a row');
  };
  await using at = await startTestServer({
    catalog: createCatalog(kinds.map((kind) => (kind.kind === 'ConfigMap' ? { ...kind, row } : kind))),
  });
  const watching = vi.spyOn(at.backend, 'watch');
  const watch = await at.open('GET', '/api/v1/configmaps?watch=1', {
    headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
  });
  const metadata = { name: 'a', namespace: 'default' };
  await at.api.set(ref('configmaps'), { apiVersion: 'v1', kind: 'ConfigMap', metadata });
  await expect(readText(watch)).rejects.toThrow(isHttp2 ? 'NGHTTP2_INTERNAL_ERROR' : 'aborted');
  await watching.mock.results[0]?.value;
  expect(at.errors).toMatchObject([{ message: 'watch failed' }]);
});
