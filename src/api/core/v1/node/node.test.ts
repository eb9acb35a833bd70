import { describe, expect, it } from 'vitest';
import type { NodeStatus } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { nodeKind } from './index.ts';

describe('a new Node', () => {
  it('a new Node keeps the status with which it registers and gets the values derived from it', () => {
    const status = { capacity: { cpu: '2' }, conditions: [{ type: 'Ready', status: 'True' }] };
    const { object, errors } = created(nodeKind, { spec: { podCIDR: '10.1.0.0/24' }, status });
    expect(errors).toEqual([]);
    expect(object.status).toEqual({ ...status, allocatable: { cpu: '2' } });
    expect(object.spec).toEqual({ podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] });
  });
  it.each<[string, Record<string, unknown>, string[]]>([
    [
      'taints with the same key and different effects',
      {
        taints: [
          { key: 'a', effect: 'NoSchedule' },
          { key: 'a', effect: 'NoExecute' },
        ],
      },
      [],
    ],
    [
      'the same taint twice',
      {
        taints: [
          { key: 'a', effect: 'NoSchedule' },
          { key: 'a', effect: 'NoSchedule' },
        ],
      },
      [
        'metadata.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule"}: taints must be unique by key and effect pair',
      ],
    ],
    [
      'taints with an unknown effect and without one',
      { taints: [{ key: 'a', effect: 'Odd' }, { key: 'b' }] },
      [
        'metadata.taints[0].effect: Unsupported value: "Odd": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        'metadata.taints[1].effect: Required value',
      ],
    ],
    [
      'a taint whose key and value are not valid',
      { taints: [{ key: 'a b', value: 'c d', effect: 'NoExecute' }] },
      [
        expect.stringMatching(/^metadata.taints\[0\].key: Invalid value: "a b": name part must consist of/),
        expect.stringMatching(/^metadata.taints\[0\].value: Invalid value: "c d": a valid label must be/),
      ],
    ],
    ['a Pod CIDR for each family', { podCIDRs: ['10.0.0.0/32', 'fd00::/128'] }, []],
    [
      'three Pod CIDRs',
      { podCIDRs: ['10.0.0.0/24', 'fd00::/64', '10.0.1.0/24'] },
      [
        'spec.podCIDRs: Invalid value: ["10.0.0.0/24","fd00::/64","10.0.1.0/24"]: may specify no more than one CIDR for each IP family',
      ],
    ],
    [
      'a Pod CIDR that is not valid',
      { podCIDRs: ['10.0.0.0/33'] },
      [
        'spec.podCIDRs[0]: Invalid value: "10.0.0.0/33": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
      ],
    ],
  ])('the errors of a new Node with %s are reported', (_, spec, expected) => {
    expect(created(nodeKind, { spec }).errors).toEqual(expected);
  });
  it.each(['x/24', '10.0.0.0', '10.0.0.0/', '10.0.0.0/24/24', '10.0.0.0/-1', 'fd00::/129'])(
    'the text %s is not a valid Pod CIDR',
    (cidr) => {
      expect(created(nodeKind, { spec: { podCIDRs: [cidr] } }).errors).toEqual([
        `spec.podCIDRs[0]: Invalid value: "${cidr}": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
      ]);
    },
  );
  it('podCIDR of a Node is the first of podCIDRs', () => {
    const both = ['10.1.0.0/24', 'fd00::/64'];
    const specOf = (spec: object) => created(nodeKind, { spec }).object.spec;
    expect(specOf({ podCIDRs: both })).toEqual({ podCIDR: both[0], podCIDRs: both });
    expect(specOf({ podCIDR: both[0], podCIDRs: both })).toEqual({ podCIDR: both[0], podCIDRs: both });
    expect(specOf({ podCIDR: '10.2.0.0/24', podCIDRs: both })).toEqual({
      podCIDR: '10.2.0.0/24',
      podCIDRs: ['10.2.0.0/24'],
    });
    expect(specOf({})).toEqual({});
  });
  it('the capacity of a Node may be 0', () => {
    expect(created(nodeKind, { status: { capacity: { cpu: '0' } } }).errors).toEqual([]);
  });
  it('the capacity of a Node may not be negative', () => {
    expect(created(nodeKind, { status: { capacity: { cpu: '-1' }, allocatable: {} } }).errors).toEqual([
      'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
    ]);
  });
});

describe('an update of a Node', () => {
  it('an update of a Node keeps the status', () => {
    expect(
      updated(nodeKind, { status: { phase: 'Running' } }, { spec: { unschedulable: true } }).object.status,
    ).toEqual({ phase: 'Running' });
  });
  it('an update of a Node may keep podCIDR and providerID, but not set another one', () => {
    const spec = { podCIDR: '10.1.0.0/24', providerID: 'x' };
    expect(updated(nodeKind, { spec }, { spec }).errors).toEqual([]);
    expect(updated(nodeKind, { spec }, { spec: { podCIDR: '10.2.0.0/24', providerID: 'y' } }).errors).toHaveLength(2);
  });
  it('podCIDR and providerID of a Node can be set only once', () => {
    const spec = { podCIDR: '10.1.0.0/24', providerID: 'x' };
    expect(updated(nodeKind, {}, { spec }).errors).toEqual([]);
    expect(updated(nodeKind, { spec }, {}).errors).toEqual([
      'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
      'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
    ]);
  });
  it('the status of a Node may list an address only once', () => {
    const old = created(nodeKind, { metadata: { resourceVersion: '1' } }).object;
    const address = { type: 'InternalIP', address: '10.0.0.1' };
    const errors = nodeKind.subresources['status']?.validate?.(
      { ...old, status: { addresses: [address, address] } },
      old,
    );
    expect(errors?.map((error) => error.field)).toEqual(['status.addresses[1]']);
  });
});

describe('table of Nodes', () => {
  const nodeInfo: NodeStatus['nodeInfo'] = {
    kubeletVersion: 'v1.33.0',
    osImage: 'Debian 12',
    kernelVersion: '6.18',
    containerRuntimeVersion: 'containerd://1.6.20',
    architecture: 'amd64',
    bootID: '',
    kubeProxyVersion: '',
    machineID: '',
    operatingSystem: 'linux',
    systemUUID: '',
  };
  it('the table of Nodes has the headings of v1.33', () => {
    expect(headings(nodeKind)).toEqual({
      narrow: 'NAME | STATUS | ROLES | AGE | VERSION',
      all: 'NAME | STATUS | ROLES | AGE | VERSION | INTERNAL-IP | EXTERNAL-IP | OS-IMAGE | KERNEL-VERSION | CONTAINER-RUNTIME',
    });
  });
  it('the table of Nodes shows status, roles, versions and addresses', () => {
    const node = {
      metadata: {
        creationTimestamp: '2026-01-31T11:59:00Z',
        labels: { 'node-role.kubernetes.io/worker': '', 'node-role.kubernetes.io/control-plane': '' },
      },
      spec: { unschedulable: true },
      status: {
        nodeInfo,
        conditions: [{ type: 'Ready', status: 'True' }],
        addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      },
    };
    expect(row(nodeKind, node)).toEqual([
      'a',
      'Ready,SchedulingDisabled',
      'control-plane,worker',
      '60s',
      'v1.33.0',
      '10.0.0.1',
      '<none>',
      'Debian 12',
      '6.18',
      'containerd://1.6.20',
    ]);
  });
  it.each([
    ['the labels for roles', { 'kubernetes.io/role': 'gpu', 'node-role.kubernetes.io/worker': '' }, 'gpu,worker'],
    ['labels without a role', { 'kubernetes.io/role': '', 'node-role.kubernetes.io/': 'x', other: 'y' }, '<none>'],
  ])('the roles of a Node are read from %s', (_, labels, expected) => {
    expect(row(nodeKind, { metadata: { labels } })[2]).toBe(expected);
  });
  it.each([
    [{ conditions: [{ type: 'Ready', status: 'Unknown' }] }, 'NotReady'],
    [{}, 'Unknown'],
  ])('a Node with the status %j is shown as %s', (status, expected) => {
    expect(row(nodeKind, { status })[1]).toBe(expected);
  });
});
