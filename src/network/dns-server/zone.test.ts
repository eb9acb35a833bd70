import { describe, expect, it } from 'vitest';
import { TYPE } from './message.ts';
import type { PortRecord, ServiceRecord, SliceRecord } from './protocol.ts';
import { answerQuestion, type ZoneAnswer, type ZoneRecord } from './zone.ts';
import { StoredZone } from './zone-data.ts';

const zone = new StoredZone(1);
const port = (number: number, name = '', protocol = 'tcp'): PortRecord => ({ name, protocol, port: number });
const service = (namespace: string, name: string, more: Partial<ServiceRecord>): void =>
  zone.put({ op: 'put', kind: 'service', record: { namespace, name, ips: [], ports: [], ...more } });
const slice = (name: string, more: Omit<SliceRecord, 'namespace' | 'name'>): void =>
  zone.put({ op: 'put', kind: 'slice', record: { namespace: 'ns1', name, ...more } });
for (const name of ['default', 'ns1', 'empty', 'kube-system'])
  zone.put({ op: 'put', kind: 'namespace', record: { name } });

service('default', 'kubernetes', { ips: ['10.96.0.1'], ports: [port(443, 'https')] });
service('kube-system', 'kube-dns', { ips: ['10.96.0.10', 'fd00::a'], ports: [port(53, 'dns', 'udp')] });
service('ns1', 'web', { ips: ['10.96.0.5'], ports: [port(80, 'http'), port(53, 'dns', 'udp')] });
slice('web-1', { service: 'web', ports: [port(8080, 'http')], endpoints: [['10.0.0.4', '']] });
service('ns1', 'dual', { ips: ['10.96.0.6', 'fd00::6'], ports: [port(80)] });
service('ns1', 'noport', { ips: ['10.96.0.7'] });
service('ns1', 'none', {});
service('ns1', 'db', {});
slice('db-1', {
  service: 'db',
  ports: [port(5432, 'sql')],
  endpoints: [
    ['10.0.0.1', 'db-0'],
    ['10.0.0.2', 'DB-1'],
  ],
});
slice('db-2', {
  service: 'db',
  ports: [port(5432, 'sql')],
  endpoints: [
    ['10.0.0.3', ''],
    ['10.0.0.1', 'db-0'],
  ],
});
slice('db-6', {
  service: 'db',
  ports: [port(5432, 'sql')],
  endpoints: [
    ['fd00:1::1', 'db-0'],
    ['fd00:1::3', ''],
  ],
});
service('ns1', 'portless', {});
slice('portless-1', { service: 'portless', ports: [], endpoints: [['10.0.0.9', '']] });
service('ns1', 'out', { externalName: 'example.com' });
service('ns1', 'address', { externalName: '192.0.2.1' });

/** Formats the answer in one line. A semicolon precedes the additional records. */
const show = (answer: ZoneAnswer): string => {
  if (answer.kind !== 'records' && answer.kind !== 'alias') return answer.kind;
  const text = ({ name, type, data }: ZoneRecord): string =>
    [name ?? '', type, ...(typeof data === 'string' ? [data] : Object.values(data).map(String))]
      .filter((word) => word !== '')
      .join(' ')
      .replaceAll('svc.cluster.local', '~');
  const extra = answer.kind === 'records' ? answer.additionals : [];
  return [...answer.answers.map(text), ...(extra.length === 0 ? [] : ['']), ...extra.map(text)]
    .join(', ')
    .replace(', , ', '; ');
};
const answer = (name: string, type: keyof typeof TYPE) =>
  show(answerQuestion(name.split('.'), TYPE[type], 'cluster.local', zone, { addresses: 100, services: 100 }));

