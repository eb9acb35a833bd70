import { expect, test } from 'vitest';
import type { Frontend } from './frontends.ts';
import { listenerMessage, parseListeners, takesFrom } from './port-conflicts.ts';

test('the listeners in the output of ss have their protocol and port, their address and their program', () => {
  const output = [
    'udp   UNCONN 0      0                *:68              0.0.0.0:*    users:(("dhclient",pid=7,fd=7))',
    'udp   UNCONN 0      0      127.0.0.53%lo:53            0.0.0.0:*',
    'tcp   LISTEN 0      4096       127.0.0.1:6443          0.0.0.0:*    users:(("node",pid=31,fd=4),("node",pid=32,fd=4))',
    'tcp   LISTEN 0      128             [::]:30080            [::]:*    users:(("a b",pid=1,fd=3))',
    'tcp   LISTEN 0      128    [fe80::1%eth0]:80              [::]:*',
    '',
  ].join('\n');
  expect(parseListeners(output)).toEqual([
    { port: 'udp . 68', address: '*', program: 'the program dhclient (process 7)' },
    { port: 'udp . 53', address: '127.0.0.53', program: 'a program' },
    { port: 'tcp . 6443', address: '127.0.0.1', program: 'the program node (process 31)' },
    { port: 'tcp . 30080', address: '::', program: 'the program a b (process 1)' },
    { port: 'tcp . 80', address: 'fe80::1', program: 'a program' },
  ]);
});

const frontend = (family: Frontend['family'], address?: string): Frontend => ({
  family,
  policy: 'external',
  address,
  isLoadBalancer: address !== undefined,
  key: 'tcp . 80',
});

test.each<[string, Frontend, string, boolean]>([
  ['a node port', frontend('IPv4'), '*', true],
  ['a node port', frontend('IPv4'), '0.0.0.0', true],
  ['a node port', frontend('IPv4'), '127.0.0.1', true],
  ['a node port', frontend('IPv4'), '::', false],
  ['a node port of IPv6', frontend('IPv6'), '::', true],
  ['a node port of IPv6', frontend('IPv6'), '2001:db8::1', true],
  ['a node port of IPv6', frontend('IPv6'), '::1', false],
  ['a load balancer', frontend('IPv4', '192.0.2.1'), '0.0.0.0', true],
  ['a load balancer', frontend('IPv4', '192.0.2.1'), '192.0.2.1', true],
  ['a load balancer', frontend('IPv4', '192.0.2.1'), '127.0.0.1', false],
])('%s takes connections from a program (%j, which listens on %s): %s', (_, of, address, expected) => {
  expect(takesFrom(of, { port: 'tcp . 80', address, program: 'a program' })).toBe(expected);
});

test.each<[string, string[], RegExp]>([
  ['192.0.2.1', ['127.0.0.1', '192.0.2.1'], / at 192\.0\.2\.1 reach the API of lifepod instead of this Service: /],
  ['*', ['::'], / at any address reach the API of lifepod instead of this Service: /],
  [
    '192.0.2.1',
    ['127.0.0.1'],
    / reach this Service instead of the program x \(process 7\), which listens on 192\.0\.2\.1: /,
  ],
])(
  'the message about a program that listens on %s says whether it is the API (%j), which keeps its connections',
  (address, ips, expected) => {
    const listener = { port: 'tcp . 80', address, program: 'the program x (process 7)' };
    const of = frontend('IPv4', '192.0.2.1');
    expect(listenerMessage(of, listener, { ips, port: 80 })).toMatch(expected);
    expect(listenerMessage(of, listener, { ips, port: 81 })).toContain('reach this Service instead of the program x');
  },
);
