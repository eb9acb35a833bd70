import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { MANAGED_BY_LABEL, SERVICE_NAME_LABEL } from '../../api/discovery.k8s.io/v1/endpoint-slice/labels.ts';
import type { CoreV1Event, EndpointSlice, Endpoints, Pod, Service } from '../../api/generated/types.ts';
import { ENDPOINT_SLICES, ENDPOINTS, EVENTS, NAMESPACES, NODES, PODS, SERVICES } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { startEndpointSliceMirroring } from '../endpoint-slice-mirroring/endpoint-slice-mirroring.ts';
import { startEndpoints } from '../endpoints/endpoints.ts';
import { ipOf, node, type PodState, pod, service } from '../service-pods/service-pods-fixture.ts';
import { startEndpointSlices } from './endpoint-slice.ts';

let backend: RegistryBackend;
let timers: VirtualTimers;
beforeEach(async () => {
  timers = createVirtualTimers();
  backend = await registryBackend({ timers, serviceCidr: '10.96.0.0/16' });
  await backend.set(NODES, node('n1', 'east'));
});

const settled = async (): Promise<void> => {
  timers.advance(0);
  for (let i = 0; i < 200; i++) await new Promise(setImmediate);
};
async function start(): Promise<() => void> {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const options = withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal });
  await Promise.all([startEndpointSlices, startEndpoints, startEndpointSliceMirroring].map((begin) => begin(options)));
  await settled();
  return () => stop.abort();
}
const putService = (spec: Partial<Service['spec']> = {}, name = 'web'): Promise<Service> => {
  const { clusterIP: _, ...rest } = service().spec ?? {};
  const all = { ...rest, ...spec };
  return backend.set<Service>(SERVICES, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'a' },
    spec: all,
  });
};
async function putPod(name: string, state: PodState = {}): Promise<void> {
  const { uid: _, ...metadata } = pod(name, state).metadata;
  await backend.set<Pod>(PODS, { ...pod(name, state), metadata });
}
const inNamespace = <T>(ref: typeof PODS): T[] =>
  backend.objects(ref).filter(({ metadata }) => metadata.namespace === 'a') as T[];
const slices = (): EndpointSlice[] => inNamespace(ENDPOINT_SLICES);
const endpoints = (): Endpoints[] => inNamespace(ENDPOINTS);
const shown = (): string[] =>
  slices().flatMap((slice) =>
    slice.endpoints.map(({ addresses, conditions }) => `${addresses[0]} ${conditions?.ready}`),
  );
/** Returns the writes since the last call, without the names of slices. */
const writes = (): string[] =>
  backend.calls
    .splice(0)
    .filter((call) => /^(create|update|patch|delete) (endpoint|event)/.test(call))
    .map((call) => call.replace(/(endpointslices a\/).*/, '$1'));

test('a change of a Pod is one write of its slice and one of the Endpoints, and an unrelated change is none', async () => {
  await putService();
  await start();
  expect(writes().sort()).toEqual(['create endpoints a/web', 'create endpointslices a/']);
  await putPod('p', { isReady: false });
  await settled();
  expect(writes().sort()).toEqual(['update endpoints a/web', 'update endpointslices a/']);
  await backend.setStatus(PODS, 'a', 'p', pod('p').status ?? {});
  await settled();
  expect(writes().sort()).toEqual(['update endpoints a/web', 'update endpointslices a/']);
  expect(shown()).toEqual(['10.0.0.1 true']);
  await backend.patch(PODS, 'a', 'p', 'application/merge-patch+json', { metadata: { annotations: { c: 'd' } } });
  await settled();
  expect(writes()).toEqual([]);
  await backend.patch(PODS, 'a', 'p', 'application/merge-patch+json', { metadata: { labels: { app: 'other' } } });
  await settled();
  expect(writes().sort()).toEqual(['update endpoints a/web', 'update endpointslices a/']);
  expect(shown()).toEqual([]);
});

test('changes of many Pods during a write are one more write of the slice and of the Endpoints', async () => {
  await putService();
  await start();
  writes();
  const { update } = backend;
  const released = Promise.withResolvers<void>();
  backend.update = async (...args) => {
    await released.promise;
    return await update(...args);
  };
  for (let number = 0; number < 50; number++) await putPod(`p${number}`, { ips: [ipOf(number)] });
  await settled();
  released.resolve();
  await settled();
  expect(shown()).toHaveLength(50);
  const twice = ['update endpoints a/web', 'update endpointslices a/'].flatMap((write) => [write, write]);
  expect(writes().sort()).toEqual(twice);
});

