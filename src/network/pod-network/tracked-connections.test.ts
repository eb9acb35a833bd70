import { expect, test } from 'vitest';
import { type IpRange, parseIpRange } from '../../machinery/ip.ts';
import { criteriaOf } from './tracked-connections.ts';

const RANGES = ['10.1.0.0/24', 'fd00:1::/64'].map((text) => parseIpRange(text) as IpRange);

test.each<[string, string, string[]]>([
  [
    'from a Pod to the outside',
    'tcp 6 431999 ESTABLISHED src=10.1.0.5 dst=192.0.2.9 sport=4 dport=80 src=192.0.2.9 dst=192.0.2.1 sport=80 dport=4 [ASSURED] mark=0 use=1',
    ['--orig-src 10.1.0.5'],
  ],
  [
    'to a host port',
    'udp 17 29 src=192.0.2.9 dst=192.0.2.1 sport=4 dport=53 src=10.1.0.6 dst=192.0.2.9 sport=53 dport=4 mark=0 use=1',
    ['--reply-src 10.1.0.6'],
  ],
  [
    'between Pods of IPv6',
    'tcp 6 9 CLOSE src=fd00:1::5 dst=fd00:1::6 sport=4 dport=80 src=fd00:1::6 dst=fd00:1::5 sport=80 dport=4 mark=0 use=1',
    ['--orig-src fd00:1::5', '--reply-src fd00:1::6'],
  ],
  [
    'between the machine and an address outside the ranges',
    'tcp 6 9 CLOSE src=192.0.2.1 dst=10.1.1.5 sport=4 dport=80 src=10.1.1.5 dst=192.0.2.1 sport=80 dport=4 mark=0 use=1',
    [],
  ],
  ['in a line without an entry', 'conntrack v1.4.7 (conntrack-tools): 3 flow entries have been shown.', []],
])('the criteria for the deletion of a connection %s', (_, line, expected) => {
  expect(criteriaOf(line, RANGES)).toEqual(expected);
});
