import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decode, encode, type Packet } from 'dns-packet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SERVICES } from '../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { systemTimers } from '../platform/node-js.ts';
import { silentLog } from '../platform/silent-log.ts';
import { startDns } from './dns.ts';
import { createForwarder } from './dns-forward.ts';

const service = (name: string, spec: object): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { ports: [{ port: 80 }], ...spec },
  }) as KubeObject;

let folder: string;
let controller: AbortController;
let backend: RegistryBackend;
let port: number;

const start = (signal: AbortSignal) =>
  startDns(
    withInformers({
      client: clientOf(backend),
      ip: '127.0.0.1',
      port: 0,
      clusterDomain: 'cluster.local',
      upstreamFrom: join(folder, 'resolv.conf'),
      timers: systemTimers(),
      log: silentLog,
      signal,
    }),
  );

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-dns-'));
  controller = new AbortController();
  backend = await registryBackend();
  // The only name server is the server itself: names outside the cluster must fail instead of being forwarded in a loop.
  writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\n');
  ({ port } = await start(controller.signal));
});
afterEach(() => {
  controller.abort();
  rmSync(folder, { recursive: true });
});

async function askRaw(message: Buffer): Promise<Buffer> {
  const socket = createSocket('udp4');
  try {
    socket.send(message, port, '127.0.0.1');
    return (await once(socket, 'message'))[0] as Buffer;
  } finally {
    socket.close();
  }
}
const question = (name: string, type: 'A' | 'AAAA' | 'SRV' = 'A', additionals: Packet['additionals'] = []): Buffer =>
  encode({ type: 'query', id: 4711, flags: 256, questions: [{ name, type }], additionals });
const ask = async (...args: Parameters<typeof question>) => {
  const answer = decode(await askRaw(question(...args)));
  expect(answer.id).toBe(4711);
  return answer as typeof answer & { rcode: string };
};

describe('startDns', () => {
  it('the DNS server closes its sockets if the signal aborts at any time during the start', async () => {
    for (let moment = 0; moment < 40; moment++) {
      const stopping = new AbortController();
      const starting = start(stopping.signal).catch(() => undefined);
      for (let step = 0; step < moment; step++) await new Promise<void>((resolve) => process.nextTick(resolve));
      stopping.abort();
      const freed = (await starting)?.port;
      if (freed === undefined) continue;
      const [error] = (await once(connect(freed, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException];
      expect(error.code).toBe('ECONNREFUSED');
    }
  });

  it('the DNS server resolves the name of a Service from its creation until its deletion', async () => {
    expect((await ask('web.default.svc.cluster.local')).rcode).toBe('NXDOMAIN');
    await backend.set(SERVICES, service('web', { clusterIP: '10.96.0.5' }));
    const found = await ask('web.default.svc.cluster.local');
    expect(found).toMatchObject({ rcode: 'NOERROR', flag_aa: true, flag_ra: true, flag_rd: true });
    expect(found.answers).toMatchObject([{ type: 'A', data: '10.96.0.5', ttl: 5 }]);
    const none = await ask('web.default.svc.cluster.local', 'AAAA');
    expect(none).toMatchObject({ rcode: 'NOERROR', answers: [], authorities: [{ type: 'SOA', ttl: 5 }] });
    await backend.remove(SERVICES, 'default', 'web');
    expect(await ask('web.default.svc.cluster.local')).toMatchObject({
      rcode: 'NXDOMAIN',
      authorities: [{ type: 'SOA', name: 'cluster.local' }],
    });
  });

  it('the DNS server answers queries with EDNS and truncates responses that are too long for UDP', async () => {
    const ports = Array.from({ length: 20 }, (_, i) => ({ name: `port-${i}`, port: 1000 + i }));
    await backend.set(SERVICES, service('wide', { clusterIP: '10.96.0.6', ports }));
    const opt = {
      type: 'OPT' as const,
      name: '.',
      udpPayloadSize: 4096,
      extendedRcode: 0,
      ednsVersion: 0,
      flags: 0,
      flag_do: false,
      options: [],
    };
    expect((await ask('wide.default.svc.cluster.local', 'A', [opt])).additionals).toMatchObject([{ type: 'OPT' }]);
    const cut = await ask('wide.default.svc.cluster.local', 'SRV');
    expect(cut).toMatchObject({ flag_tc: true, answers: [] });

    const socket = connect(port, '127.0.0.1');
    const query = question('wide.default.svc.cluster.local', 'SRV');
    // TCP may deliver the length and the message in pieces.
    socket.write(Buffer.from([0]));
    socket.write(Buffer.concat([Buffer.from([query.length]), query.subarray(0, 5)]));
    socket.write(query.subarray(5));
    let bytes = Buffer.alloc(0);
    while (bytes.length < 2 || bytes.length < 2 + bytes.readUInt16BE(0)) {
      bytes = Buffer.concat([bytes, (await once(socket, 'data'))[0] as Buffer]);
    }
    socket.destroy();
    expect(decode(bytes.subarray(2)).answers).toHaveLength(20);
  });

  it('the DNS server returns SERVFAIL without a working name server, and keeps running after malformed messages', async () => {
    expect((await ask('example.com')).rcode).toBe('SERVFAIL');
    const bad = Buffer.concat([question('a.cluster.local').subarray(0, 14), Buffer.from([0xff])]);
    expect((await askRaw(bad)).readUInt8(3) & 15).toBe(1);
    const notify = question('a.cluster.local');
    notify.writeUInt8(0x20, 2);
    expect((await askRaw(notify)).readUInt8(3) & 15).toBe(4);
    expect((await ask('a.cluster.local')).rcode).toBe('NXDOMAIN');
  });

  it('startDns() rejects with an error that contains the address if the address is in use', async () => {
    const options = { client: clientOf(backend), ip: '127.0.0.1', port, clusterDomain: 'cluster.local' };
    const more = { upstreamFrom: '/dev/null', timers: systemTimers(), log: silentLog, signal: controller.signal };
    await expect(startDns(withInformers({ ...options, ...more }))).rejects.toThrow(
      `the DNS address 127.0.0.1:${port} is in use`,
    );
  });
});

describe('createForwarder', () => {
  it('the forwarder queries the next name server if one does not respond, over UDP and TCP', async () => {
    await backend.set(SERVICES, service('web', { clusterIP: '10.96.0.5' }));
    // No server listens on this port of 127.0.0.2, so the connection is refused immediately.
    const file = join(folder, 'two.conf');
    writeFileSync(file, 'nameserver 127.0.0.2\nnameserver 127.0.0.1\n');
    const forwarder = createForwarder(file, '10.96.0.10', port);
    for (const transport of ['udp', 'tcp'] as const) {
      const answer = decode(
        await forwarder.ask(question('web.default.svc.cluster.local'), transport, controller.signal),
      );
      expect(answer).toMatchObject({ id: 4711, answers: [{ data: '10.96.0.5' }] });
    }
    writeFileSync(file, 'search none\n');
    await expect(forwarder.ask(question('x'), 'udp', controller.signal)).rejects.toThrow('no name server');
  });
});
