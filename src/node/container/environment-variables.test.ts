import { expect, it } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Service } from '../../api/generated/types.ts';
import { containerEnvironment, type EnvironmentFacts } from './environment-variables.ts';

const factsOf = (services: readonly Service[]): EnvironmentFacts => ({
  ...{ nodeName: 'n', hostIps: [], podIps: [], allocatable: {}, services },
  ...{ configMap: () => undefined, secret: () => undefined },
});

/** A Service of the namespace default, with a count of the looks at its ports. */
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

it('the containers of Pods share the variables of one list of Services', () => {
  const { service, counts } = serviceWith(100);
  const services = [service];
  for (let index = 0; index < 50; index++) {
    const variables = containerEnvironment(podOf(), containerOf(`c${index}`), factsOf(services));
    expect(variables.get('WEB_PORT_100_TCP_PORT')).toBe('100');
  }
  expect(counts.looks).toBe(1);
});

it('Services whose variables no container can have are looked at once, not for each container', () => {
  const { service, counts } = serviceWith(60_000);
  const services = [service];
  for (let index = 0; index < 50; index++)
    expect(() => containerEnvironment(podOf(), containerOf(`c${index}`), factsOf(services))).toThrow(
      'larger than 6 MiB',
    );
  expect(counts.looks).toBe(1);
});

it('Pods of two namespaces that start in turns share the variables of one list of Services', () => {
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

it('the values that a variable had before its last one count as well', () => {
  const env = Array.from({ length: 7 }, () => ({ name: 'A', value: 'x'.repeat(2 ** 20) }));
  expect(() => containerEnvironment(podOf(), containerOf('c', { env }), factsOf([]))).toThrow('larger than 6 MiB');
});

it('a Pod without service links does not have the variables that another has', () => {
  const services = [serviceWith(1).service];
  const without = podOf({ enableServiceLinks: false });
  expect(containerEnvironment(podOf(), containerOf('c'), factsOf(services)).size).toBeGreaterThan(0);
  expect(containerEnvironment(without, containerOf('c'), factsOf(services)).size).toBe(0);
});
