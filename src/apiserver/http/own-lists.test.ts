import { once } from 'node:events';
import { expect, test } from 'vitest';
import { startTestServer } from '../server-fixture.ts';

const LISTS = '/api/v1/namespaces/default/configmaps';

test('a page does not wait for a long list, and the list is aborted when its client disconnects', async () => {
  const began = Promise.withResolvers<AbortSignal>();
  await using at = await startTestServer();
  const { list } = at.backend;
  at.backend.list = async (request, options) => {
    if (options.labelSelector === undefined) return list(request, options);
    const { signal } = request;
    began.resolve(signal);
    await once(signal, 'abort');
    throw signal.reason;
  };
  const client = new AbortController();
  const long = at.call('GET', `${LISTS}?continue=abc&labelSelector=a`, { signal: client.signal });
  const left = expect(long).rejects.toThrow('aborted');
  const signal = await began.promise;
  expect((await at.call('GET', `${LISTS}?limit=500`)).code).toBe(200);
  expect(signal.aborted).toBe(false);
  const aborted = once(signal, 'abort');
  client.abort();
  await Promise.all([left, aborted]);
});
