import { decode, type Packet } from 'dns-packet';
import { describe, expect, it } from 'vitest';
import { opt, question } from './dns-client-fixture.ts';
import type { Forwarder } from './forwarder.ts';
import { createResponder } from './responder.ts';
import type { Transport } from './response.ts';
import { StoredZone } from './zone-data.ts';

const zone = new StoredZone(1000);
zone.put({ op: 'put', kind: 'namespace', record: { name: 'ns1' } });
const addService = (name: string, more: object): void =>
  zone.put({ op: 'put', kind: 'service', record: { namespace: 'ns1', name, ips: [], ports: [], ...more } });
const addEndpoints = (service: string, count: number): void =>
  zone.put({
    op: 'put',
    kind: 'slice',
    record: {
      namespace: 'ns1',
      name: `${service}-1`,
      service,
      ports: [{ name: 'http', protocol: 'tcp', port: 80 }],
      endpoints: Array.from({ length: count }, (_, i): [string, string] => [`10.0.${i >> 8}.${i & 255}`, `pod-${i}`]),
    },
  });
addService('web', { ips: ['10.96.0.5', 'fd00::5'] });
addService('few', {});
addEndpoints('few', 3);
addService('many', {});
addEndpoints('many', 5000);
addService('chain', { externalName: 'loop.ns1.svc.cluster.local' });
addService('loop', { externalName: 'loop.ns1.svc.cluster.local' });
addService('inside', { externalName: 'web.ns1.svc.cluster.local' });
addService('outside', { externalName: 'example.com' });
addService('missing', { externalName: 'none.ns1.svc.cluster.local' });
addService('four', { externalName: 'few.ns1.svc.cluster.local' });

const forwarder: Forwarder = {
  stored: () => undefined,
  ask: () => Promise.reject(new Error('no server')),
  idle: async () => undefined,
};
const answer = createResponder({ data: () => zone, forwarder, domain: 'cluster.local' });
type Decoded = Packet & { rcode: string; flag_tc: boolean; flag_aa: boolean };
const raw = async (message: Buffer, transport: Transport = 'udp') =>
  (await answer(message, transport, '127.0.0.1')) as Buffer;
const ask = async (...args: Parameters<typeof raw>) => decode(await raw(...args)) as unknown as Decoded;
const of = (name: string) => `${name}.ns1.svc.cluster.local`;

