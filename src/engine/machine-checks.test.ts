import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { checkPortFree, missingPackages } from './machine-checks.ts';

test('a taken port is refused with what to do; the same port is accepted once it is free', async () => {
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

test("the machine's own runtime needs neither containerd nor what its sandboxes are of, nor its network's plugins", () => {
  const nothing = () => undefined;
  expect(missingPackages(false, nothing)).toEqual(['nftables', 'iproute2']);
  expect(missingPackages(true, nothing)).toEqual([
    ...['nftables', 'iproute2', 'catatonit', 'containerd', 'runc', 'containernetworking-plugins'],
  ]);
});
