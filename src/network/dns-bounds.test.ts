/**
 * Tests the limits of the DNS server: the time and the memory that the queries of a client take, and the size of responses. Also tests
 * TCP clients that do not read, or that have closed their side of the connection.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { decode, encode } from 'dns-packet';
import { expect, onTestFinished, test } from 'vitest';
import type { Service } from '../api/generated/types.ts';
import { LocalCopy } from '../client/local-copy.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createResponder } from './dns.ts';
import { withLength } from './dns-forward.ts';
import { serveConnection } from './dns-tcp.ts';
import { zoneServices } from './zone-services.ts';

const STALL_MILLIS = 1000;

/** Returns a responder that knows one Service, which has this number of ports. */
function responder(ports = 1) {
  const services = new LocalCopy<Service>('services', silentLog);
  services.put({
    metadata: { name: 'wide', namespace: 'default' },
    spec: {
      clusterIP: '10.96.0.6',
      ports: Array.from({ length: ports }, (_, i) => ({ name: 'all', protocol: 'TCP', port: i + 1 })),
    },
  } as Service);
  const forwarder = { ask: () => Promise.reject(new Error('no server')) };
  return createResponder(zoneServices(services), forwarder, 'cluster.local', new AbortController().signal);
}
const srv = (name: string): Buffer => encode({ type: 'query', id: 1, questions: [{ name, type: 'SRV' }] });

/** Returns the CPU time of the call in milliseconds. */
async function timeOf(call: () => Promise<unknown>): Promise<number> {
  const began = process.cpuUsage();
  await call();
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 1000;
}

test.each(['wide.default.svc.cluster.local', '_all._tcp.wide.default.svc.cluster.local'])(
  'a DNS query for %s is answered quickly for a Service with 60,000 ports',
  async (name) => {
    const answer = responder(60_000);
    const time = await timeOf(async () => {
      for (let i = 0; i < 15; i++) await answer(srv(name), 'udp');
    });
    expect(time).toBeLessThan(STALL_MILLIS);
    expect(decode((await answer(srv(name), 'udp')) as Buffer)).toMatchObject({ flag_tc: true, answers: [] });
  },
);

test('a DNS response over TCP contains as many records as fit into 65,535 bytes', async () => {
  const name = 'wide.default.svc.cluster.local';
  // A record has 80 bytes; the header has 12, the question 36 and the address record 46.
  const most = Math.floor((65_535 - 94) / 80);
  const whole = decode((await responder(most)(srv(name), 'tcp')) as Buffer);
  expect(whole).toMatchObject({ flag_tc: false, additionals: [{ type: 'A' }] });
  expect(whole.answers).toHaveLength(most);
  for (const ports of [most + 1, 60_000]) {
    const cut = decode((await responder(ports)(srv(name), 'tcp')) as Buffer);
    expect(cut).toMatchObject({ flag_tc: true, additionals: [{ type: 'A' }] });
    expect(cut.answers).toHaveLength(most);
  }
});

/**
 * Returns a DNS message whose header has the given counts in bytes 4 to 11. The first question has a long name. `record` is each further
 * question or record; its name must be a pointer to that long name (at byte 12).
 */
function compressed(counts: [number, number, number, number], record: Buffer): Buffer {
  const header = Buffer.alloc(12);
  for (const [i, count] of counts.entries()) header.writeUInt16BE(count, 4 + 2 * i);
  const name = Buffer.concat([...Array.from({ length: 120 }, () => Buffer.from('\x01a')), Buffer.from([0])]);
  const first = Buffer.concat([header, name, Buffer.from([0, 1, 0, 1])]);
  const others = counts.reduce((sum, count) => sum + count, -1);
  return Buffer.concat([first, ...Array.from({ length: others }, () => record)]);
}

test('a DNS message with thousands of compressed names is refused after reading its header', async () => {
  const answer = responder();
  const question = Buffer.from([0xc0, 12, 0, 1, 0, 1]);
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 10, 0, 0, 1]);
  const messages = [
    compressed([10_800, 0, 0, 0], question),
    compressed([1, 4000, 0, 0], record),
    compressed([1, 0, 4000, 0], record),
    compressed([1, 0, 0, 4000], record),
  ];
  for (const message of messages) {
    let response: Buffer | undefined;
    const time = await timeOf(async () => {
      for (let i = 0; i < 40; i++) response = await answer(message, 'tcp');
    });
    expect(time).toBeLessThan(STALL_MILLIS);
    expect((response as Buffer).readUInt8(3) & 15).toBe(1);
  }
});

const manyQuestions = (count: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => withLength(srv('wide.default.svc.cluster.local'))));

test('the DNS server pauses processing the queries of a TCP client while the client does not read the responses', async () => {
  const count = 1000;
  const answer = Buffer.alloc(60_000);
  let asked = 0;
  let written = 0;
  let reads = false;
  let readOn = (): void => {};
  const socket = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _, done) => {
      written += chunk.length;
      if (reads) done();
      else readOn = done;
    },
  });
  const ended = once(socket, 'finish');
  serveConnection(
    Object.assign(socket, { setTimeout: () => socket }) as unknown as Socket,
    async () => {
      asked += 1;
      return answer;
    },
    silentLog,
  );
  socket.push(manyQuestions(count));
  socket.push(null);
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  expect(asked).toBeGreaterThan(0);
  expect(asked).toBeLessThan(10);
  reads = true;
  readOn();
  await ended;
  expect(written).toBe(count * (2 + answer.length));
});

test('a DNS client that has closed its side of a TCP connection still gets all responses', async () => {
  const answer = responder(800);
  const server = createServer({ allowHalfOpen: true }, (socket) => serveConnection(socket, answer, silentLog));
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.end(manyQuestions(20));
  let bytes = 0;
  for await (const chunk of client) bytes += chunk.length;
  expect(bytes).toBe(20 * withLength((await answer(srv('wide.default.svc.cluster.local'), 'tcp')) as Buffer).length);
});
