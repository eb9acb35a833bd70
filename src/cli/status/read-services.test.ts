import { expect, test } from 'vitest';
import type { CoreV1Event, Service } from '../../api/generated/types.ts';
import { EVENTS, SERVICES } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { uidOf } from '../../machinery/meta.ts';
import { forbidden } from '../../machinery/status.ts';
import { parseTime } from '../../machinery/time.ts';
import { hintsFor } from '../hints.ts';
import { readServices } from './read-services.ts';

const HINTS = hintsFor({}, { KUBECONFIG: '/var/lib/lifepod/kubeconfig' }, undefined, false);

test('a Service without an address is a trouble with the cause from its Event, or when it is no longer new', async () => {
  const backend = await registryBackend({ namespaces: ['a'] });
  const put = (name: string, type: string): Promise<Service> =>
    backend.set<Service>(SERVICES, {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'a' } },
      spec: { type, ports: [{ port: 80 }] },
    } as Service);
  const two = await put('two', 'LoadBalancer');
  await put('three', 'LoadBalancer');
  await put('inner', 'ClusterIP');
  await put('one', 'LoadBalancer');
  await backend.setStatus(SERVICES, 'a', 'one', { loadBalancer: { ingress: [{ ip: '192.0.2.2' }] } });
  await backend.set<CoreV1Event>(EVENTS, {
    ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: 'two.1', namespace: 'a' }, type: 'Warning' },
    ...{ reason: 'SyncLoadBalancerFailed', message: 'Error syncing load balancer: port TCP/80 is in use' },
    involvedObject: { apiVersion: 'v1', kind: 'Service', namespace: 'a', name: 'two', uid: uidOf(two) },
    lastTimestamp: '2026-01-31T11:00:00Z',
  } as CoreV1Event);
  const created = parseTime(two.metadata.creationTimestamp) ?? 0;
  const read = (later: number) => readServices(clientOf(backend), undefined, HINTS, created + later);
  expect(await read(0)).toEqual({
    troubles: [
      {
        ...{ kind: 'Service', namespace: 'a', name: 'two', uid: uidOf(two), reason: 'SyncLoadBalancerFailed' },
        since: Date.parse('2026-01-31T11:00:00Z'),
        message: 'two has no address: port TCP/80 is in use',
        command: 'kubectl describe service two -n a',
      },
    ],
    unread: [],
  });
  const { troubles } = await read(60_000);
  expect(troubles.map(({ message }) => message).sort()).toEqual([
    'three has no address',
    'two has no address: port TCP/80 is in use',
  ]);
  backend.failNext('list events', forbidden(EVENTS, '', 'no'));
  const withoutEvents = await read(60_000);
  expect(withoutEvents.troubles.map(({ message }) => message).sort()).toEqual([
    'three has no address',
    'two has no address',
  ]);
  backend.failNext('list services', forbidden(SERVICES, '', 'no'));
  expect((await read(0)).unread).toEqual([
    expect.stringMatching(/^Services: .*: those without an address are not reported$/),
  ]);
});
