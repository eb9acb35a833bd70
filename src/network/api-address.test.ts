import { expect, test } from 'vitest';
import { toApi } from './api-address.ts';

test.each([
  [['127.0.0.1'], ['ip daddr { 127.0.0.1 } tcp dport 6443']],
  [
    ['127.0.0.1', '10.1.0.1', '2001:db8::1'],
    ['ip daddr { 127.0.0.1, 10.1.0.1 } tcp dport 6443', 'ip6 daddr { 2001:db8::1 } tcp dport 6443'],
  ],
  [
    ['0.0.0.0', '2001:db8::1'],
    ['meta nfproto ipv4 fib daddr type local tcp dport 6443', 'ip6 daddr { 2001:db8::1 } tcp dport 6443'],
  ],
  [['::'], ['fib daddr type local tcp dport 6443']],
])('packets to the API at %j match the conditions %j', (ips, conditions) => {
  expect(toApi({ ips, port: 6443 })).toEqual(conditions);
});
