import { expect, test } from 'vitest';
import { NODES, SECRETS } from '../../../api/resources.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { TokenOptions } from '../../pki/tokens.ts';
import { failure, object, PODS, pod, SERVICE_ACCOUNTS, startRegistry } from '../testing.ts';

const AT = { name: 'default', subresource: 'token' };

async function started() {
  const requests: [string, { name: string; uid?: string }, TokenOptions?][] = [];
  const { registry } = await startRegistry({
    issueToken: async (...request) => {
      requests.push(request);
      const status = { token: 'secret', expirationTimestamp: '2026-01-01T01:00:00Z' };
      const { audiences = [], expirationSeconds = 3600 } = request[2] ?? {};
      return { id: 'id', audiences: audiences.length > 0 ? audiences : ['api'], expirationSeconds, status };
    },
  });
  const send = (spec: object, metadata?: object): Promise<KubeObject> => {
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata, spec };
    return registry.create(SERVICE_ACCOUNTS, 'default', request as unknown as KubeObject, AT);
  };
  return { registry, requests, send };
}

const bound = (kind: string, name: string, more: object = {}) => ({
  boundObjectRef: { apiVersion: 'v1', kind, name, ...more },
});

test('the response contains the token and the defaults of the request', async () => {
  const { registry, requests, send } = await started();
  const { metadata } = await registry.get(SERVICE_ACCOUNTS, 'default', 'default');
  expect(await send({ audiences: [] }, { name: 'default', namespace: 'default' })).toMatchObject({
    kind: 'TokenRequest',
    metadata: { name: 'default', namespace: 'default' },
    spec: { audiences: ['api'], expirationSeconds: 3600 },
    status: { token: 'secret', expirationTimestamp: '2026-01-01T01:00:00Z' },
  });
  expect(requests[0]?.slice(0, 2)).toEqual(['default', { name: 'default', uid: metadata.uid }]);
});

test('a token is bound to a Pod and its node, even while the Pod terminates', async () => {
  const { registry, requests, send } = await started();
  const { metadata } = await registry.create(PODS, 'default', pod('a', { nodeName: 'n1' }));
  const spec = { audiences: ['vault'], expirationSeconds: 3607, ...bound('Pod', 'a', { uid: metadata.uid }) };
  expect(await send(spec)).toMatchObject({ spec, status: { token: 'secret' } });
  const options = { audiences: ['vault'], expirationSeconds: 3607, pod: { name: 'a', uid: metadata.uid } };
  expect(requests[0]?.[2]).toEqual({ ...options, node: { name: 'n1' } });
  const node = await registry.create(NODES, undefined, object('Node', 'n1'));
  // The defer containers of a terminating Pod may still need a token.
  await registry.delete(PODS, 'default', 'a', { gracePeriodSeconds: 30 });
  expect((await registry.get(PODS, 'default', 'a')).metadata.deletionTimestamp).toBeDefined();
  expect(await send(spec)).toMatchObject({ status: { token: 'secret' } });
  expect(requests[1]?.[2]).toEqual({ ...options, node: { name: 'n1', uid: node.metadata.uid } });
});

test('a token is bound to a Node or a Secret', async () => {
  const { registry, requests, send } = await started();
  const node = await registry.create(NODES, undefined, object('Node', 'n1'));
  const secret = await registry.create(SECRETS, 'default', object('Secret', 's1'));
  await send({ audiences: [], ...bound('Node', 'n1') });
  await send({ audiences: [], ...bound('Secret', 's1', { uid: secret.metadata.uid }) });
  expect(requests.map(([, , options]) => options)).toMatchObject([
    { node: { name: 'n1', uid: node.metadata.uid } },
    { secret: { name: 's1', uid: secret.metadata.uid } },
  ]);
});

test('a token is not bound to an object that does not exist, has another UID, or is of another kind', async () => {
  const { registry, requests, send } = await started();
  await registry.create(PODS, 'default', pod('a'));
  await registry.create(SERVICE_ACCOUNTS, 'default', object('ServiceAccount', 'other'));
  await registry.create(PODS, 'default', pod('b', { serviceAccountName: 'other' }));
  const refusal = async (spec: object, metadata?: object) => {
    const { code, message } = await failure(send({ audiences: [], ...spec }, metadata));
    return [code, message];
  };
  expect(await refusal(bound('Pod', 'none'))).toEqual([404, 'pods "none" not found']);
  expect(await refusal(bound('Pod', ''))).toEqual([404, 'pods "" not found']);
  expect(await refusal(bound('Node', 'none'))).toEqual([404, 'nodes "none" not found']);
  expect(await refusal(bound('Pod', 'a', { uid: 'x' }))).toEqual([
    409,
    'Operation cannot be fulfilled on Pod "a": the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated',
  ]);
  expect(await refusal(bound('Pod', 'b'))).toEqual([
    400,
    'cannot bind token for serviceaccount "default" to pod running with different serviceaccount name.',
  ]);
  expect(await refusal(bound('ConfigMap', 'a'))).toEqual([
    400,
    'cannot bind token to object of type /v1, Kind=ConfigMap',
  ]);
  expect(await refusal(bound('Pod', 'a', { apiVersion: 'apps/v1' }))).toEqual([
    400,
    'cannot bind token to object of type apps/v1, Kind=Pod',
  ]);
  expect(requests).toEqual([]);
});

test('a request with an invalid expiration, or for another ServiceAccount than its URL, is invalid', async () => {
  const { send } = await started();
  const refusal = async (spec: object, metadata?: object) => (await failure(send(spec, metadata))).message;
  expect(await refusal({ audiences: [], expirationSeconds: 599 })).toBe(
    'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
  );
  expect(await refusal({ audiences: [], expirationSeconds: 2 ** 32 + 1 })).toBe(
    'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
  );
  expect(await refusal({ audiences: [] }, { name: 'other' })).toBe(
    'TokenRequest.authentication.k8s.io "default" is invalid: metadata.name: Invalid value: "other": must match the service account name if specified',
  );
  expect(await refusal({ audiences: [] }, { namespace: 'other' })).toBe(
    'TokenRequest.authentication.k8s.io "default" is invalid: metadata.namespace: Invalid value: "other": must match the service account namespace if specified',
  );
});
