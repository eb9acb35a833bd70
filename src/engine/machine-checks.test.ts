import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { checkPortFree, missingPackages } from './machine-checks.ts';

test('a port in use is refused with the options to change, and accepted once it is free', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await expect(checkPortFree('127.0.0.1', port)).rejects.toThrow(
    `port ${port} on 127.0.0.1 is in use by another program: choose another with --port, or use --port 0 for a free one`,
  );
  server.close();
  await once(server, 'close');
  await checkPortFree('127.0.0.1', port);
});

test('an address that the machine does not have is refused, also with port 0', async () => {
  const message = 'this machine does not have the address 192.0.2.77: choose another with --bind-address';
  for (const port of [0, 6443]) await expect(checkPortFree('192.0.2.77', port)).rejects.toThrow(message);
});

test('only the private containerd needs the packages of containerd, runc, catatonit and the CNI plugins', () => {
  const nothing = () => undefined;
  expect(missingPackages(false, nothing)).toEqual(['nftables', 'conntrack', 'iproute2', 'util-linux', 'mount']);
  expect(missingPackages(true, nothing)).toEqual([
    'nftables',
    'conntrack',
    'iproute2',
    'util-linux',
    'mount',
    'catatonit',
    'containerd',
    'runc',
    'containernetworking-plugins',
  ]);
});
