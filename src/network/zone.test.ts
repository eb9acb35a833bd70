import { describe, expect, it } from 'vitest';
import type { Service } from '../api/generated/types.ts';
import { LocalCopy } from '../client/local-copy.ts';
import { silentLog } from '../platform/silent-log.ts';
import { answerQuestion, type ZoneAnswer } from './zone.ts';
import { zoneServices } from './zone-services.ts';

const services = new LocalCopy<Service>('services', silentLog);
const index = zoneServices(services);
const add = (namespace: string, name: string, spec: object): Service => {
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec } as Service;
  services.put(service);
  return service;
};
add('default', 'kubernetes', {
  clusterIP: '10.96.0.1',
  clusterIPs: ['10.96.0.1'],
  ports: [{ name: 'https', port: 443, protocol: 'TCP' }],
});
add('ns1', 'web', {
  clusterIP: '10.96.0.5',
  ports: [
    { name: 'http', port: 80 },
    { name: 'dns', port: 53, protocol: 'UDP' },
  ],
});
add('ns1', 'headless', { clusterIP: 'None', ports: [{ name: 'http', port: 80 }] });
add('ns1', 'out', { type: 'ExternalName', externalName: 'example.com' });

/** Formats the answer as a short text. */
const show = (answer: ZoneAnswer): string => {
  if (answer.kind !== 'records' && answer.kind !== 'alias') return answer.kind;
  return answer.answers
    .map(({ type, data }) => {
      if (type !== 'SRV') return `${type} ${data}`;
      const { port, target } = data as { port: number; target: string };
      return `SRV ${port} ${target}`;
    })
    .join(', ');
};

describe('answerQuestion', () => {
  const table: [string, string, string][] = [
    ['kubernetes.default.svc.cluster.local', 'A', 'A 10.96.0.1'],
    ['Web.NS1.svc.Cluster.LOCAL', 'A', 'A 10.96.0.5'],
    ['web.ns1.svc.cluster.local', 'AAAA', 'noData'],
    ['web.ns1.svc.cluster.local', 'MX', 'noData'],
    ['web.ns1.svc.cluster.local', 'SRV', 'SRV 80 web.ns1.svc.cluster.local, SRV 53 web.ns1.svc.cluster.local'],
    ['_http._tcp.web.ns1.svc.cluster.local', 'SRV', 'SRV 80 web.ns1.svc.cluster.local'],
    ['_dns._udp.web.ns1.svc.cluster.local', 'SRV', 'SRV 53 web.ns1.svc.cluster.local'],
    ['_http._tcp.web.ns1.svc.cluster.local', 'A', 'noData'],
    ['_http._udp.web.ns1.svc.cluster.local', 'SRV', 'nxDomain'],
    ['_tcp.web.ns1.svc.cluster.local', 'SRV', 'noData'],
    ['pod.web.ns1.svc.cluster.local', 'A', 'nxDomain'],
    ['a._http._tcp.web.ns1.svc.cluster.local', 'SRV', 'nxDomain'],
    ['web.ns2.svc.cluster.local', 'A', 'nxDomain'],
    ['other.ns1.svc.cluster.local', 'A', 'nxDomain'],
    ['headless.ns1.svc.cluster.local', 'A', 'nxDomain'],
    ['out.ns1.svc.cluster.local', 'A', 'CNAME example.com'],
    ['x._tcp.out.ns1.svc.cluster.local', 'A', 'nxDomain'],
    ['ns1.svc.cluster.local', 'A', 'noData'],
    ['ns2.svc.cluster.local', 'A', 'nxDomain'],
    ['svc.cluster.local', 'A', 'noData'],
    ['cluster.local', 'A', 'noData'],
    ['nothing.cluster.local', 'A', 'nxDomain'],
    ['dns-version.cluster.local', 'TXT', 'TXT 1.1.0'],
    ['10-0-0-7.ns1.pod.cluster.local', 'A', 'A 10.0.0.7'],
    ['10-0-0-7.ns1.pod.cluster.local', 'AAAA', 'noData'],
    ['10-0-0-777.ns1.pod.cluster.local', 'A', 'nxDomain'],
    ['web.ns1.pod.cluster.local', 'A', 'nxDomain'],
    ['5.0.96.10.in-addr.arpa', 'PTR', 'PTR web.ns1.svc.cluster.local'],
    ['5.0.96.10.in-addr.arpa', 'A', 'noData'],
    ['6.0.96.10.in-addr.arpa', 'PTR', 'foreign'],
    ['example.com', 'A', 'foreign'],
    ['notcluster.local', 'A', 'foreign'],
  ];
  it.each(table)('a DNS query for %s of type %s gets %s', (name, type, expected) => {
    expect(show(answerQuestion(name, type, 'cluster.local', index))).toBe(expected);
  });

  it('the name in a DNS answer has the same case as in the question', () => {
    const answer = answerQuestion('WEB.ns1.svc.cluster.local', 'A', 'cluster.local', index);
    expect(answer).toMatchObject({ answers: [{ name: 'WEB.ns1.svc.cluster.local' }] });
  });

  it('DNS answers contain the current address of a changed Service', () => {
    const old = add('ns3', 'moving', { clusterIP: '10.96.0.20' });
    services.put({ ...old, metadata: { ...old.metadata, resourceVersion: '2' }, spec: { clusterIP: '10.96.0.21' } });
    const ask = (name: string, type: string) => show(answerQuestion(name, type, 'cluster.local', index));
    expect(ask('moving.ns3.svc.cluster.local', 'A')).toBe('A 10.96.0.21');
    expect(ask('20.0.96.10.in-addr.arpa', 'PTR')).toBe('foreign');
    services.remove(old);
    expect(ask('moving.ns3.svc.cluster.local', 'A')).toBe('nxDomain');
    expect(ask('21.0.96.10.in-addr.arpa', 'PTR')).toBe('foreign');
    expect(ask('ns3.svc.cluster.local', 'A')).toBe('nxDomain');
  });
});
