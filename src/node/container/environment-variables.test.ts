import { expect, it } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Service } from '../../api/generated/types.ts';
import { containerEnvironment, type EnvironmentFacts } from './environment-variables.ts';

const factsOf = (services: readonly Service[]): EnvironmentFacts => ({
  nodeName: 'n',
  hostIps: [],
  podIps: [],
  allocatable: {},
  services,
  configMap: () => undefined,
  secret: () => undefined,
});

function serviceWith(ports: number) {
  const counts = { looks: 0 };
  const all = Array.from({ length: ports }, (_, index) => ({ port: index + 1, protocol: 'TCP' }));
  const spec = {
    clusterIP: '10.0.0.1',
    get ports() {
      counts.looks += 1;
      return all;
    },
  };
  const service: Service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'default' }, spec };
  return { service, counts };
}

it('the variables of a list of Services are computed once for all containers', () => {
  const { service, counts } = serviceWith(100);
  const services = [service];
  for (let index = 0; index < 50; index++) {
    const variables = containerEnvironment(podOf(), containerOf(`c${index}`), factsOf(services));
    expect(variables.get('WEB_PORT_100_TCP_PORT')).toBe('100');
  }
  expect(counts.looks).toBe(1);
});

it('variables of Services that are too large for any container are computed only once', () => {
  const { service, counts } = serviceWith(60_000);
  const services = [service];
  for (let index = 0; index < 50; index++)
    expect(() => containerEnvironment(podOf(), containerOf(`c${index}`), factsOf(services))).toThrow(
      'larger than 6 MiB',
    );
  expect(counts.looks).toBe(1);
});

it('the variables of the Services of several namespaces are cached', () => {
  const { service, counts } = serviceWith(100);
  const services = [service];
  for (let index = 0; index < 50; index++)
    for (const namespace of ['default', 'other']) {
      const pod = podOf();
      const metadata = { ...pod.metadata, namespace };
      containerEnvironment({ ...pod, metadata }, containerOf('c'), factsOf(services));
    }
  expect(counts.looks).toBe(1);
});

it('replaced values of a variable count toward the limit of the environment', () => {
  const env = Array.from({ length: 7 }, () => ({ name: 'A', value: 'x'.repeat(2 ** 20) }));
  expect(() => containerEnvironment(podOf(), containerOf('c', { env }), factsOf([]))).toThrow('larger than 6 MiB');
});

it('a Pod without service links does not get the cached variables of a Pod with links', () => {
  const services = [serviceWith(1).service];
  const without = podOf({ enableServiceLinks: false });
  expect(containerEnvironment(podOf(), containerOf('c'), factsOf(services)).size).toBeGreaterThan(0);
  expect(containerEnvironment(without, containerOf('c'), factsOf(services)).size).toBe(0);
});
