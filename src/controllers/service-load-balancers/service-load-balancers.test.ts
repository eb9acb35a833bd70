import { expect, onTestFinished, test, vi } from 'vitest';
import type { CoreV1Event, Node, Pod, Service } from '../../api/generated/types.ts';
import { EVENTS, NODES, PODS, SERVICES } from '../../api/resources.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { Log } from '../../platform/platform.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { startServiceLoadBalancers } from './service-load-balancers.ts';

const service = (name: string): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'a' },
  spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
});

/** Creates a registry with one node. The controller runs until the end of the test, or until the test aborts the result of `start`. */
async function cluster() {
  const backend = await registryBackend();
  const client = clientOf(backend);
  const services = client.resource<Service>(SERVICES);
  const addresses = [{ type: 'InternalIP', address: '192.0.2.1' }];
  await backend.set(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, status: { addresses } } as Node);
  const events = () => backend.objects(EVENTS) as CoreV1Event[];
  return {
    backend,
    services,
    async start(log: Log = silentLog): Promise<AbortController> {
      const stop = new AbortController();
      onTestFinished(() => stop.abort());
      const options = { client, timers: createVirtualTimers(), log, signal: stop.signal };
      await startServiceLoadBalancers(withInformers(options));
      return stop;
    },
    ingressOf: async (name: string) => (await services.get(name, 'a')).status?.loadBalancer?.ingress,
    events,
    eventTexts: () => events().map((event) => `${event.involvedObject.name} ${event.reason}: ${event.message}`),
    statusWrites: () => backend.calls.filter((call) => call.startsWith('update services/status')),
  };
}

test('a port goes to the Service that waits for it when the first Service ends or changes its type', async () => {
  const { services, start, ingressOf, eventTexts } = await cluster();
  await start();
  const ingress = [{ ip: '192.0.2.1', ipMode: 'VIP' }];

  await services.create(service('first'));
  await vi.waitFor(async () => expect(await ingressOf('first')).toEqual(ingress));
  await services.create(service('second'));
  await vi.waitFor(() =>
    expect(eventTexts()).toContain(
      'second SyncLoadBalancerFailed: Error syncing load balancer: port TCP/80 is in use by the Service a/first',
    ),
  );
  expect(await ingressOf('second')).toBeUndefined();
  await services.patch('first', 'a', 'application/merge-patch+json', { spec: { type: 'NodePort' } });
  await vi.waitFor(async () => expect(await ingressOf('second')).toEqual(ingress));
  expect(await ingressOf('first')).toBeUndefined();
  await services.patch('first', 'a', 'application/merge-patch+json', { spec: { type: 'LoadBalancer' } });
  await services.delete('second', 'a');
  await vi.waitFor(async () => expect(await ingressOf('first')).toEqual(ingress));
  await vi.waitFor(() => expect(eventTexts()).toContain('second EnsuredLoadBalancer: Ensured load balancer'));
});

test('a Service waits for a host port, and a Pod that comes later gets an Event', async () => {
  const { backend, services, start, ingressOf, eventTexts } = await cluster();
  const podOf = (name: string): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'a' },
    spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80, hostPort: 80 }] }] },
  });
  await start();
  await backend.set(PODS, podOf('early'));
  await services.create(service('web'));
  await vi.waitFor(() =>
    expect(eventTexts()).toContain(
      'web SyncLoadBalancerFailed: Error syncing load balancer: port TCP/80 is in use by the host port of the Pod a/early: ' +
        'use another port for one of them',
    ),
  );
  await backend.remove(PODS, 'a', 'early');
  await vi.waitFor(async () => expect(await ingressOf('web')).toHaveLength(1));
  await backend.set(PODS, podOf('late'));
  await vi.waitFor(() =>
    expect(eventTexts()).toContain(
      'late PortConflict: connections to the host port TCP/80 reach the load balancer of the Service a/web: ' +
        'use another port for one of them',
    ),
  );
});

test('a failure to write the status of one Service delays no other Service', async () => {
  const { backend, services, start, statusWrites } = await cluster();
  for (const [index, name] of ['first', 'second', 'third'].entries())
    await services.create({ ...service(name), spec: { type: 'LoadBalancer', ports: [{ port: 80 + index }] } });
  backend.failNext('update services/status a/first', new Error('no first'));
  backend.failNext('update services/status a/second', new Error('no second'));
  const warn = vi.fn();
  const log = { ...silentLog, warn };
  await start(log);
  await vi.waitFor(() => expect(statusWrites().length).toBeGreaterThan(2));
  expect(statusWrites().slice(0, 3)).toEqual(
    ['first', 'second', 'third'].map((name) => `update services/status a/${name}`),
  );
  const error = 'Error: no first; Error: no second';
  await vi.waitFor(() => expect(warn).toHaveBeenCalledWith(expect.anything(), expect.objectContaining({ error })));
});

test('a port of a Service whose address cannot be withdrawn goes to no other Service', async () => {
  const { backend, services, start, statusWrites } = await cluster();
  const withPorts = (name: string, ...ports: number[]): Service => ({
    ...service(name),
    spec: { type: 'LoadBalancer', ports: ports.map((port) => ({ name: `p${port}`, port })) },
  });
  for (const each of [
    withPorts('holds', 80),
    withPorts('loses', 80, 81),
    withPorts('waits', 81),
    withPorts('other', 82),
  ])
    await services.create(each);
  for (const name of ['holds', 'loses'])
    await backend.setStatus(SERVICES, 'a', name, { loadBalancer: { ingress: [{ ip: '192.0.2.1', ipMode: 'VIP' }] } });
  backend.failNext('update services/status a/loses', new Error('no'));
  await start();
  await vi.waitFor(() => expect(statusWrites()).toHaveLength(4));
  const expected = ['loses', 'other', 'loses', 'waits'];
  expect(statusWrites()).toEqual(expected.map((name) => `update services/status a/${name}`));
});

test('a Service that waits again, after it was of another type, gets another Event', async () => {
  const { services, start, ingressOf, events } = await cluster();
  for (const name of ['first', 'second']) await services.create(service(name));
  await start();
  const failures = () =>
    events()
      .filter(({ reason }) => reason === 'SyncLoadBalancerFailed')
      .reduce((sum, { count = 1 }) => sum + count, 0);
  await vi.waitFor(() => expect(failures()).toBe(1));
  const change = (type: string) => services.patch('second', 'a', 'application/merge-patch+json', { spec: { type } });
  await change('NodePort');
  await services.create({ ...service('third'), spec: { type: 'LoadBalancer', ports: [{ port: 81 }] } });
  await vi.waitFor(async () => expect(await ingressOf('third')).toHaveLength(1));
  expect(failures()).toBe(1);
  await change('LoadBalancer');
  await vi.waitFor(() => expect(failures()).toBe(2));
});

test('a restart withdraws no address', async () => {
  const { services, start, ingressOf, events, statusWrites } = await cluster();
  const first = await start();
  await services.create(service('web'));
  await vi.waitFor(async () => expect(await ingressOf('web')).toHaveLength(1));
  first.abort();
  await start();
  await services.create(service('waiting'));
  await vi.waitFor(() => expect(events().map(({ reason }) => reason)).toContain('SyncLoadBalancerFailed'));
  expect(statusWrites()).toEqual(['update services/status a/web']);
});
