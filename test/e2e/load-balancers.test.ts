import { expect } from 'vitest';
import { lifepod, test } from '../support/shared-engine.ts';

const balanced = (name: string, port: string) =>
  lifepod.kubectlOk('create', 'service', 'loadbalancer', name, `--tcp=${port}`);
const addressOf = (name: string): Promise<string> =>
  lifepod.kubectlOk('get', 'service', name, '-o', 'jsonpath={.status.loadBalancer.ingress[0].ip}');
const hasAddress = (name: string): Promise<void> =>
  lifepod.wait(`service/${name}`, '--for=jsonpath={.status.loadBalancer.ingress[0].ip}');

test('a Service of type LoadBalancer gets the address of the node, and waits while another one has its port', async () => {
  await balanced('first', '27017');
  await hasAddress('first');
  const node = await lifepod.kubectlOk('get', 'nodes', '-o', 'jsonpath={.items[0].status.addresses[0].address}');
  expect(await addressOf('first')).toBe(node);
  await balanced('second', '27017');
  await balanced('third', '27018');
  await hasAddress('third');
  expect(await addressOf('second')).toBe('');
  await expect
    .poll(() => lifepod.kubectlOk('describe', 'service', 'second'), { timeout: 30_000 })
    .toMatch(
      /SyncLoadBalancerFailed .* Error syncing load balancer: port TCP\/27017 is in use by the Service .*\/first/,
    );
  await lifepod.delete('service', 'first');
  await hasAddress('second');
});

test('the default ServiceCIDR is ready and protected', async () => {
  const status = await lifepod.kubectlOk(
    'get',
    'servicecidr',
    'kubernetes',
    '-o',
    'jsonpath={.status.conditions[0].status} {.metadata.finalizers[0]}',
  );
  expect(status).toBe('True networking.k8s.io/service-cidr-finalizer');
});
