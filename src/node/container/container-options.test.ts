import { expect, test } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Container } from '../../api/generated/types.ts';
import { containerConfig, mountSubPath, type PodEnvironment } from './container-config.ts';

const env = {
  podIps: [],
  hostIps: [],
  services: [],
  allocatable: {},
  podDirectory: '/p',
  logsRoot: '/l',
  seccompRoot: '/s',
  memoryCapacityBytes: 1,
} as unknown as PodEnvironment;
const image = { id: 'i', tags: [], digests: [], sizeBytes: 1 };
const configOf = (more: Partial<Container>): object =>
  containerConfig(podOf(), containerOf('app', more), 'app', 0, 0, image, env);

test.each(['stdin', 'stdinOnce', 'tty'] as const)('a container has the option %s only if it is true', (option) => {
  for (const more of [{}, { [option]: false }]) expect(configOf(more)).not.toHaveProperty(option);
  expect(configOf({ [option]: true })).toHaveProperty(option, true);
});

test('an empty working directory means that of the image', () => {
  expect(configOf({ workingDir: '' })).toHaveProperty('workingDir', undefined);
  expect(configOf({ workingDir: '/w' })).toHaveProperty('workingDir', '/w');
});

test('a subPath may have 4096 characters and a subPathExpr 65536, and longer ones are refused', () => {
  const refused = 'failed to prepare subPath for volumeMount "v" of container "app"';
  const resolved = (mount: object): string => mountSubPath({ name: 'v', mountPath: '/v', ...mount }, 'app', () => 'x');
  expect(resolved({ subPath: 'a'.repeat(4096) })).toHaveLength(4096);
  expect(() => resolved({ subPath: 'a'.repeat(4097) })).toThrow(refused);
  const reference = (length: number): string => `$(${'A'.repeat(length - 3)})`;
  expect(resolved({ subPathExpr: reference(65_536) })).toBe('x');
  expect(() => resolved({ subPathExpr: reference(65_537) })).toThrow(refused);
  expect(resolved({ subPath: './a//b/' })).toBe('a/b');
});

test('a container gets /etc/hosts only if the Pod has an address and the container does not mount this path itself', () => {
  const targets = (podIps: string[], more: Partial<Container> = {}): string[] => {
    const pod = podOf({ volumes: [{ name: 'v', emptyDir: {} }] });
    const facts = { ...env, podIps, volumePath: () => '/v' };
    const { mounts } = containerConfig(pod, containerOf('app', more), 'app', 0, 0, image, facts);
    return mounts.map(({ hostPath, containerPath }) => `${hostPath} ${containerPath}`);
  };
  expect(targets([])).toEqual([]);
  expect(targets(['10.0.0.7'])).toEqual(['/p/etc-hosts /etc/hosts']);
  const volumeMounts = [{ name: 'v', mountPath: '/etc/hosts' }];
  expect(targets(['10.0.0.7'], { volumeMounts })).toEqual(['/v /etc/hosts']);
});