describe('createResponder', () => {
  it('the response repeats the question in the case of the client', async () => {
    const found = await ask(question('WEB.ns1.svc.Cluster.local'));
    expect(found).toMatchObject({
      rcode: 'NOERROR',
      flag_aa: true,
      flag_ra: true,
      flag_rd: true,
      questions: [{ name: 'WEB.ns1.svc.Cluster.local' }],
      answers: [{ name: 'WEB.ns1.svc.Cluster.local', type: 'A', data: '10.96.0.5', ttl: 5 }],
      authorities: [],
      additionals: [],
    });
    expect((await ask(question(of('web'), 'AAAA'))).answers).toMatchObject([{ type: 'AAAA', data: 'fd00::5' }]);
  });

  it.each([
    [of('none'), 'NXDOMAIN'],
    [of('few'), 'NOERROR'],
    ['cluster.local', 'NOERROR'],
    ['svc.cluster.local', 'NOERROR'],
    ['ns1.svc.cluster.local', 'NOERROR'],
    ['nothing.cluster.local', 'NXDOMAIN'],
    ['10-0-0-7.ns1.pod.cluster.local', 'NOERROR'],
    ['5.0.96.10.in-addr.arpa', 'NOERROR', 'in-addr.arpa'],
    [`5.${'0.'.repeat(27)}0.0.d.f.ip6.arpa`, 'NOERROR', 'ip6.arpa'],
  ])('a negative answer for %s has an SOA record that states how long it may be cached', async (...row) => {
    const [name, rcode, origin = 'cluster.local'] = row;
    expect(await ask(question(name, 'AAAA'))).toMatchObject({
      rcode,
      answers: [],
      authorities: [{ name: origin, type: 'SOA', ttl: 5, data: { mname: `ns.dns.${origin}`, minimum: 5 } }],
    });
  });

  it.each([
    ['missing', 'NXDOMAIN'],
    ['four', 'NOERROR'],
  ])(
    'the answer for the alias %s, whose target in the cluster has no address, has an SOA record',
    async (name, rcode) => {
      expect(await ask(question(of(name), 'AAAA'))).toMatchObject({
        rcode,
        answers: [{ type: 'CNAME' }],
        authorities: [{ name: 'cluster.local', type: 'SOA' }],
      });
    },
  );

  it('each address of an answer takes 16 bytes, and the first address differs from one response to the next', async () => {
    const first = await raw(question(of('few')));
    expect(first.length).toBe(question(of('few')).length + 3 * 16);
    const firsts = new Set<unknown>();
    for (let i = 0; i < 3; i++)
      firsts.add((await ask(question(of('few')))).answers?.map((each) => 'data' in each && each.data)[0]);
    expect(firsts.size).toBe(3);
  });

  it('SRV records have uncompressed targets, whose addresses are additional records', async () => {
    const name = '_http._tcp.few.ns1.svc.cluster.local';
    const { answers, additionals } = await ask(question(name, 'SRV'), 'tcp');
    expect(answers?.map((each) => 'data' in each && each.data)).toMatchObject(
      [0, 1, 2].map((i) => ({ port: 80, target: `pod-${i}.few.ns1.svc.cluster.local` })),
    );
    expect(additionals).toMatchObject(
      [0, 1, 2].map((i) => ({ name: `pod-${i}.few.ns1.svc.cluster.local`, data: `10.0.0.${i}` })),
    );
  });

  it.each([
    ['without EDNS', undefined, 512],
    ['with a smaller size than 512 bytes', 100, 512],
    ['with 1000 bytes', 1000, 1000],
    ['with more than is safe from fragmentation', 65_000, 1232],
  ])('a UDP client %s gets as many addresses as fit, and the flag to use TCP', async (_, size, limit) => {
    const message = await raw(question(of('many'), 'A', size === undefined ? [] : [opt(size)]));
    expect(message.length).toBeLessThanOrEqual(limit);
    expect(message.length).toBeGreaterThan(limit - 16);
    const { flag_tc, answers, additionals } = decode(message) as unknown as Decoded;
    expect({ flag_tc, opt: additionals?.length }).toEqual({ flag_tc: true, opt: size === undefined ? 0 : 1 });
    expect(answers?.length).toBeGreaterThan(25);
  });

  it('a TCP client gets up to 65,535 bytes', async () => {
    const message = await raw(question(of('many'), 'A'), 'tcp');
    const { flag_tc, answers } = decode(message) as unknown as Decoded;
    expect({ flag_tc, count: answers?.length }).toEqual({ flag_tc: true, count: Math.floor((65_535 - 12 - 27) / 16) });
  });

  it('SRV records with the shortest names fill a response over TCP, and it is marked as truncated', async () => {
    const short = new StoredZone(1000);
    short.put({ op: 'put', kind: 'namespace', record: { name: 'c' } });
    short.put({ op: 'put', kind: 'service', record: { namespace: 'c', name: 'b', ips: [], ports: [] } });
    const ports = Array.from({ length: 100 }, (_, i) => ({ name: `p${i}`, protocol: 'tcp', port: i + 1 }));
    const endpoints = Array.from({ length: 36 }, (_, i): [string, string] => [`10.0.0.${i}`, i.toString(36)]);
    short.put({ op: 'put', kind: 'slice', record: { namespace: 'c', name: 'b-1', service: 'b', ports, endpoints } });
    const respond = createResponder({ data: () => short, forwarder, domain: 'd' });
    const message = (await respond(question('b.c.svc.d', 'SRV'), 'tcp', '127.0.0.1')) as Buffer;
    expect((decode(message) as unknown as Decoded).flag_tc).toBe(true);
    expect(message.length).toBeGreaterThan(65_535 - 31);
  });

  it('the response to a query with thousands of records takes little time', async () => {
    const began = process.cpuUsage();
    for (let i = 0; i < 15; i++) await raw(question(of('many'), 'SRV'), 'tcp');
    const { user, system } = process.cpuUsage(began);
    expect((user + system) / 1000).toBeLessThan(1500);
  });

  it('an alias is followed within the cluster, and not endlessly', async () => {
    expect((await ask(question(of('inside')))).answers).toMatchObject([
      { type: 'CNAME', data: of('web') },
      { name: of('web'), type: 'A', data: '10.96.0.5' },
    ]);
    expect((await ask(question(of('inside'), 'SRV'))).answers).toMatchObject([{ type: 'CNAME' }]);
    expect((await ask(question(of('chain')))).answers?.length).toBeLessThan(12);
    expect(await ask(question(of('outside')))).toMatchObject({ rcode: 'SERVFAIL', answers: [{ data: 'example.com' }] });
  });

  it('queries that the server does not support are refused', async () => {
    expect((await ask(question(of('web'), 'AXFR'))).rcode).toBe('REFUSED');
    const chaos = question(of('web'));
    chaos.writeUInt16BE(3, chaos.length - 2);
    expect((await ask(chaos)).rcode).toBe('REFUSED');
    const bad = await ask(question(of('web'), 'A', [opt(1232, { ednsVersion: 1 })]));
    expect(bad).toMatchObject({ answers: [], additionals: [{ type: 'OPT', extendedRcode: 1 }] });
    expect((await ask(question('example.com'))).rcode).toBe('SERVFAIL');
  });

  it('a name with a dot within a label does not exist, and is not compressed wrongly', async () => {
    const message = Buffer.concat([
      question('x').subarray(0, 12),
      Buffer.from('\x07web.ns1\x03svc\x07cluster\x05local\0\0\x01\0\x01', 'latin1'),
    ]);
    expect(await ask(message)).toMatchObject({ rcode: 'NXDOMAIN', authorities: [{ name: 'cluster.local' }] });
  });
});
