import { expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { PodDNSConfig } from '../../api/generated/types.ts';
import { parseResolvConf, podDnsConfig } from './dns-config.ts';

const host = { servers: ['8.8.8.8'], searches: ['example.com'], options: ['timeout:1', 'rotate', 'timeout:2'] };
const facts = { clusterDns: [], clusterDomain: 'c.local', host };
const configOf = (dnsConfig: PodDNSConfig, dnsPolicy = 'None') => podDnsConfig(podOf({ dnsPolicy, dnsConfig }), facts);

test('an option of the Pod replaces the first option of its name, and the last option of a name applies', () => {
  const options = [
    { name: 'timeout', value: '5' },
    { name: 'rotate', value: '' },
    { name: 'ndots', value: '1' },
    { name: 'debug' },
    { name: 'ndots', value: '2' },
  ];
  const own = ['rotate', 'ndots:2', 'debug'];
  expect(configOf({ options }).config.options).toEqual(['timeout:5', ...own]);
  expect(configOf({ options }, 'Default').config.options).toEqual([
    'timeout:5',
    'rotate',
    'timeout:2',
    ...own.slice(1),
  ]);
});

const longest = Array.from({ length: 8 }, (_, index) => `${index}`.repeat(253));

test.each<[string, string[], number]>([
  ['32 search paths', Array.from({ length: 32 }, (_, index) => `s${index}`), 32],
  ['33 search paths', Array.from({ length: 33 }, (_, index) => `s${index}`), 32],
  ['search paths of 2048 characters with their separators', [...longest, 'x'.repeat(16)], 9],
  ['search paths of 2049 characters with their separators', [...longest, 'x'.repeat(17)], 8],
  ['a search path of 254 characters', ['a', 'x'.repeat(254), 'b'], 2],
])('podDnsConfig() keeps the allowed ones of %s, and reports that it has omitted others', (_, searches, count) => {
  const { config, cut } = configOf({ searches });
  expect([config.searches.length, cut.length]).toEqual([count, count === searches.length ? 0 : 1]);
});

test.each([
  [3, 0],
  [4, 1],
])(
  'podDnsConfig() keeps the first three of %i nameservers, and reports that it has omitted others',
  (count, messages) => {
    const nameservers = Array.from({ length: count }, (_, index) => `10.0.0.${index}`);
    const { config, cut } = configOf({ nameservers: [...nameservers, '10.0.0.0'] });
    expect([config.servers, cut.length]).toEqual([nameservers.slice(0, 3), messages]);
  },
);

test.each<[string, boolean, boolean]>([
  ['ClusterFirst', false, true],
  ['ClusterFirst', true, false],
  ['ClusterFirstWithHostNet', true, true],
  ['Default', false, false],
])(
  'the policy %s with the host network set to %s uses the DNS of the cluster: %s',
  (dnsPolicy, hostNetwork, cluster) => {
    const { config } = podDnsConfig(podOf({ dnsPolicy, hostNetwork }), { ...facts, clusterDns: ['10.96.0.10'] });
    expect(config.servers).toEqual(cluster ? ['10.96.0.10'] : ['8.8.8.8']);
  },
);

test('a nameserver line without an address is ignored, and a domain line sets the search paths', () => {
  expect(parseResolvConf('nameserver\nsearch a\ndomain b.\nother x\n')).toEqual({
    servers: [],
    searches: ['b'],
    options: [],
  });
});
