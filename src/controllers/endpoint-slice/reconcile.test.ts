import { describe, expect, it } from 'vitest';
import type { Endpoint, EndpointSlice, Pod, Service } from '../../api/generated/types.ts';
import { TRIGGER_TIME } from '../service-pods/pod-endpoint.ts';
import { CREATED, node, pod, podsNumbered, READY_AT, service } from '../service-pods/service-pods-fixture.ts';
import { reconcile } from './reconcile.ts';
import type { SliceChanges } from './slice-changes.ts';

const nodes = new Map([node('n1', 'east'), node('n2')].map((one) => [one.metadata.name, one]));
let names = 0;

const decide = (of: Service, pods: readonly Pod[], slices: readonly EndpointSlice[] = []): SliceChanges =>
  reconcile({ service: of, pods, slices, nodeNamed: (name) => nodes.get(name) });

function applied(slices: readonly EndpointSlice[], { create, update, remove }: SliceChanges): EndpointSlice[] {
  const gone = new Set([...remove, ...update].map(({ metadata }) => metadata.name));
  const created = create.map((slice) => ({ ...slice, metadata: { ...slice.metadata, name: `web-${++names}` } }));
  return [...slices.filter(({ metadata }) => !gone.has(metadata.name)), ...update, ...created];
}

const slicesOf = (of: Service, pods: readonly Pod[]): EndpointSlice[] => applied([], decide(of, pods));

const NOTHING: SliceChanges = { create: [], update: [], remove: [] };
const sizes = (slices: readonly EndpointSlice[]): number[] => slices.map(({ endpoints }) => endpoints.length);
const endpointsOf = (of: Service, ...pods: Pod[]): Endpoint[] =>
  slicesOf(of, pods).flatMap(({ endpoints }) => endpoints);

describe('an endpoint', () => {
  const states: [string, Service, Pod, Endpoint['conditions']][] = [
    ['a ready Pod', service(), pod('p'), { ready: true, serving: true, terminating: false }],
    [
      'a Pod that is not ready',
      service(),
      pod('p', { isReady: false }),
      { ready: false, serving: false, terminating: false },
    ],
    [
      'a Pod that is being deleted and whose readiness probe succeeds, such as one with defer containers',
      service(),
      pod('p', { terminates: true, phase: 'Terminating' }),
      { ready: false, serving: true, terminating: true },
    ],
    [
      'a Pod that is being deleted and is not ready',
      service(),
      pod('p', { terminates: true, isReady: false }),
      { ready: false, serving: false, terminating: true },
    ],
    [
      'a Pod of a Service that publishes addresses that are not ready',
      service({ publishNotReadyAddresses: true }),
      pod('p', { isReady: false, terminates: true }),
      { ready: true, serving: false, terminating: true },
    ],
  ];
  it.each(states)('the conditions of %s', (_, of, one, conditions) => {
    expect(endpointsOf(of, one)).toEqual([
      {
        addresses: ['10.0.0.1'],
        conditions,
        nodeName: 'n1',
        zone: 'east',
        targetRef: { kind: 'Pod', namespace: 'a', name: 'p', uid: 'p' },
      },
    ]);
  });
  it.each<[string, Pod]>([
    ['has succeeded', pod('p', { phase: 'Succeeded' })],
    ['has failed', pod('p', { phase: 'Failed' })],
    ['has no address', pod('p', { ips: [] })],
    ['has no address of the family', pod('p', { ips: ['fd00::1'] })],
    ['has an address that no endpoint may have', pod('p', { ips: ['127.0.0.1'] })],
    ['is on a node that does not exist', pod('p', { node: 'gone' })],
  ])('a Pod that %s is no endpoint', (_, one) => {
    expect(endpointsOf(service(), one)).toEqual([]);
  });
  it('a Pod on a node that does not exist is an endpoint if the Service publishes addresses that are not ready', () => {
    expect(endpointsOf(service({ publishNotReadyAddresses: true }), pod('p', { node: 'gone' }))).toHaveLength(1);
  });
  it('a Pod whose subdomain is the Service has its host name', () => {
    const spec = { hostname: 'first', subdomain: 'web' };
    expect(endpointsOf(service(), pod('p', { spec }))[0]?.hostname).toBe('first');
    expect(endpointsOf(service(), pod('p', { spec: { ...spec, subdomain: 'db' } }))[0]).not.toHaveProperty('hostname');
  });
  it('ready endpoints have a hint for their zone if the Service prefers close endpoints', () => {
    const close = service({ trafficDistribution: 'PreferClose' });
    const [ready, unready, elsewhere] = endpointsOf(
      close,
      pod('p'),
      pod('q', { ips: ['10.0.0.2'], isReady: false }),
      pod('r', { ips: ['10.0.0.3'], node: 'n2' }),
    );
    expect(ready?.hints).toEqual({ forZones: [{ name: 'east' }] });
    expect(unready).not.toHaveProperty('hints');
    expect(elsewhere).not.toHaveProperty('hints');
    const slices = slicesOf(close, [pod('p')]);
    expect(decide(service(), [pod('p')], slices).update[0]?.endpoints[0]).not.toHaveProperty('hints');
  });
});

