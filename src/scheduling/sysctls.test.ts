import { expect, test } from 'vitest';
import { parseAllowedSysctls, sysctlRefusal } from './sysctls.ts';

const own = { network: false, ipc: false };

test.each<[string, string[]]>([
  ['', []],
  ['kernel.msgmax, net/core/somaxconn', ['kernel.msgmax', 'net.core.somaxconn']],
  ['net.*,kernel.shm*,kernel.sem', ['net.*', 'kernel.shm*', 'kernel.sem']],
])('parseAllowedSysctls(%j) returns %j', (text, patterns) => {
  expect(parseAllowedSysctls(text)).toEqual(patterns);
});

test.each([
  ['vm.swappiness', '"vm.swappiness" is not namespaced'],
  ['*', '"*" is not namespaced'],
  ['net.*.x', '"net.*.x" is not a valid sysctl'],
  ['Net.core', '"Net.core" is not a valid sysctl'],
])('parseAllowedSysctls() rejects %j', (text, message) => {
  expect(() => parseAllowedSysctls(text)).toThrow(message);
});

test.each<[string, readonly string[], { network: boolean; ipc: boolean }, string?]>([
  ['net/ipv4/tcp_syncookies', [], own],
  ['kernel.msgmax', [], own, '"kernel.msgmax" not allowlisted'],
  ['kernel/msgmax', ['kernel.msgmax'], own],
  ['kernel.msgmnb', ['kernel.msg*'], own],
  [
    'kernel.msgmax',
    ['kernel.msg*'],
    { network: false, ipc: true },
    '"kernel.msgmax" not allowed with host ipc enabled',
  ],
  [
    'net.core.somaxconn',
    ['net.*'],
    { network: true, ipc: false },
    '"net.core.somaxconn" not allowed with host net enabled',
  ],
  ['net.core.somaxconn', ['net.*'], { network: false, ipc: true }],
])('sysctlRefusal() of %s with %j allowed and host namespaces %j', (name, allowed, host, refused) => {
  expect(sysctlRefusal(name, allowed, host)).toBe(refused);
});
