import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { deleteStaleFlows, frontendId } from '../../src/network/proxy/stale-flows.ts';
import { createNetworkNamespace } from '../support/network-namespace.ts';

const { signal } = new AbortController();

test('all stale entries of a frontend are deleted, however many there are, and no others', async () => {
  await using namespace = await createNetworkNamespace();
  const clients = 250;
  // The flow of each client has an endpoint of its own.
  const insert = (address: string, firstPort: number): string => `
    for i in $(seq 1 ${clients}); do
      conntrack -I -p udp -t 600 -s 10.99.0.12 -d ${address} --sport $((${firstPort} + i)) --dport 53 \\
        -r 10.99.1.$i -q 10.99.0.12 --reply-port-src 53 --reply-port-dst $((${firstPort} + i)) 2>/dev/null
    done`;
  await namespace.runOk('sh', ['-e', '-c', `${insert('10.96.0.1', 4000)}\n${insert('10.96.0.2', 5000)}`]);
  const targets = async (address: string): Promise<string[]> => {
    const dumped = await namespace.runOk('conntrack', ['--dump', '--proto', 'udp', '--orig-dst', address]);
    return [...dumped.matchAll(/ src=(10\.99\.1\.\d+) /g)].map(([, target = '']) => target);
  };
  expect(await targets('10.96.0.1')).toHaveLength(clients);
  const frontend = { address: '10.96.0.1', port: 53, family: 'IPv4', targets: new Set(['10.99.1.7 . 53']) } as const;
  await deleteStaleFlows(new Map([[frontendId(frontend), frontend]]), { signal, namespace: namespace.name });
  expect(await targets('10.96.0.1')).toEqual(['10.99.1.7']);
  expect(await targets('10.96.0.2')).toHaveLength(clients);
}, 120_000);

/** Replaces conntrack(8) with a program that only waits, until the test has finished. */
async function hangConntrack(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'lifepod-conntrack-'));
  const { PATH: path = '' } = process.env;
  onTestFinished(async () => {
    process.env['PATH'] = path;
    await rm(folder, { recursive: true });
  });
  await writeFile(join(folder, 'conntrack'), '#!/bin/sh\nexec sleep 600\n', { mode: 0o755 });
  process.env['PATH'] = `${folder}${delimiter}${path}`;
}

test('an examination whose conntrack hangs fails with an error that names conntrack', async () => {
  await using namespace = await createNetworkNamespace();
  await hangConntrack();
  const frontend = { address: '10.96.0.1', port: 53, family: 'IPv4', targets: new Set<string>() } as const;
  const frontends = new Map([[frontendId(frontend), frontend]]);
  const limits = { signal, namespace: namespace.name, limitMillis: 2000 };
  await expect(deleteStaleFlows(frontends, limits)).rejects.toThrow(
    'conntrack made no progress for 2 s and was killed',
  );
});
