/** Tests that stale entries of connection tracking are deleted, with the real kernel and conntrack(8), in a network namespace. */
import { expect, test } from 'vitest';
import { deleteStaleFlows } from '../../src/network/proxy/stale-flows.ts';
import { createNetworkNamespace } from '../support/network-namespace.ts';

const { signal } = new AbortController();

test('all stale entries of a frontend are deleted, however many there are, and no others', async () => {
  await using namespace = await createNetworkNamespace();
  const clients = 250;
  // Each client has been sent to another endpoint.
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
  await deleteStaleFlows([frontend], signal, namespace.name);
  expect(await targets('10.96.0.1')).toEqual(['10.99.1.7']);
  expect(await targets('10.96.0.2')).toHaveLength(clients);
}, 120_000);
