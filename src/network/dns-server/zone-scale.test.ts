import { expect, test } from 'vitest';
import { TYPE } from './message.ts';
import type { SliceRecord } from './protocol.ts';
import { answerQuestion, type ZoneAnswer } from './zone.ts';
import { StoredZone } from './zone-data.ts';

const SLICES = 100;
const ENDPOINTS_OF_SLICE = 100;
const MOST = { addresses: 50, services: 30 };

type Endpoints = SliceRecord['endpoints'];

function countedZone(): { zone: StoredZone; put: (slice: number, endpoints: Endpoints) => void; reads: () => number } {
  const zone = new StoredZone(1);
  let reads = 0;
  const counted = (endpoints: Endpoints): Endpoints =>
    new Proxy(endpoints, {
      get(target, key) {
        if (typeof key === 'string' && /^\d+$/.test(key)) reads += 1;
        return Reflect.get(target, key);
      },
    });
  zone.put({ op: 'put', kind: 'namespace', record: { name: 'ns' } });
  zone.put({ op: 'put', kind: 'service', record: { namespace: 'ns', name: 'big', ips: [], ports: [] } });
  return {
    zone,
    put(slice, endpoints) {
      const ports = [{ name: 'http', protocol: 'tcp', port: 80 }];
      const record = { namespace: 'ns', name: `big-${slice}`, service: 'big', ports, endpoints: counted(endpoints) };
      zone.put({ op: 'put', kind: 'slice', record });
    },
    reads() {
      const before = reads;
      reads = 0;
      return before;
    },
  };
}

const endpointsOf = (slice: number, prefix = '10.0', separator = '.'): Endpoints =>
  Array.from({ length: ENDPOINTS_OF_SLICE }, (_, i) => [
    [prefix, slice, i + 1].join(separator),
    i % 2 === 0 ? '' : `Pod-${slice}-${i}`,
  ]);

function bigZone() {
  const counted = countedZone();
  for (let slice = 0; slice < SLICES; slice++) counted.put(slice, endpointsOf(slice));
  const ask = (name: string, type: keyof typeof TYPE): ZoneAnswer =>
    answerQuestion(`${name}.ns.svc.cluster.local`.split('.'), TYPE[type], 'cluster.local', counted.zone, MOST);
  ask('10-0-0-1.big', 'A');
  counted.reads();
  return { ...counted, ask };
}

const countOf = (answer: ZoneAnswer): number => (answer.kind === 'records' ? answer.answers.length : 0);

test.each([
  ['big', 'A', 'records', MOST.addresses],
  ['big', 'SRV', 'records', MOST.services],
  ['big', 'AAAA', 'noData', 0],
  ['big', 'TXT', 'noData', 0],
  ['_http._tcp.big', 'SRV', 'records', MOST.services],
  ['_http._tcp.big', 'A', 'noData', 0],
  ['_other._tcp.big', 'SRV', 'nxDomain', 0],
  ['10-0-99-99.big', 'A', 'records', 1],
  ['pod-99-99.big', 'SRV', 'records', 1],
  ['other.big', 'A', 'nxDomain', 0],
] as const)('a query for %s of type %s reads only a small part of 10,000 endpoints', (name, type, kind, count) => {
  const { ask, reads } = bigZone();
  const answer = ask(name, type);
  expect([answer.kind, countOf(answer)]).toEqual([kind, count]);
  expect(reads()).toBeLessThanOrEqual(2 * SLICES);
});

test('a change of one of 100 slices reads no endpoints of the others', () => {
  const { ask, put, reads } = bigZone();
  put(7, [['10.9.9.9', 'changed'], ...endpointsOf(7).slice(1)]);
  expect(ask('changed.big', 'A')).toMatchObject({ answers: [{ type: 'A', data: '10.9.9.9' }] });
  expect(ask('10-0-7-1.big', 'A').kind).toBe('nxDomain');
  expect(reads()).toBeLessThanOrEqual(6 * ENDPOINTS_OF_SLICE);
});

test('the addresses of one family leave room for those of the other, however many there are', () => {
  const { put, ask } = bigZone();
  put(SLICES, endpointsOf(0, 'fd00:', ':'));
  expect(countOf(ask('big', 'AAAA'))).toBe(MOST.addresses);
  put(
    0,
    Array.from({ length: ENDPOINTS_OF_SLICE }, (_, i) => [`10.0.0.${i + 1}`, 'same']),
  );
  put(SLICES, [['fd00::1', 'same']]);
  expect(ask('same.big', 'AAAA')).toMatchObject({ answers: [{ type: 'AAAA', data: 'fd00::1' }] });
  expect(countOf(ask('same.big', 'A'))).toBe(MOST.addresses);
});

test('a reverse query reads no more names of an address than an answer has', () => {
  let read = 0;
  class Counting extends StoredZone {
    override *endpointsAt(key: string) {
      for (const each of super.endpointsAt(key)) {
        read += 1;
        yield each;
      }
    }
  }
  const zone = new Counting(1);
  fillAddress(zone, 1000, () => '10.0.0.7');
  const answer = answerQuestion('7.0.0.10.in-addr.arpa'.split('.'), TYPE.PTR, 'cluster.local', zone, MOST);
  expect(countOf(answer)).toBe(100);
  expect(read).toBeLessThanOrEqual(101);
});

function fillAddress(zone: StoredZone, count: number, address: (i: number) => string): void {
  for (let i = 0; i < count; i++) {
    const record = { namespace: 'ns', name: `s-${i}`, service: `s-${i}`, ports: [] };
    zone.put({ op: 'put', kind: 'slice', record: { ...record, endpoints: [[address(i), 'pod']] } });
  }
}

test('the removal of a slice does not get slower with the number of slices that have the same address', () => {
  const count = 10_000;
  const cost = (address: (i: number) => string): number => {
    const zone = new StoredZone(1);
    fillAddress(zone, count, address);
    const before = process.cpuUsage();
    for (let i = count - 1; i >= 0; i--) zone.remove('slice', 'ns', `s-${i}`);
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  const own = cost((i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
  expect(cost(() => '10.0.0.7')).toBeLessThan(3 * own + 50_000);
});