test('a label of the Node changes the zone of its endpoints, and a Pod waits for its Node', async () => {
  await putService();
  await start();
  await putPod('p');
  await putPod('q', { ips: ['10.0.0.2'], node: 'n2' });
  await settled();
  expect(shown()).toEqual(['10.0.0.1 true']);
  await backend.set(NODES, node('n2'));
  await backend.set(NODES, node('n1', 'west'));
  await settled();
  const zones = slices().flatMap((slice) => slice.endpoints.map(({ zone }) => zone));
  expect(zones).toEqual(['west', undefined]);
});

test('the Endpoints of a deleted Service are deleted, also those that a user wrote', async () => {
  await putService();
  await putService({ selector: {} }, 'hand');
  await putEndpoints('hand');
  await start();
  expect(endpoints().map(({ metadata }) => metadata.name)).toEqual(['hand', 'web']);
  await backend.remove(SERVICES, 'a', 'web');
  await backend.remove(SERVICES, 'a', 'hand');
  await settled();
  expect(endpoints()).toEqual([]);
});

test('an engine deletes the Endpoints of Services that were deleted without an engine, but not those that a user wrote', async () => {
  await putService();
  const stop = await start();
  await putEndpoints('alone');
  stop();
  await backend.remove(SERVICES, 'a', 'web');
  await start();
  expect(endpoints().map(({ metadata }) => metadata.name)).toEqual(['alone']);
});

const putEndpoints = (name: string, ip = '10.0.0.9'): Promise<Endpoints> =>
  backend.set<Endpoints>(ENDPOINTS, {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name, namespace: 'a' },
    subsets: [{ addresses: [{ ip }], ports: [{ port: 80 }] }],
  });

test('Endpoints of a Service without a selector are mirrored while they and the Service exist', async () => {
  await start();
  await putEndpoints('hand');
  await settled();
  expect(slices()).toEqual([]);
  await putService({ selector: {} }, 'hand');
  await settled();
  expect(shown()).toEqual(['10.0.0.9 true']);
  writes();
  await putEndpoints('hand', '10.0.0.8');
  await settled();
  expect(writes()).toEqual(['update endpointslices a/']);
  await backend.remove(ENDPOINTS, 'a', 'hand');
  await settled();
  expect(slices()).toEqual([]);
});

test('a slice that a user changes or deletes is corrected, and a slice that a user creates is left alone', async () => {
  await putService();
  await putPod('p');
  await start();
  const [slice] = slices() as [EndpointSlice];
  await backend.set(ENDPOINT_SLICES, { ...slice, endpoints: [{ addresses: ['192.0.2.1'] }] });
  await settled();
  expect(shown()).toEqual(['10.0.0.1 true']);
  await backend.remove(ENDPOINT_SLICES, 'a', slice.metadata.name);
  await settled();
  expect(shown()).toEqual(['10.0.0.1 true']);
  writes();
  const labels = { [SERVICE_NAME_LABEL]: 'web', [MANAGED_BY_LABEL]: 'a-user' };
  const { apiVersion, kind, addressType } = slice;
  const byHand = { apiVersion, kind, addressType, endpoints: [{ addresses: ['192.0.2.1'] }] };
  await backend.set<EndpointSlice>(ENDPOINT_SLICES, {
    ...byHand,
    metadata: { name: 'by-hand', namespace: 'a', labels },
  });
  await settled();
  expect(writes()).toEqual([]);
  expect(slices()).toHaveLength(2);
});

test('a failed write is an Event of the Service, and is tried again', async () => {
  await putService();
  backend.failNext('create endpointslices', serviceUnavailable('not now'));
  await start();
  const reasons = () =>
    (backend.objects(EVENTS) as CoreV1Event[]).map(({ reason, message }) => `${reason}: ${message}`);
  expect(reasons()).toEqual([
    'FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service a/web: not now',
  ]);
  timers.advance(1000);
  await settled();
  expect(slices()).toHaveLength(1);
});

test('nothing is retried in a namespace that is being deleted', async () => {
  await putService();
  await backend.remove(NAMESPACES, undefined, 'a');
  await start();
  timers.advance(100_000);
  await settled();
  expect(writes().sort()).toEqual(['create endpoints a/web', 'create endpointslices a/']);
});

test('Services without a selector and those of the type ExternalName get no endpoints', async () => {
  await putService({ selector: {} }, 'hand');
  await putService({ type: 'ExternalName', externalName: 'a.example', ports: [], ipFamilies: [] }, 'external');
  await putPod('p');
  await start();
  expect(writes()).toEqual([]);
});
