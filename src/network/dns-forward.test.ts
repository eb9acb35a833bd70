import { createSocket } from 'node:dgram';
import { getEventListeners, once } from 'node:events';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encode } from 'dns-packet';
import { expect, onTestFinished, test } from 'vitest';
import { createForwarder } from './dns-forward.ts';

/** Starts a name server that returns each query as its response, and a forwarder whose resolv.conf, `file`, names this server. */
async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-dns-'));
  const upstream = createSocket('udp4').bind(0, '127.0.0.1');
  onTestFinished(() => {
    upstream.close();
    rmSync(folder, { recursive: true });
  });
  upstream.on('message', (message, peer) => upstream.send(message, peer.port, peer.address));
  await once(upstream, 'listening');
  const file = join(folder, 'resolv.conf');
  writeFileSync(file, 'nameserver 127.0.0.1\n');
  return { file, forwarder: createForwarder(file, '10.96.0.10', upstream.address().port) };
}

test('a resolv.conf that was absent for some time is read again, even if its modification time is the same', async () => {
  const { file, forwarder } = await start();
  const moved = `${file}.moved`;
  const query = encode({ type: 'query', id: 1, questions: [{ name: 'example.com', type: 'A' }] });
  const ask = () => forwarder.ask(query, 'udp', new AbortController().signal);
  expect(await ask()).toEqual(query);
  renameSync(file, moved);
  await expect(ask()).rejects.toThrow('there is no name server to ask');
  renameSync(moved, file);
  expect(await ask()).toEqual(query);
});

test("forwarding a DNS query leaves no listener on the server's abort signal", async () => {
  const { forwarder } = await start();
  const { signal } = new AbortController();
  const query = encode({ type: 'query', id: 1, questions: [{ name: 'example.com', type: 'A' }] });
  for (let i = 0; i < 3; i++) await forwarder.ask(query, 'udp', signal);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  // If AbortSignal.any() derives a signal from this signal, Node.js stores the derived signal in a set under a symbol.
  const lists = Object.getOwnPropertySymbols(signal).map(
    (key) => Reflect.get(signal, key) as { size?: number } | undefined,
  );
  expect(lists.filter((list) => (list?.size ?? 0) > 0)).toEqual([]);
});
