import { describe, expect, it } from 'vitest';
import type { EndpointSubset, Endpoints, Pod, Service } from '../../api/generated/types.ts';
import { TRIGGER_TIME } from '../service-pods/pod-endpoint.ts';
import { CREATED, pod, podsNumbered, READY_AT, service } from '../service-pods/service-pods-fixture.ts';
import { OVER_CAPACITY, reconcile } from './reconcile.ts';

const address = (name: string, ip: string) => ({
  ip,
  nodeName: 'n1',
  targetRef: { kind: 'Pod', namespace: 'a', name, uid: name },
});
const PORT = { port: 8080, protocol: 'TCP' };
const made = (of: Service, ...pods: Pod[]): Endpoints => reconcile(of, pods, undefined) as Endpoints;

it.each<[string, Service, Pod[], EndpointSubset[] | undefined]>([
  ['no Pods', service(), [], undefined],
  [
    'a ready Pod and one that is not ready',
    service(),
    [pod('p'), pod('q', { ips: ['10.0.0.2'], isReady: false })],
    [{ addresses: [address('p', '10.0.0.1')], notReadyAddresses: [address('q', '10.0.0.2')], ports: [PORT] }],
  ],
  ['a Pod that is being deleted', service(), [pod('p', { terminates: true })], undefined],
  ['a Pod that has ended', service(), [pod('p', { phase: 'Failed' })], undefined],
  [
    'a Pod that is being deleted, if addresses that are not ready are published',
    service({ publishNotReadyAddresses: true }),
    [pod('p', { terminates: true, isReady: false })],
    [{ addresses: [address('p', '10.0.0.1')], ports: [PORT] }],
  ],
  [
    'a Pod of both families',
    service({ ipFamilies: ['IPv6', 'IPv4'] }),
    [pod('p', { ips: ['10.0.0.1', 'fd00::1'] })],
    [{ addresses: [address('p', 'fd00::1')], ports: [PORT] }],
  ],
  [
    'Pods whose named port has different numbers',
    service(),
    [pod('p'), pod('q', { ips: ['10.0.0.2'], port: 9090 })],
    [
      { addresses: [address('p', '10.0.0.1')], ports: [PORT] },
      { addresses: [address('q', '10.0.0.2')], ports: [{ ...PORT, port: 9090 }] },
    ],
  ],
  ['a Pod without the port', service({ ports: [{ port: 80, targetPort: 'other' }] }), [pod('p')], undefined],
  [
    'two ports',
    service({
      ports: [
        { name: 'b', port: 81, targetPort: 5000, protocol: 'UDP', appProtocol: 'x' },
        { name: 'a', port: 80, targetPort: 'http', protocol: 'TCP' },
      ],
    }),
    [pod('p')],
    [
      {
        addresses: [address('p', '10.0.0.1')],
        ports: [
          { name: 'a', port: 8080, protocol: 'TCP' },
          { name: 'b', port: 5000, protocol: 'UDP', appProtocol: 'x' },
        ],
      },
    ],
  ],
  [
    'a headless Service without ports',
    service({ clusterIP: 'None', ports: [] }),
    [pod('p', { spec: { hostname: 'first', subdomain: 'web' } })],
    [{ addresses: [{ ...address('p', '10.0.0.1'), hostname: 'first' }], ports: [] }],
  ],
])('the subsets of %s', (_, of, pods, subsets) => {
  const plain = (list: EndpointSubset[] = []) => list.map((subset) => ({ ...subset, ports: subset.ports ?? [] }));
  expect(plain(made(of, ...pods).subsets)).toEqual(plain(subsets));
});

it('Endpoints have the name and the labels of the Service, the label of the controller, and a trigger time', () => {
  const { metadata } = made(service({}, { labels: { team: 't', 'service.kubernetes.io/headless': '' } }));
  expect(metadata).toEqual({
    name: 'web',
    namespace: 'a',
    labels: { team: 't', 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' },
    annotations: { [TRIGGER_TIME]: CREATED },
  });
  expect(made(service({ clusterIP: 'None' })).metadata.labels).toHaveProperty(['service.kubernetes.io/headless'], '');
});

describe('an update', () => {
  const current = made(service(), pod('p'), pod('q', { ips: ['10.0.0.2'] }));
  const [p, q] = [pod('p'), pod('q', { ips: ['10.0.0.2'] })];
  it('nothing is written if nothing has changed', () => {
    expect(reconcile(service(), [q, p], current)).toBeUndefined();
    const subsets = current.subsets?.map((subset) => ({
      ...subset,
      addresses: subset.addresses?.map((one) => ({ ...one, targetRef: { ...one.targetRef, resourceVersion: '5' } })),
    }));
    expect(reconcile(service(), [p, q], { ...current, subsets })).toBeUndefined();
  });
  it('the trigger time is that of the Pod that has changed, or absent', () => {
    const unready = reconcile(service(), [pod('p', { isReady: false }), q], current);
    expect(unready?.metadata.annotations).toEqual({ [TRIGGER_TIME]: READY_AT });
    expect(reconcile(service(), [p], current)?.metadata.annotations).toEqual({});
  });
  it('other annotations are kept, and labels are replaced', () => {
    const metadata = { ...current.metadata, annotations: { a: 'b' }, labels: { c: 'd' } };
    const written = reconcile(service({}, { labels: { e: 'f' } }), [p, q], { ...current, metadata });
    expect(written?.metadata).toMatchObject({ annotations: { a: 'b' } });
    expect(written?.metadata.labels).toEqual({ e: 'f', 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' });
  });
});

describe('capacity', () => {
  const sizes = ({ subsets = [] }: Endpoints) =>
    subsets.map(({ addresses = [], notReadyAddresses = [] }) => [addresses.length, notReadyAddresses.length]);
  it.each<[string, Pod[], number[][]]>([
    ['1,000 addresses', podsNumbered(0, 1000), [[1000, 0]]],
    [
      'too many ready addresses',
      [...podsNumbered(0, 1100), ...podsNumbered(1100, 1110, { isReady: false })],
      [[1000, 0]],
    ],
    [
      'too many addresses that are not ready',
      [...podsNumbered(0, 900), ...podsNumbered(900, 1300, { isReady: false })],
      [[900, 100]],
    ],
    [
      'two subsets in proportion',
      [...podsNumbered(0, 1500), ...podsNumbered(1500, 2000, { port: 9090 })],
      [
        [750, 0],
        [250, 0],
      ],
    ],
  ])('Endpoints with %s', (_, pods, expected) => {
    const endpoints = made(service(), ...pods);
    expect(sizes(endpoints)).toEqual(expected);
    const annotation = endpoints.metadata.annotations?.[OVER_CAPACITY];
    expect(annotation).toBe(pods.length > 1000 ? 'truncated' : undefined);
    expect(reconcile(service(), pods, endpoints)).toBeUndefined();
  });
  it('the annotation is removed with the last surplus address', () => {
    const endpoints = made(service(), ...podsNumbered(0, 1001));
    expect(reconcile(service(), podsNumbered(0, 1000), endpoints)?.metadata.annotations).not.toHaveProperty([
      OVER_CAPACITY,
    ]);
  });
});
