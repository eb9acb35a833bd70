import { expect, test } from 'vitest';
import { isProxyFailure, isUnreachable, pullReason, stoppedRegistry } from './pull-reason.ts';

const unresolved = (why: string, code = 'Unknown', image = 'docker.io/library/busybox:5.1'): string =>
  `rpc error: code = ${code} desc = failed to pull and unpack image "${image}": failed to resolve reference "${image}": ${why}`;
const HEAD = 'failed to do request: Head "https://registry-1.docker.io/v2/library/busybox/manifests/5.1"';
const REFUSED = `${HEAD}: proxyconnect tcp: dial tcp 127.0.0.1:9: connect: connection refused`;
const TOKEN =
  'failed to authorize: failed to fetch anonymous token: Get "https://auth.docker.io/token?scope=repository%3Alibrary%2Fbusybox%3Apull&service=registry.docker.io"';

test.each<[string, string | undefined, string]>([
  ['no message', undefined, ''],
  ['a short message', 'no such host', 'no such host'],
  ['a missing tag', unresolved('docker.io/library/busybox:5.1: not found', 'NotFound'), 'not found'],
  [
    'a missing tag of a registry with a port',
    unresolved('127.0.0.1:5000/app:1: not found', 'NotFound', '127.0.0.1:5000/app:1'),
    'not found',
  ],
  [
    'a missing platform',
    'rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/x:1": no match for platform in manifest: not found',
    'no match for platform in manifest: not found',
  ],
  [
    'a proxy that does not answer',
    unresolved(REFUSED),
    "the engine's proxy cannot be used: dial tcp 127.0.0.1:9: connect: connection refused",
  ],
  [
    'a repeated pull',
    `Back-off pulling image "busybox:5.1": ErrImagePull: ${unresolved(REFUSED)}`,
    "the engine's proxy cannot be used: dial tcp 127.0.0.1:9: connect: connection refused",
  ],
  ['a repeated pull without its reason', 'Back-off pulling image "busybox:5.1"', ''],
  [
    'a registry that is unknown',
    unresolved(`${HEAD}: dial tcp: lookup registry-1.docker.io on 127.0.0.53:53: no such host`),
    'the name of its registry, registry-1.docker.io, cannot be resolved: is this machine offline?',
  ],
  [
    'a resolver that does not answer',
    `Back-off pulling image "busybox:5.1": ErrImagePull: ${unresolved(`${HEAD}: dial tcp: lookup registry-1.docker.io on 10.0.0.2:53: read udp 10.0.0.3:41000->10.0.0.2:53: i/o timeout`)}`,
    'the name of its registry, registry-1.docker.io, cannot be resolved: is this machine offline?',
  ],
  [
    'a machine without a network',
    unresolved(`${HEAD}: dial tcp 3.94.224.37:443: connect: network is unreachable`),
    'its registry registry-1.docker.io cannot be reached: network is unreachable; is this machine offline?',
  ],
  [
    'a registry that does not answer in time',
    unresolved(
      'failed to do request: Head "https://reg.example:5000/v2/x/manifests/1": dial tcp 10.1.1.1:5000: i/o timeout',
    ),
    'its registry reg.example:5000 cannot be reached: i/o timeout; is this machine offline?',
  ],
  [
    'a registry of tokens that does not answer',
    unresolved(`${TOKEN}: dial tcp 199.59.149.230:443: connect: connection refused`),
    'its registry auth.docker.io cannot be reached: connection refused',
  ],
  [
    'a private image',
    unresolved(
      'pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed',
    ),
    'pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed',
  ],
  [
    'wrong credentials',
    unresolved(
      'failed to authorize: failed to fetch oauth token: unexpected status from POST request: 401 Unauthorized',
    ),
    'its registry answers 401 Unauthorized: it needs valid credentials',
  ],
  [
    'a certificate',
    unresolved(`${HEAD}: tls: failed to verify certificate: x509: certificate signed by unknown authority`),
    'tls: failed to verify certificate: x509: certificate signed by unknown authority',
  ],
  [
    'a layer that cannot be fetched',
    'rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/nginx:latest": failed to copy: httpReadSeeker: failed open: unexpected status code https://reg.example/v2/library/nginx/blobs/x: 400 Bad Request',
    'its registry reg.example answers 400 Bad Request',
  ],
  [
    'a registry that refuses the credentials',
    unresolved('pulling from host localhost:5101 failed with status code [manifests 1]: 401 Unauthorized'),
    'its registry localhost:5101 answers 401 Unauthorized: it needs valid credentials',
  ],
  [
    'a registry with too many requests',
    unresolved('unexpected status from HEAD request to http://localhost:5103/v2/x/manifests/1: 429 Too Many Requests'),
    'its registry localhost:5103 answers 429 Too Many Requests',
  ],
  [
    'a registry with TLS that refuses plain HTTP',
    unresolved('pulling from host localhost:5443 failed with status code [manifests 1]: 400 Bad Request'),
    'its registry localhost:5443 answers 400 Bad Request: does it speak TLS, and was it asked with plain HTTP?',
  ],
  [
    'a registry with TLS that closes a plain connection',
    unresolved('failed to do request: Head "http://localhost:5143/v2/team/app/manifests/1": EOF'),
    'its registry localhost:5143 closed the connection of a plain HTTP request: does it speak TLS?',
  ],
  [
    'a full disk',
    'rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/x:1": failed to extract layer sha256:ab: write /a: no space left on device: unknown',
    'write /a: no space left on device: unknown',
  ],
  [
    'a marked failure',
    'image pull failed for x:1 because the registry is unavailable: dial tcp: timeout.',
    'the registry is unavailable: dial tcp: timeout',
  ],
  ['a long message', 'x'.repeat(300), `${'x'.repeat(199)}…`],
])('the reason of a failed pull is found for %s', (_, message, reason) => {
  expect(pullReason(message)).toBe(reason);
});

test('a proxy that cannot be reached is recognized', () => {
  expect([unresolved(REFUSED), unresolved(HEAD), undefined].map(isProxyFailure)).toEqual([true, false, false]);
});

test('a registry that cannot be reached is recognized, but not a missing image or proxy', () => {
  const offline = `${HEAD}: dial tcp: lookup registry-1.docker.io: no such host`;
  expect([offline, HEAD, REFUSED, 'docker.io/library/x:1: not found', undefined].map(isUnreachable)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
});

test.each<[string, string | undefined]>([
  ['dial tcp 127.0.0.1:5000: connect: connection refused', '127.0.0.1:5000'],
  ['dial tcp [::1]:5000: connect: connection refused', '[::1]:5000'],
  ['dial tcp 127.0.0.1:5000: i/o timeout', undefined],
  ['dial tcp 199.59.149.230:443: connect: connection refused', undefined],
  ['proxyconnect tcp: dial tcp 127.0.0.1:9: connect: connection refused', undefined],
])('a registry on this machine that does not run is recognized: %s', (message, address) => {
  expect(stoppedRegistry(message)).toBe(address);
});
