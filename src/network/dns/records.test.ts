import { expect, test } from 'vitest';
import type { EndpointSlice, Service } from '../../api/generated/types.ts';
import { serviceRecord, sliceRecord } from './records.ts';

const metadata = { namespace: 'ns1', name: 'x' };

test.each([
  [{ clusterIP: '10.96.0.5' }, { ips: ['10.96.0.5'] }],
  [{ clusterIP: '10.96.0.5', clusterIPs: ['10.96.0.5', 'fd00::5'] }, { ips: ['10.96.0.5', 'fd00::5'] }],
  [{ clusterIP: 'None', clusterIPs: ['None'] }, { ips: [] }],
  [{}, { ips: [] }],
  [
    { type: 'ExternalName', externalName: 'example.com.' },
    { ips: [], externalName: 'example.com' },
  ],
  [
    { ports: [{ port: 80 }, { name: 'Dns', protocol: 'UDP', port: 53 }] },
    {
      ips: [],
      ports: [
        { name: '', protocol: 'tcp', port: 80 },
        { name: 'dns', protocol: 'udp', port: 53 },
      ],
    },
  ],
])('the record of a Service with the spec %j has %j', (spec, expected) => {
  const record = { namespace: 'ns1', name: 'x', ports: [], ...expected };
  expect(serviceRecord({ metadata, spec } as unknown as Service)).toEqual({ op: 'put', kind: 'service', record });
});

test('the record of an EndpointSlice contains the endpoints that are ready, or whose readiness is unknown', () => {
  const endpoint = (address: string, more: object = {}) => ({ addresses: [address], ...more });
  const slice = {
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }, { name: 'every' }, { name: 'none', port: 70_000 }],
    endpoints: [
      endpoint('10.0.0.1', { conditions: { ready: true }, hostname: 'web-0' }),
      endpoint('10.0.0.2', { conditions: { ready: false, serving: true, terminating: true } }),
      endpoint('10.0.0.3'),
      endpoint('10.0.0.4', { conditions: {} }),
    ],
  } as unknown as EndpointSlice;
  expect(sliceRecord(slice)).toEqual({
    op: 'put',
    kind: 'slice',
    record: {
      namespace: 'ns1',
      name: 'x',
      service: 'web',
      ports: [{ name: 'http', protocol: 'tcp', port: 80 }],
      endpoints: [
        ['10.0.0.1', 'web-0'],
        ['10.0.0.3', ''],
        ['10.0.0.4', ''],
      ],
    },
  });
  expect(sliceRecord({ ...slice, addressType: 'FQDN' })).toMatchObject({ record: { endpoints: [] } });
});