describe('answerQuestion', () => {
  const table: [string, keyof typeof TYPE, string][] = [
    ['kubernetes.default.svc.cluster.local', 'A', 'A 10.96.0.1'],
    ['web.ns1.svc.cluster.local', 'A', 'A 10.96.0.5'],
    ['web.ns1.svc.cluster.local', 'ANY', 'A 10.96.0.5'],
    ['web.ns1.svc.cluster.local', 'AAAA', 'noData'],
    ['web.ns1.svc.cluster.local', 'TXT', 'noData'],
    ['web.ns1.svc.cluster.local', 'SRV', 'SRV 0 100 80 web.ns1.~, SRV 0 100 53 web.ns1.~; web.ns1.~ A 10.96.0.5'],
    ['_http._tcp.web.ns1.svc.cluster.local', 'SRV', 'SRV 0 100 80 web.ns1.~; web.ns1.~ A 10.96.0.5'],
    ['_dns._udp.web.ns1.svc.cluster.local', 'SRV', 'SRV 0 100 53 web.ns1.~; web.ns1.~ A 10.96.0.5'],
    ['_http._tcp.web.ns1.svc.cluster.local', 'A', 'noData'],
    ['_http._udp.web.ns1.svc.cluster.local', 'SRV', 'nxDomain'],
    ['_tcp.web.ns1.svc.cluster.local', 'SRV', 'noData'],
    ['http._tcp.web.ns1.svc.cluster.local', 'SRV', 'nxDomain'],
    ['a._http._tcp.web.ns1.svc.cluster.local', 'SRV', 'nxDomain'],
    ['_._tcp.dual.ns1.svc.cluster.local', 'SRV', 'nxDomain'],
    ['dual.ns1.svc.cluster.local', 'SRV', 'SRV 0 100 80 dual.ns1.~; dual.ns1.~ A 10.96.0.6, dual.ns1.~ AAAA fd00::6'],
    ['dual.ns1.svc.cluster.local', 'A', 'A 10.96.0.6'],
    ['dual.ns1.svc.cluster.local', 'AAAA', 'AAAA fd00::6'],
    ['dual.ns1.svc.cluster.local', 'ANY', 'A 10.96.0.6, AAAA fd00::6'],
    ['noport.ns1.svc.cluster.local', 'SRV', 'noData'],
    ['10-0-0-4.web.ns1.svc.cluster.local', 'A', 'A 10.0.0.4'],
    ['pod.web.ns1.svc.cluster.local', 'A', 'nxDomain'],
    ['web.ns2.svc.cluster.local', 'A', 'nxDomain'],
    ['other.ns1.svc.cluster.local', 'A', 'nxDomain'],
    ['none.ns1.svc.cluster.local', 'A', 'nxDomain'],
    ['none.ns1.svc.cluster.local', 'SRV', 'nxDomain'],
    ['db.ns1.svc.cluster.local', 'A', 'A 10.0.0.1, A 10.0.0.2, A 10.0.0.3'],
    ['db.ns1.svc.cluster.local', 'AAAA', 'AAAA fd00:1::1, AAAA fd00:1::3'],
    ['db.ns1.svc.cluster.local', 'TXT', 'noData'],
    ['db-0.db.ns1.svc.cluster.local', 'A', 'A 10.0.0.1'],
    ['db-0.db.ns1.svc.cluster.local', 'AAAA', 'AAAA fd00:1::1'],
    ['db-1.db.ns1.svc.cluster.local', 'A', 'A 10.0.0.2'],
    ['db-1.db.ns1.svc.cluster.local', 'AAAA', 'noData'],
    ['db-1.db.ns1.svc.cluster.local', 'SRV', 'SRV 0 100 5432 db-1.db.ns1.~; db-1.db.ns1.~ A 10.0.0.2'],
    ['10-0-0-3.db.ns1.svc.cluster.local', 'A', 'A 10.0.0.3'],
    ['fd00-1--3.db.ns1.svc.cluster.local', 'AAAA', 'AAAA fd00:1::3'],
    ['10-0-0-1.db.ns1.svc.cluster.local', 'A', 'nxDomain'],
    ['x.db-0.db.ns1.svc.cluster.local', 'A', 'nxDomain'],
    [
      '_sql._tcp.db.ns1.svc.cluster.local',
      'SRV',
      'SRV 0 100 5432 db-0.db.ns1.~, SRV 0 100 5432 DB-1.db.ns1.~, SRV 0 100 5432 10-0-0-3.db.ns1.~, ' +
        'SRV 0 100 5432 fd00-1--3.db.ns1.~; db-0.db.ns1.~ A 10.0.0.1, DB-1.db.ns1.~ A 10.0.0.2, ' +
        '10-0-0-3.db.ns1.~ A 10.0.0.3, db-0.db.ns1.~ AAAA fd00:1::1, fd00-1--3.db.ns1.~ AAAA fd00:1::3',
    ],
    ['_other._tcp.db.ns1.svc.cluster.local', 'SRV', 'nxDomain'],
    ['portless.ns1.svc.cluster.local', 'A', 'A 10.0.0.9'],
    ['portless.ns1.svc.cluster.local', 'SRV', 'noData'],
    ['10-0-0-9.portless.ns1.svc.cluster.local', 'SRV', 'noData'],
    ['out.ns1.svc.cluster.local', 'A', 'CNAME example.com'],
    ['out.ns1.svc.cluster.local', 'SRV', 'CNAME example.com'],
    ['x._tcp.out.ns1.svc.cluster.local', 'A', 'nxDomain'],
    ['address.ns1.svc.cluster.local', 'A', 'nxDomain'],
    ['ns1.svc.cluster.local', 'A', 'noData'],
    ['empty.svc.cluster.local', 'A', 'noData'],
    ['ns2.svc.cluster.local', 'A', 'nxDomain'],
    ['svc.cluster.local', 'A', 'noData'],
    ['cluster.local', 'A', 'noData'],
    ['cluster.local', 'NS', 'cluster.local NS ns.dns.cluster.local'],
    ['ns.dns.cluster.local', 'A', 'A 10.96.0.10'],
    ['ns.dns.cluster.local', 'AAAA', 'AAAA fd00::a'],
    ['dns.cluster.local', 'A', 'noData'],
    ['x.dns.cluster.local', 'A', 'nxDomain'],
    ['nothing.cluster.local', 'A', 'nxDomain'],
    ['dns-version.cluster.local', 'TXT', 'TXT 1.1.0'],
    ['dns-version.cluster.local', 'A', 'noData'],
    ['x.dns-version.cluster.local', 'TXT', 'nxDomain'],
    ['10-0-0-7.ns1.pod.cluster.local', 'A', 'A 10.0.0.7'],
    ['10-0-0-7.ns1.pod.cluster.local', 'AAAA', 'noData'],
    ['fd00-1--7.ns1.pod.cluster.local', 'AAAA', 'AAAA fd00:1::7'],
    ['10-0-0-7.ns2.pod.cluster.local', 'A', 'nxDomain'],
    ['10-0-0-777.ns1.pod.cluster.local', 'A', 'nxDomain'],
    ['x.10-0-0-7.ns1.pod.cluster.local', 'A', 'nxDomain'],
    ['web.ns1.pod.cluster.local', 'A', 'nxDomain'],
    ['ns1.pod.cluster.local', 'A', 'noData'],
    ['pod.cluster.local', 'A', 'noData'],
    ['5.0.96.10.in-addr.arpa', 'PTR', 'PTR web.ns1.~'],
    ['5.0.96.10.in-addr.arpa', 'A', 'noData'],
    ['1.0.0.10.in-addr.arpa', 'PTR', 'PTR db-0.db.ns1.~'],
    ['3.0.0.10.in-addr.arpa', 'PTR', 'foreign'],
    ['9.0.96.10.in-addr.arpa', 'PTR', 'foreign'],
    ['96.10.in-addr.arpa', 'PTR', 'foreign'],
    [`6.${'0.'.repeat(27)}0.0.d.f.ip6.arpa`, 'PTR', 'PTR dual.ns1.~'],
    [`1.${'0.'.repeat(23)}1.0.0.0.0.0.d.f.ip6.arpa`, 'PTR', 'PTR db-0.db.ns1.~'],
    ['0.0.d.f.ip6.arpa', 'PTR', 'foreign'],
    ['example.com', 'A', 'foreign'],
    ['local', 'A', 'foreign'],
    ['notcluster.local', 'A', 'foreign'],
  ];
  it.each(table)('a DNS query for %s of type %s gets %s', (name, type, expected) => {
    expect(answer(name, type)).toBe(expected);
  });

  it('the cluster domain has an SOA record whose serial number changes with the records', () => {
    const before = answer('cluster.local', 'SOA');
    expect(before).toMatch(/^cluster.local SOA ns.dns.cluster.local hostmaster.cluster.local \d+$/);
    service('ns1', 'serial', {});
    expect(answer('cluster.local', 'SOA')).not.toBe(before);
  });
});