describe('ports', () => {
  const portsOf = (of: Service, one: Pod) => slicesOf(of, [one]).map(({ ports }) => ports);
  const http = { name: '', port: 8080, protocol: 'TCP' };
  const sidecar = { name: 's', image: 'x', ports: [{ name: 'side', containerPort: 9000, protocol: 'TCP' }] };
  it('a port is found by its name and protocol, and by its number', () => {
    const ports = [
      { name: 'a', port: 80, targetPort: 'http', protocol: 'TCP', appProtocol: 'h2c' },
      { name: 'b', port: 81, targetPort: 'http', protocol: 'UDP' },
      { name: 'c', port: 82, targetPort: 5000, protocol: 'UDP' },
    ];
    expect(portsOf(service({ ports }), pod('p'))).toEqual([
      [
        { name: 'a', port: 8080, protocol: 'TCP', appProtocol: 'h2c' },
        { name: 'c', port: 5000, protocol: 'UDP' },
      ],
    ]);
  });
  it.each<[string, Partial<Pod['spec']>, number[]]>([
    ['init containers do not count', { initContainers: [sidecar] }, []],
    ['sidecars count', { initContainers: [{ ...sidecar, restartPolicy: 'Always' }] }, [9000]],
    ['defer containers do not count', { deferContainers: [sidecar] }, []],
  ])('the ports of %s', (_, spec, numbers) => {
    const ports = [{ port: 80, targetPort: 'side', protocol: 'TCP' }];
    const found = portsOf(service({ ports }), pod('p', { spec: { ...spec } }));
    expect(found.flatMap((list = []) => list.map(({ port }) => port))).toEqual(numbers);
  });
  it('Pods whose named port has different numbers are in different slices', () => {
    const slices = slicesOf(service(), [pod('p'), pod('q', { ips: ['10.0.0.2'], port: 9090 })]);
    expect(slices.map(({ ports, endpoints }) => [ports, endpoints.map(({ addresses }) => addresses[0])])).toEqual([
      [[http], ['10.0.0.1']],
      [[{ ...http, port: 9090 }], ['10.0.0.2']],
    ]);
  });
  it('a headless Service without ports has endpoints without ports', () => {
    const [slice] = slicesOf(service({ clusterIP: 'None', ports: [] }), [pod('p')]);
    expect(slice?.ports).toEqual([]);
    expect(slice?.endpoints).toHaveLength(1);
  });
});

describe('slices', () => {
  it('a slice has the labels of the Service, those of the controller, an owner and a trigger time', () => {
    const reserved = { 'kubernetes.io/service-name': 'other', 'service.kubernetes.io/headless': '' };
    const [slice] = slicesOf(service({}, { labels: { team: 't', ...reserved } }), [pod('p')]);
    expect(slice).toMatchObject({ addressType: 'IPv4', metadata: { generateName: 'web-', namespace: 'a' } });
    expect(slice?.metadata.labels).toEqual({
      team: 't',
      'kubernetes.io/service-name': 'web',
      'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
    });
    expect(slice?.metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'web', controller: true, blockOwnerDeletion: true },
    ]);
    expect(slice?.metadata.annotations).toEqual({ [TRIGGER_TIME]: CREATED });
  });
  it('the slices of a headless Service have the label of headless Services', () => {
    const [slice] = slicesOf(service({ clusterIP: 'None' }), [pod('p')]);
    expect(slice?.metadata.labels).toHaveProperty(['service.kubernetes.io/headless'], '');
  });
  it('a Service of two families has slices of both, with the addresses of the family', () => {
    const both = service({ ipFamilies: ['IPv4', 'IPv6'] });
    const slices = slicesOf(both, [pod('p', { ips: ['10.0.0.1', 'FD00::1'] }), pod('q', { ips: ['fd00::2'] })]);
    expect(
      slices.map(({ addressType, endpoints }) => [addressType, endpoints.map(({ addresses }) => addresses)]),
    ).toEqual([
      ['IPv4', [['10.0.0.1']]],
      ['IPv6', [['fd00::1'], ['fd00::2']]],
    ]);
    expect(decide(service(), [pod('p')], slices).remove).toEqual([slices[1]]);
  });
  it('a Service without endpoints has one slice without endpoints and ports, which the first endpoint fills', () => {
    const slices = slicesOf(service(), []);
    expect(slices).toMatchObject([{ endpoints: [], ports: [] }]);
    expect(decide(service(), [], slices)).toEqual(NOTHING);
    const { create, update, remove } = decide(service(), [pod('p')], slices);
    expect([create, remove]).toEqual([[], []]);
    expect(update.map(({ metadata }) => metadata.name)).toEqual([slices[0]?.metadata.name]);
  });
  it('the last slice of a Service becomes the one without endpoints', () => {
    const slices = slicesOf(service(), [pod('p')]);
    const { create, update, remove } = decide(service(), [], slices);
    expect([create, remove]).toEqual([[], []]);
    expect(update).toMatchObject([{ metadata: { name: slices[0]?.metadata.name }, endpoints: [], ports: [] }]);
  });
  it('slices of an earlier Service of the same name are replaced, and not reused', () => {
    const slices = slicesOf(service({}, { uid: 'earlier' }), [pod('p')]);
    const { create, update, remove } = decide(service(), [pod('p')], slices);
    expect([create.length, update.length, remove]).toEqual([1, 0, slices]);
  });
  it('a Service that is being deleted gets no new slices', () => {
    const going = service({}, { deletionTimestamp: READY_AT });
    expect(decide(going, [pod('p')])).toEqual(NOTHING);
  });
  it('a label of the Service changes the slices, and an annotation does not', () => {
    const slices = slicesOf(service(), [pod('p')]);
    expect(decide(service({}, { labels: { a: 'b' } }), [pod('p')], slices).update).toHaveLength(1);
    expect(decide(service({}, { annotations: { a: 'b' } }), [pod('p')], slices)).toEqual(NOTHING);
  });
  it('an endpoint that is in two slices remains in one', () => {
    const [slice] = slicesOf(service(), [pod('p')]);
    const twice = [slice, { ...slice, metadata: { ...slice?.metadata, name: 'late' } }] as EndpointSlice[];
    expect(decide(service(), [pod('p')], twice)).toEqual({ ...NOTHING, remove: [twice[1]] });
  });
});

