import { describe, expect, it } from 'vitest';
import type { EndpointSlice, EndpointSubset, Endpoints, Service } from '../../api/generated/types.ts';
import type { ObjectMeta } from '../../machinery/meta.ts';
import type { SliceChanges } from '../endpoint-slice/slice-changes.ts';
import { ipOf, service } from '../service-pods/service-pods-fixture.ts';
import { isMirrored, MAX_PER_SUBSET, MAX_SLICES, reconcile } from './reconcile.ts';

const at = (...ips: string[]) => ips.map((ip) => ({ ip }));
const PORT = { name: 'p', port: 80, protocol: 'TCP' };
const endpoints = (subsets: EndpointSubset[], metadata: Partial<ObjectMeta> = {}): Endpoints => ({
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'db', namespace: 'a', uid: 'db', ...metadata },
  subsets,
});
const NOTHING: SliceChanges = { create: [], update: [], remove: [] };
const slicesOf = (of: Endpoints): EndpointSlice[] =>
  reconcile(of, []).changes.create.map((slice, index) => ({
    ...slice,
    metadata: { ...slice.metadata, name: `db-${index}` },
  }));

it.each<[string, Endpoints, Service | undefined, boolean]>([
  ['a Service without a selector', endpoints([]), service({ selector: {} }), true],
  ['a Service with a selector', endpoints([]), service(), false],
  ['no Service', endpoints([]), undefined, false],
  [
    'a lock',
    endpoints([], { annotations: { 'control-plane.alpha.kubernetes.io/leader': '' } }),
    service({ selector: {} }),
    false,
  ],
  [
    'a label',
    endpoints([], { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } }),
    service({ selector: {} }),
    false,
  ],
])('whether Endpoints with %s are mirrored', (_, of, its, expected) => {
  expect(isMirrored(of, its)).toBe(expected);
});

it('a slice has the labels and annotations of the Endpoints, and these as its owner', () => {
  const annotations = {
    a: 'b',
    'endpoints.kubernetes.io/last-change-trigger-time': 'x',
    'kubectl.kubernetes.io/last-applied-configuration': '{}',
  };
  const [slice] = slicesOf(endpoints([{ addresses: at('10.0.0.1') }], { labels: { c: 'd' }, annotations }));
  expect(slice?.metadata).toEqual({
    name: 'db-0',
    generateName: 'db-',
    namespace: 'a',
    labels: {
      c: 'd',
      'kubernetes.io/service-name': 'db',
      'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
    },
    annotations: { a: 'b' },
    ownerReferences: [
      { apiVersion: 'v1', kind: 'Endpoints', name: 'db', uid: 'db', controller: true, blockOwnerDeletion: true },
    ],
  });
});

it('each combination of ports and address family has a slice, with all fields of the addresses', () => {
  const full = { ip: '10.0.0.1', hostname: 'h', nodeName: 'n', targetRef: { kind: 'Pod', name: 'p' } };
  const slices = slicesOf(
    endpoints([
      { addresses: [full], notReadyAddresses: at('fd00::0:1'), ports: [PORT] },
      { addresses: at('10.0.0.2'), ports: [{ ...PORT, appProtocol: 'h2c' }] },
      { addresses: at('10.0.0.3') },
    ]),
  );
  expect(slices.map(({ addressType, ports, endpoints: list }) => [addressType, ports, list])).toEqual([
    [
      'IPv4',
      [PORT],
      [
        {
          addresses: ['10.0.0.1'],
          conditions: { ready: true },
          hostname: 'h',
          nodeName: 'n',
          targetRef: full.targetRef,
        },
      ],
    ],
    ['IPv6', [PORT], [{ addresses: ['fd00::1'], conditions: { ready: false } }]],
    ['IPv4', [{ ...PORT, appProtocol: 'h2c' }], [{ addresses: ['10.0.0.2'], conditions: { ready: true } }]],
    ['IPv4', [], [{ addresses: ['10.0.0.3'], conditions: { ready: true } }]],
  ]);
});

describe('changes', () => {
  const before = endpoints([{ addresses: at('10.0.0.1', '10.0.0.2'), ports: [PORT] }]);
  const slices = slicesOf(before);
  const [first] = slices as [EndpointSlice];
  it('nothing is written if nothing has changed', () => {
    expect(reconcile(before, slices).changes).toEqual(NOTHING);
    const annotated = { ...before, metadata: { ...before.metadata, resourceVersion: '9' } };
    const turned = { ...first, endpoints: first.endpoints.toReversed() };
    expect(reconcile(annotated, [turned]).changes).toEqual(NOTHING);
  });
  it.each<[string, Endpoints]>([
    ['an address', endpoints([{ addresses: at('10.0.0.1'), ports: [PORT] }])],
    ['readiness', endpoints([{ addresses: at('10.0.0.1'), notReadyAddresses: at('10.0.0.2'), ports: [PORT] }])],
    ['a label', endpoints(before.subsets ?? [], { labels: { a: 'b' } })],
    ['an annotation', endpoints(before.subsets ?? [], { annotations: { a: 'b' } })],
    ['a port', endpoints([{ addresses: at('10.0.0.1'), ports: [{ ...PORT, port: 81 }] }])],
  ])('a change of %s updates the slice', (_, after) => {
    const { create, update, remove } = reconcile(after, slices).changes;
    expect([create, update.map(({ metadata }) => metadata.name), remove]).toEqual([[], ['db-0'], []]);
  });
  it('surplus slices and those of removed subsets are removed', () => {
    const late = { ...first, metadata: { ...first.metadata, name: 'late' } };
    expect(reconcile(before, [first, late]).changes).toEqual({ ...NOTHING, remove: [late] });
    expect(reconcile(endpoints([]), slices).changes).toEqual({ ...NOTHING, remove: slices });
  });
});

it('addresses beyond the limit of a subset, and those that are not valid, are skipped and counted', () => {
  const many = Array.from({ length: MAX_PER_SUBSET + 5 }, (_, number) => ipOf(number));
  const decision = reconcile(endpoints([{ addresses: at(...many), notReadyAddresses: at('127.0.0.1') }]), []);
  expect(decision.changes.create.map(({ endpoints: list }) => list.length)).toEqual([MAX_PER_SUBSET]);
  expect(decision.skipped).toEqual({ beyondMax: 5, invalid: 1 });
});

it('Endpoints with many combinations of ports, and large labels and annotations, get few small slices', () => {
  const subsets = Array.from({ length: MAX_SLICES + 3 }, (_, index) => ({
    addresses: at('10.0.0.1'),
    ports: [{ ...PORT, port: 1 + index }],
  }));
  const large = { 'a/b': 'c'.repeat(20_000) };
  const { changes, skipped } = reconcile(endpoints(subsets, { annotations: large, labels: large }), []);
  expect(changes.create).toHaveLength(MAX_SLICES);
  expect(skipped).toEqual({ beyondMax: 3, invalid: 0 });
  expect(JSON.stringify(changes.create[0]).length).toBeLessThan(1000);
});
