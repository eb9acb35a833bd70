import { expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod, PodSpec } from '../../api/generated/types.ts';
import { type PodEnvironment, podHostname, sandboxConfig } from './container-config.ts';

const podNamed = (name: string, spec: Partial<PodSpec> = {}): Pod => {
  const pod = podOf(spec);
  return { ...pod, metadata: { ...pod.metadata, name, namespace: 'ns' } };
};
const env = {
  dns: { clusterDns: [], clusterDomain: 'c.local', host: { servers: [], searches: [], options: [] } },
  podDirectory: '/p',
  logsRoot: '/l',
} as unknown as PodEnvironment;

test.each<[string, Partial<PodSpec>, string, string]>([
  ['web', {}, 'web', ''],
  ['web', { hostname: '' }, 'web', ''],
  ['web', { hostname: 'h', subdomain: 's' }, 'h', 's.ns.svc.c.local'],
  ['a'.repeat(63), {}, 'a'.repeat(63), ''],
  [`${'a'.repeat(62)}-b`, {}, 'a'.repeat(62), ''],
  [`${'a'.repeat(61)}.-bc`, {}, 'a'.repeat(61), ''],
  [`${'a'.repeat(62)}.`, {}, `${'a'.repeat(62)}.`, ''],
])(
  'the Pod %s has a hostname of at most 63 characters and the domain of its subdomain',
  (name, spec, hostname, domain) => {
    expect(podHostname(podNamed(name, spec), 'c.local')).toEqual({ hostname, domain });
  },
);

test('the hostname of a sandbox is the FQDN only if this is requested, and an FQDN of more than 64 characters is refused', () => {
  const hostnameOf = (name: string, spec: Partial<PodSpec>): string =>
    sandboxConfig(podNamed(name, spec), 0, env).hostname;
  const fqdn = { setHostnameAsFQDN: true, subdomain: 's' };
  expect(hostnameOf('web', fqdn)).toBe('web.s.ns.svc.c.local');
  expect(hostnameOf('web', { subdomain: 's' })).toBe('web');
  expect(hostnameOf('web', { setHostnameAsFQDN: false, subdomain: 's' })).toBe('web');
  expect(hostnameOf('web', { setHostnameAsFQDN: true })).toBe('web');
  expect(hostnameOf('web', { ...fqdn, hostNetwork: true })).toBe('');
  const longest = 'a'.repeat(64 - '.s.ns.svc.c.local'.length);
  expect(hostnameOf(longest, fqdn)).toHaveLength(64);
  expect(() => hostnameOf(`${longest}a`, fqdn)).toThrow(
    `FQDN ${longest}a.s.ns.svc.c.local is too long (64 characters is the max, 65 characters requested)`,
  );
});

test('a sandbox with a user namespace is refused, and an empty host address of a port is left out', () => {
  expect(() => sandboxConfig(podNamed('web', { hostUsers: false }), 0, { ...env, runtimeHandler: 'h' })).toThrow(
    'RuntimeClass handler "h" does not support user namespaces',
  );
  const ports = ['', '127.0.0.1', undefined].map((hostIP, index) => ({
    containerPort: 80,
    hostPort: 8080 + index,
    ...(hostIP === undefined ? {} : { hostIP }),
  }));
  const containers = [
    { name: 'app', image: 'i', ports: [...ports, { containerPort: 81 }, { containerPort: 82, hostPort: 0 }] },
  ];
  expect(sandboxConfig(podNamed('web', { containers, hostUsers: true }), 0, env).portMappings).toEqual([
    { protocol: 'TCP', containerPort: 80, hostPort: 8080 },
    { protocol: 'TCP', containerPort: 80, hostPort: 8081, hostIp: '127.0.0.1' },
    { protocol: 'TCP', containerPort: 80, hostPort: 8082 },
  ]);
});
