import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { nodePlatform } from '../platform/node-js.ts';
import { silentLog } from '../platform/silent-log.ts';
import { checkAddresses, networkWarnings } from './engine-network.ts';
import { resolveSettings } from './settings.ts';

test('an interrupted start does not log that the packet filter cannot be examined', async () => {
  const warn = vi.fn();
  const platform = { ...nodePlatform('error'), log: { ...silentLog, warn } };
  const settings = resolveSettings({ dataDir: '/nonexistent', nodeName: 'node' }, undefined);
  expect(await networkWarnings(settings, platform, AbortSignal.abort())).toEqual([]);
  expect(warn).not.toHaveBeenCalled();
});

test.each([false, true])(
  'a program on the port is asked for its version only if other engines run: %s',
  async (isEngine) => {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.on('error', () => undefined).end();
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const settings = resolveSettings({ dataDir: '/nonexistent', nodeName: 'node', port }, undefined);
    const { signal } = new AbortController();
    await expect(checkAddresses(settings, undefined, signal, () => isEngine)).rejects.toThrow(
      `port ${port} on 127.0.0.1 is in use by another program`,
    );
    expect(connections).toBe(isEngine ? 1 : 0);
  },
);
