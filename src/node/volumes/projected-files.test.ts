import { expect, it } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Client } from '../../client/client.ts';
import { collectProjected, dataReader, type PayloadSource } from './projected-files.ts';

it('an object is read and decoded once for all sources of a volume', async () => {
  let reads = 0;
  const client: Pick<Client, 'resource'> = {
    resource: () =>
      ({
        async get() {
          reads++;
          return { data: { key: 'dGhlIHZhbHVl' }, binaryData: { binary: 'dGhlIHZhbHVl' } };
        },
      }) as never,
  };
  const pod = podOf({});
  const source = {
    client,
    pod,
    read: dataReader(client as Client, pod),
    tokens: new Map(),
    now: () => 0,
    facts: { nodeName: 'n', hostIps: [], podIps: [], allocatable: {} },
  } as unknown as PayloadSource;
  const sources = Array.from({ length: 300 }, (_, index) => {
    const items = [{ key: 'key', path: `file-${index}` }];
    return index % 2 === 0 ? { configMap: { name: 'many', items } } : { secret: { name: 'many', items } };
  });
  const { files } = await collectProjected(source, sources);
  expect(files.size).toBe(300);
  expect(String(files.get('file-298')?.data)).toBe('dGhlIHZhbHVl');
  expect(String(files.get('file-299')?.data)).toBe('the value');
  expect(files.get('file-298')?.data).toBe(files.get('file-0')?.data);
  expect(reads).toBe(2);
});
