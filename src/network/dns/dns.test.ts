import { once } from 'node:events';
import { decode, type Packet } from 'dns-packet';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { SERVICES } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { haveEnded } from '../../platform/processes.ts';
import { askTcp, askUdp, question } from '../dns-server/dns-client-fixture.ts';
import { startTestDns, type TestDns } from './dns-fixture.ts';

const service = (name: string, spec: object): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { ports: [{ port: 80 }], ...spec },
  }) as KubeObject;

let backend: RegistryBackend;
let dns: TestDns;
beforeEach(async () => {
  backend = await registryBackend();
  await backend.set(SERVICES, service('web', { clusterIP: '10.96.0.5' }));
  dns = await startTestDns(clientOf(backend));
});
afterEach(() => dns.remove());

const WEB = 'web.default.svc.cluster.local';
const ask = async (name: string, type: 'A' | 'SRV' = 'A', port = dns.port) =>
  decode(await askUdp(port, question(name, type))) as unknown as Packet & { rcode: string };
const addresses = async (name: string, port?: number) =>
  (await ask(name, 'A', port)).answers?.map((answer) => 'data' in answer && answer.data);

describe('startDns', () => {
  it('a Service resolves from its creation until its deletion', async () => {
    expect((await ask('new.default.svc.cluster.local')).rcode).toBe('NXDOMAIN');
    await backend.set(SERVICES, service('new', { clusterIP: '10.96.0.7' }));
    await expect.poll(() => addresses('new.default.svc.cluster.local')).toEqual(['10.96.0.7']);
    await backend.remove(SERVICES, 'default', 'new');
    await expect.poll(async () => (await ask('new.default.svc.cluster.local')).rcode).toBe('NXDOMAIN');
    expect(await addresses(WEB)).toEqual(['10.96.0.5']);
  });

  it('the process answers without an engine, and the next engine finds it and sends the changes since then', async () => {
    const pid = dns.pid();
    dns.disconnect();
    await backend.remove(SERVICES, 'default', 'web');
    await backend.set(SERVICES, service('new', { clusterIP: '10.96.0.7' }));
    expect(await addresses(WEB)).toEqual(['10.96.0.5']);
    const next = await dns.again();
    expect(next.pid()).toBe(pid);
    expect((await ask(WEB)).rcode).toBe('NXDOMAIN');
    expect(await addresses('new.default.svc.cluster.local')).toEqual(['10.96.0.7']);
  });

  it('a process that was killed is started again and has all records', async () => {
    // The process would choose another port after the restart, so the port is fixed.
    const fixed = await startTestDns(clientOf(backend), { port: await freePort() });
    onTestFinished(() => fixed.remove());
    const pid = fixed.pid() ?? 0;
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => fixed.pid() ?? pid, { timeout: 20_000 }).not.toBe(pid);
    expect(await addresses(WEB, fixed.port)).toEqual(['10.96.0.5']);
  });

  it('a process with other settings is replaced without losing a query', { timeout: 30_000 }, async () => {
    const fixed = await startTestDns(clientOf(backend), { port: await freePort() });
    onTestFinished(() => fixed.remove());
    const pid = fixed.pid() ?? 0;
    fixed.disconnect();
    let [asked, answered, isOver] = [0, 0, false];
    const loop = async (): Promise<void> => {
      while (!isOver) {
        asked += 2;
        for (const each of [await askUdp(fixed.port, question(WEB)), await askTcp(fixed.port, question(WEB))])
          answered += decode(each).answers?.length ?? 0;
      }
    };
    const loops = [loop(), loop(), loop()];
    const next = await fixed.again({ clusterDomain: 'other.local' });
    // Only the new process serves the domain other.local: an answer without an error shows that it has taken over.
    await expect.poll(async () => (await ask('web.default.svc.other.local', 'A', fixed.port)).rcode).toBe('NOERROR');
    isOver = true;
    await Promise.all(loops);
    expect(next.pid()).not.toBe(pid);
    expect(asked).toBeGreaterThan(10);
    expect(answered).toBeGreaterThan(0);
  });

  it('stop() ends the process', async () => {
    const pid = dns.pid() ?? 0;
    await dns.stop();
    // Node.js may not have collected the exit status of its child yet, but haveEnded() does not count a zombie as running.
    expect(await haveEnded([pid], 0, systemTimers())).toBe(true);
  });

  it('an address that is in use is refused with a message that names it', async () => {
    await expect(startTestDns(clientOf(backend), { port: dns.port })).rejects.toThrow(
      `the DNS address 127.0.0.1:${dns.port} is in use`,
    );
  });
});

async function freePort(): Promise<number> {
  const { createServer } = await import('node:net');
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