describe('the trigger time', () => {
  const slices = slicesOf(service(), [pod('p'), pod('q', { ips: ['10.0.0.2'] })]);
  const timeOf = (...pods: Pod[]) => decide(service(), pods, slices).update[0]?.metadata.annotations?.[TRIGGER_TIME];
  it('the time at which a Pod became unready', () => {
    expect(timeOf(pod('p', { isReady: false }), pod('q', { ips: ['10.0.0.2'] }))).toBe(READY_AT);
  });
  it('none after the removal of a Pod', () => {
    expect(timeOf(pod('p'))).toBeUndefined();
  });
});

describe('packing', () => {
  it('a slice has at most 100 endpoints, and an endpoint that changes stays in its slice', () => {
    const pods = podsNumbered(0, 250);
    const slices = slicesOf(service(), pods);
    expect(sizes(slices)).toEqual([100, 100, 50]);
    expect(decide(service(), pods, slices)).toEqual(NOTHING);
    const unready = pods.with(120, podsNumbered(120, 121, { isReady: false })[0] as Pod);
    const { create, update, remove } = decide(service(), unready, slices);
    expect([create, remove]).toEqual([[], []]);
    expect(update.map(({ metadata }) => metadata.name)).toEqual([slices[1]?.metadata.name]);
  });
  it('an added endpoint goes to the fullest slice with room', () => {
    const slices = slicesOf(service(), podsNumbered(0, 150));
    const shrunk = applied(slices, decide(service(), podsNumbered(20, 150), slices));
    expect(sizes(shrunk).sort()).toEqual([50, 80]);
    const { create, update } = decide(service(), podsNumbered(20, 151), shrunk);
    expect([create, sizes(update)]).toEqual([[], [81]]);
  });
  it('a replaced endpoint changes one slice', () => {
    const slices = slicesOf(service(), podsNumbered(0, 200));
    const { create, update, remove } = decide(service(), [...podsNumbered(1, 200), ...podsNumbered(300, 301)], slices);
    expect([create, sizes(update), remove]).toEqual([[], [100], []]);
  });
  it('endpoints beyond the room of all slices get a new slice', () => {
    const slices = slicesOf(service(), podsNumbered(0, 90));
    const { create, update } = decide(service(), podsNumbered(0, 110), slices);
    expect([sizes(create), sizes(update)]).toEqual([[20], []]);
  });
  it('a slice that loses all its endpoints is reused for a new one', () => {
    const slices = slicesOf(service(), [pod('p')]);
    const { create, update, remove } = decide(service(), [pod('q', { ips: ['10.0.0.2'], port: 9090 })], slices);
    expect([create, remove]).toEqual([[], []]);
    expect(update.map(({ metadata }) => metadata.name)).toEqual(slices.map(({ metadata }) => metadata.name));
    expect(update[0]?.ports).toEqual([{ name: '', port: 9090, protocol: 'TCP' }]);
  });
});
