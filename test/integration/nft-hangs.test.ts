import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Section } from '../../src/network/nftables/section.ts';
import { openTable } from '../../src/network/nftables/table.ts';
import { createNetworkNamespace } from '../support/network-namespace.ts';

const accepting = (chain: string): Section => new Map([['x', { chains: [{ name: chain, rules: ['accept'] }] }]]);

test('a transaction of an nft that hangs fails with what to do, and the next one writes its section again', async () => {
  await using namespace = await createNetworkNamespace();
  const folder = await mkdtemp(join(tmpdir(), 'lifepod-nft-'));
  onTestFinished(async () => {
    process.env['PATH'] = (process.env['PATH'] ?? '').replace(`${folder}${delimiter}`, '');
    await rm(folder, { recursive: true });
  });
  await writeFile(join(folder, 'nft'), '#!/bin/sh\nexec sleep 600\n');
  await chmod(join(folder, 'nft'), 0o755);
  const { signal } = new AbortController();
  const table = openTable({ name: 'lifepod-0', namespace: namespace.name, signal, limitMillis: 5000 });
  await table.set('services', accepting('services/first'));
  const { PATH: path = '' } = process.env;
  process.env['PATH'] = `${folder}${delimiter}${path}`;
  const failed = [table.set('services', accepting('services/second')), table.set('pods', accepting('pods/x'))];
  for (const result of await Promise.allSettled(failed)) {
    expect(result).toMatchObject({
      status: 'rejected',
      reason: { message: expect.stringMatching(/^nft did not end within 5 s and was killed: .*'nft list tables'/) },
    });
  }
  process.env['PATH'] = path;
  await table.set('services', accepting('services/third'));
  await table.set('pods', accepting('pods/y'));
  const chains = (await namespace.runOk('nft', ['list', 'ruleset'])).match(/(?<=chain )\S+/g);
  expect(chains?.sort()).toEqual(['pods/y', 'services/third']);
});
