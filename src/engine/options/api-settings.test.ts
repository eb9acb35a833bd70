import { expect, test } from 'vitest';
import { certificateNames, listenAddresses, requestsInFlight, resolveApiOptions } from './api-settings.ts';

const podCidr = '10.222.0.0/16,fd00:10:222::/64';

test.each([
  ['', ['127.0.0.1', '10.222.0.1']],
  ['127.0.0.1', ['127.0.0.1', '10.222.0.1']],
  ['192.0.2.10,2001:db8::10', ['127.0.0.1', '10.222.0.1', '192.0.2.10', '2001:db8::10']],
  ['192.0.2.10,10.222.0.1', ['127.0.0.1', '10.222.0.1', '192.0.2.10']],
  ['192.0.2.10,0.0.0.0,2001:db8::10', ['0.0.0.0', '2001:db8::10']],
  ['192.0.2.10,::', ['::']],
])('with --bind-address %j, the API server listens on %j', (bindAddress, addresses) => {
  expect(listenAddresses({ bindAddress, podCidr })).toEqual(addresses);
});

test('an engine that is started only to end its Pods listens for this machine and its Pods only', () => {
  expect(listenAddresses({ bindAddress: '0.0.0.0', podCidr, recordedPort: 6443 })).toEqual(['127.0.0.1', '10.222.0.1']);
});

test('the certificate has the node, the cluster IPs of both families, the address for Pods, and the given names and addresses', () => {
  const settings = {
    bindAddress: '0.0.0.0,2001:db8::10',
    tlsSan: 'api.example.com,192.0.2.10,*.lab.example',
    podCidr,
    serviceCidr: '10.96.0.0/16,fd00:10:96::/112',
    nodeName: 'node-1',
  };
  expect(certificateNames(settings)).toEqual({
    hostnames: ['node-1', 'api.example.com', '*.lab.example'],
    ips: ['10.96.0.1', 'fd00:10:96::1', '10.222.0.1', '2001:db8::10', '192.0.2.10'],
  });
});

const HTTP2 = { disableHttp2Serving: 'false' };
const IN_FLIGHT = { maxRequestsInflight: '400', maxMutatingRequestsInflight: '200' };

test('the numbers of requests in flight are added', () => {
  expect(requestsInFlight(resolveApiOptions({}))).toBe(600);
  expect(requestsInFlight(resolveApiOptions({ maxRequestsInflight: '0' }, { maxRequestsInflight: '7' }))).toBe(200);
});

test('the options for the API are kept until others are given, without duplicates and in canonical form', () => {
  const usual = { bindAddress: '', tlsSan: '', clusterSigningDuration: '8760h', ...IN_FLIGHT, ...HTTP2 };
  expect(resolveApiOptions({}, undefined)).toEqual(usual);
  const given = resolveApiOptions({
    bindAddress: '192.0.2.10, 2001:DB8:0::10,192.0.2.10',
    tlsSan: 'a.example,A::1',
    clusterSigningDuration: '24h',
    disableHttp2Serving: 'true',
  });
  const lists = { bindAddress: '192.0.2.10,2001:db8::10', tlsSan: 'a.example,a::1' };
  expect(given).toEqual({ ...lists, clusterSigningDuration: '24h', ...IN_FLIGHT, disableHttp2Serving: 'true' });
  expect(resolveApiOptions({}, given)).toEqual(given);
  const others = { bindAddress: '', tlsSan: 'b', clusterSigningDuration: '8760h', disableHttp2Serving: 'false' };
  expect(resolveApiOptions(others, given)).toEqual({
    ...usual,
    tlsSan: 'b',
  });
});

test.each([
  [{ bindAddress: 'eth0' }, '--bind-address "eth0" is not an address on which the API can listen: give addresses'],
  [{ bindAddress: '192.0.2.10,' }, '--bind-address "" is not an address'],
  [{ bindAddress: 'fe80::1' }, '--bind-address "fe80::1" is not an address'],
  [{ bindAddress: '::ffff:192.0.2.10' }, '--bind-address "::ffff:192.0.2.10" is not an address'],
  [{ tlsSan: 'A.example' }, '--tls-san "A.example" is neither a host name nor an address: give some such as api'],
  [{ tlsSan: 'a.example,,b' }, '--tls-san "" is neither'],
  [{ tlsSan: 'a.*.example' }, '--tls-san "a.*.example" is neither'],
  [{ tlsSan: '0.0.0.0' }, '--tls-san "0.0.0.0" is neither'],
  [{ maxRequestsInflight: '-1' }, '--max-requests-inflight "-1" is not a valid number of requests: give one from 0'],
  [{ maxMutatingRequestsInflight: '1e3' }, '--max-mutating-requests-inflight "1e3" is not a valid number of requests'],
  [{ maxRequestsInflight: '0', maxMutatingRequestsInflight: '0' }, 'are both 0: give at least one of them'],
  [
    { clusterSigningDuration: '365d' },
    '--cluster-signing-duration "365d" is not a valid lifetime of certificates: give',
  ],
  [{ clusterSigningDuration: '9s' }, '--cluster-signing-duration "9s" is not a valid lifetime'],
  [{ clusterSigningDuration: '-8760h' }, '--cluster-signing-duration "-8760h" is not a valid lifetime'],
  [{ disableHttp2Serving: 'yes' }, '--disable-http2-serving "yes" is neither true nor false'],
])('the options %j are refused: %s', (options, message) => {
  expect(() => resolveApiOptions(options)).toThrow(message);
});