describe('StoredZone', () => {
  it('a changed or removed Service is no longer found by its former address', () => {
    service('ns1', 'moving', { ips: ['10.96.0.20'] });
    service('ns1', 'moving', { ips: ['10.96.0.21'] });
    expect(answer('20.0.96.10.in-addr.arpa', 'PTR')).toBe('foreign');
    expect(answer('21.0.96.10.in-addr.arpa', 'PTR')).toBe('PTR moving.ns1.~');
    service('ns1', 'other', { ips: ['10.96.0.21'] });
    zone.remove('service', 'ns1', 'moving');
    expect(answer('21.0.96.10.in-addr.arpa', 'PTR')).toBe('PTR other.ns1.~');
    zone.remove('service', 'ns1', 'other');
    expect(answer('21.0.96.10.in-addr.arpa', 'PTR')).toBe('foreign');
    expect(answer('other.ns1.svc.cluster.local', 'A')).toBe('nxDomain');
  });

  it('endpoints follow their slice to another Service, and are removed with it', () => {
    service('ns1', 'first', {});
    service('ns1', 'second', {});
    const record = { ports: [port(1)], endpoints: [['10.0.1.1', 'h']] } as Pick<SliceRecord, 'ports' | 'endpoints'>;
    slice('moved', { service: 'first', ...record });
    expect(answer('h.first.ns1.svc.cluster.local', 'A')).toBe('A 10.0.1.1');
    slice('moved', { service: 'second', ...record });
    expect(answer('first.ns1.svc.cluster.local', 'A')).toBe('nxDomain');
    expect(answer('1.1.0.10.in-addr.arpa', 'PTR')).toBe('PTR h.second.ns1.~');
    zone.remove('slice', 'ns1', 'moved');
    expect(answer('second.ns1.svc.cluster.local', 'A')).toBe('nxDomain');
    expect(answer('1.1.0.10.in-addr.arpa', 'PTR')).toBe('foreign');
  });

  it('a removed namespace has no names', () => {
    zone.put({ op: 'put', kind: 'namespace', record: { name: 'gone' } });
    expect(answer('gone.svc.cluster.local', 'A')).toBe('noData');
    zone.remove('namespace', '', 'gone');
    expect(answer('gone.svc.cluster.local', 'A')).toBe('nxDomain');
  });
});
