import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemTimers } from '../../platform/node-js.ts';
import { silentLog } from '../../platform/silent-log.ts';
import type { Hello } from '../dns-server/protocol.ts';
import { openDnsProcess } from './process.ts';

test('a DNS process that ends between its greeting and the request to replace it is replaced without an unhandled error', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-dns-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const socket = join(folder, 'dns.sock');
  let pid = 0;
  const server = createServer((connection) => {
    connection.on('error', () => undefined);
    const hello: Hello = { identity: 'another', pid: ++pid, port: 53 };
    // The first process ends as soon as it has greeted, so that the request fails with EPIPE. The second process stays connected.
    connection.write(`${JSON.stringify({ hello })}\n`, () => pid === 1 && connection.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(socket, resolve);
  });
  const settings = { addresses: ['127.0.0.1'], port: 0, domain: 'cluster.local', resolvConf: join(folder, 'none') };
  const common = { settings, log: silentLog, timers: systemTimers() };
  const connection = await openDnsProcess({ socket, logFile: join(folder, 'dns.log'), ...common });
  onTestFinished(() => void server.close());
  onTestFinished(() => void connection.socket.destroy());
  expect(connection.hello.pid).toBe(2);
  connection.socket.destroy(new Error('an error of the socket'));
  await expect(connection.closed).resolves.toBeUndefined();
});
