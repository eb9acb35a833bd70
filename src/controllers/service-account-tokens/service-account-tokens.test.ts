import { expect, onTestFinished, test } from 'vitest';
import type { Secret } from '../../api/generated/types.ts';
import { SECRETS, SERVICE_ACCOUNTS } from '../../api/resources.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { startServiceAccountTokens } from './service-account-tokens.ts';

const UID = 'kubernetes.io/service-account.uid';

async function started() {
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  await startServiceAccountTokens({
    ...withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal }),
    caPem: 'PEM',
    issueLegacyToken: async (namespace, { name, uid }, secret) => `token of ${namespace}/${name} ${uid} in ${secret}`,
  });
  const create = (name: string, account: string, more: Partial<Secret> = {}) =>
    backend.set(SECRETS, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'a', annotations: { 'kubernetes.io/service-account.name': account } },
      type: 'kubernetes.io/service-account-token',
      ...more,
    } as Secret);
  const secret = (name: string) =>
    backend.objects(SECRETS).find(({ metadata }) => metadata.name === name) as Secret | undefined;
  const dataOf = (name: string) =>
    Object.fromEntries(
      Object.entries(secret(name)?.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
    );
  return { backend, create, secret, dataOf };
}

test('a Secret gets the token of its ServiceAccount, again if a user removes it', async () => {
  const { backend, create, secret, dataOf } = await started();
  const { metadata } = await backend.get(SERVICE_ACCOUNTS, 'a', 'default');
  await create('one', 'default');
  const complete = { token: `token of a/default ${metadata.uid} in one`, 'ca.crt': 'PEM', namespace: 'a' };
  await expect.poll(() => dataOf('one')).toEqual(complete);
  expect(secret('one')?.metadata.annotations?.[UID]).toBe(metadata.uid);
  const updates = () => backend.calls.filter((call) => call.startsWith('update secrets')).length;
  expect(updates()).toBe(1);
  await create('one', 'default', { data: { token: Buffer.from('own').toString('base64'), other: '' } });
  await expect.poll(() => dataOf('one')).toEqual({ ...complete, token: 'own', other: '' });
  await create('other', 'default', { type: 'Opaque' });
  await create('last', 'default');
  await expect.poll(() => dataOf('last')['namespace']).toBe('a');
  expect(secret('other')?.data).toBeUndefined();
});

test('a ServiceAccount loses its reference to a Secret that is deleted', async () => {
  const { backend, create, dataOf } = await started();
  const account = await backend.get(SERVICE_ACCOUNTS, 'a', 'default');
  await backend.set(SERVICE_ACCOUNTS, { ...account, secrets: [{ name: 'one' }, { name: 'two' }] } as never);
  await create('one', 'default');
  await create('two', 'default');
  await expect.poll(() => dataOf('two')['namespace']).toBe('a');
  await backend.remove(SECRETS, 'a', 'one');
  const references = async () => (await backend.get(SERVICE_ACCOUNTS, 'a', 'default')) as { secrets?: object[] };
  await expect.poll(async () => (await references()).secrets).toEqual([{ name: 'two' }]);
});

test('a Secret without its ServiceAccount is deleted', async () => {
  const { backend, create, secret, dataOf } = await started();
  await create('none', 'none');
  await expect.poll(() => secret('none')).toBeUndefined();
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'short', namespace: 'a' } };
  await backend.set(SERVICE_ACCOUNTS, account);
  await create('of-short', 'short');
  await expect.poll(() => dataOf('of-short')['namespace']).toBe('a');
  await backend.remove(SERVICE_ACCOUNTS, 'a', 'short');
  await expect.poll(() => secret('of-short')).toBeUndefined();
});
