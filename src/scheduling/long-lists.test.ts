/** Tests that scheduling processes long lists in objects, and many objects, in linear time. */
import { expect, test } from 'vitest';
import { nodeOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  Taint,
  Toleration,
} from '../api/generated/types.ts';
import { cpuMillisOf } from '../machinery/testing.ts';
import { hostPortsTaken } from './host-ports.ts';
import { type Refusal, refusal } from './node-admission.ts';
import { NodePods, podsByNode } from './node-pods.ts';
import { limitedStays } from './node-taints.ts';
import { roomFor } from './preemption.ts';
import { untoleratedTaint } from './requirements.ts';
import { schedule } from './schedule.ts';
import { NO_PROVISIONER, type VolumeFacts, volumeReasons } from './volume-claims.ts';
import { volumeIndex } from './volume-search.ts';

/** So long that an algorithm that compares all pairs takes several times STALL_MILLIS. */
const COUNT = 20_000;
const STALL_MILLIS = 1000;

const list = <T>(item: (index: number) => T): T[] => Array.from({ length: COUNT }, (_, index) => item(index));
const pod = (spec: object): Pod =>
  ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers: [], ...spec } }) as Pod;

test('host ports of two Pods are compared in linear time', () => {
  const ports = (first: number) => list((index) => ({ containerPort: 1, hostPort: first + index }));
  const [one, other] = [1, COUNT + 1].map((first) => pod({ containers: [{ name: 'a', ports: ports(first) }] })) as [
    Pod,
    Pod,
  ];
  expect(cpuMillisOf(() => expect(hostPortsTaken(one, [other])).toBe(false))).toBeLessThan(STALL_MILLIS);
  expect(hostPortsTaken(one, [one])).toBe(true);
});

test('host ports with one number and many addresses are compared in linear time', () => {
  let reads = 0;
  const ports = (network: number) =>
    list((index) => ({
      containerPort: 1,
      hostPort: 80,
      get hostIP() {
        reads++;
        return `10.${network}.${index >> 8}.${index & 255}`;
      },
    }));
  const [one, other] = [1, 2].map((network) => pod({ containers: [{ name: 'a', ports: ports(network) }] })) as [
    Pod,
    Pod,
  ];
  expect(hostPortsTaken(one, [other])).toBe(false);
  expect(reads).toBeLessThan(10 * COUNT);
  expect(hostPortsTaken(one, [other, one])).toBe(true);
});

/** `onRead` is called whenever the requests are enumerated. */
const requesting = (name: string, count: number, onRead: () => void): Pod => {
  const requests = Object.fromEntries(Array.from({ length: count }, (_, index) => [`x.y/r${index}`, '1']));
  const ownKeys = (target: object) => {
    onRead();
    return Reflect.ownKeys(target);
  };
  return named(name, { containers: [{ name: 'a', resources: { requests: new Proxy(requests, { ownKeys }) } }] });
};

test('the requests of a Pod are read once for all nodes and decisions', () => {
  let reads = 0;
  const nodes = ['a', 'b', 'c'].map((name) => nodeOf(name));
  const bound = ['p', 'q'].map((name) => {
    const other = requesting(name, 10, () => reads++);
    return { ...other, spec: { ...other.spec, nodeName: 'a' } } as Pod;
  });
  const wanting = requesting('w', 10, () => reads++);
  for (let decision = 0; decision < 3; decision++) {
    schedule(wanting, nodes, podsByNode(bound));
    schedule(named('small'), nodes, podsByNode(bound));
    roomFor(wanting, nodes, podsByNode(bound));
  }
  expect(reads).toBe(3);
});

test('the message about an unschedulable Pod that lacks many resources names 100 of them', () => {
  const placement = schedule(
    requesting('w', COUNT, () => undefined),
    [nodeOf('n')],
    podsByNode([]),
  );
  expect('message' in placement && placement.message.match(/Insufficient x\.y\/r\d+/g)).toHaveLength(100);
});

test('the refusal of a critical Pod that lacks many resources names 100 of them', () => {
  const requests = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`hugepages-${index + 1}`, '1']));
  const critical = named('critical', { containers: [{ name: 'a', resources: { requests } }] });
  const side = { node: nodeOf('n'), others: [named('other')], isStatic: (pod: Pod) => pod === critical };
  const refused = refusal(critical, { ...side, appArmorEnabled: true, strictGroups: true });
  expect(refused).toMatchObject({ reason: 'UnexpectedAdmissionError' });
  expect((refused as Refusal).message.match(/\(res: hugepages-/g)).toHaveLength(100);
});

test('taints and tolerations are compared in linear time', () => {
  const taints: Taint[] = list((index) => ({ key: `k${index}`, value: 'v', effect: 'NoSchedule' }));
  const tolerations: Toleration[] = list((index) => ({ key: `k${COUNT - 1 - index}`, operator: 'Exists' }));
  const tolerant = pod({ tolerations });
  expect(cpuMillisOf(() => expect(untoleratedTaint(tolerant, taints)).toBeUndefined())).toBeLessThan(STALL_MILLIS);
  expect(untoleratedTaint(pod({ tolerations: tolerations.slice(1) }), taints)).toEqual(taints.at(-1));
  expect(untoleratedTaint(pod({ tolerations: [{ operator: 'Exists' }] }), taints)).toBeUndefined();
  const ofOtherEffect = pod({ tolerations: list(() => ({ operator: 'Exists', effect: 'NoExecute' })) });
  expect(cpuMillisOf(() => untoleratedTaint(ofOtherEffect, taints))).toBeLessThan(STALL_MILLIS);
  const evicting: Taint[] = list((index) => ({ key: `k${index}`, effect: 'NoExecute' }));
  expect(cpuMillisOf(() => expect(limitedStays(tolerant, evicting)).toEqual([]))).toBeLessThan(STALL_MILLIS);
});

const named = (name: string, rest: object = {}): Pod => {
  const { metadata, ...other } = pod(rest);
  return { ...other, metadata: { ...metadata, name, namespace: 'd', uid: name } };
};
const node = nodeOf('n', { allocatable: { cpu: '1000000', pods: '1000000' } });
const claimsNamed = (prefix: string): object =>
  list((index) => ({ name: `v${index}`, persistentVolumeClaim: { claimName: `${prefix}${index}` } }));
const claimOf = (namespace: string, name: string, request = 1): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { namespace, name },
  spec: { accessModes: ['ReadWriteOncePod'], resources: { requests: { storage: String(request) } } },
});
const facts = (volumes: readonly PersistentVolume[], claim: VolumeFacts['claim'] = claimOf): VolumeFacts => {
  const index = volumeIndex(volumes);
  const storageClass = () => ({ provisioner: NO_PROVISIONER }) as StorageClass;
  return { claim, volume: () => undefined, search: () => index, storageClass };
};
const volumesOfSizes = (): PersistentVolume[] =>
  list((index) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `v${index}` },
    spec: { accessModes: ['ReadWriteOncePod'], capacity: { storage: String(COUNT - index) } },
    status: { phase: 'Available' },
  }));

test('claims of two Pods are compared in linear time', () => {
  const [one, other] = ['a', 'b'].map((prefix) => named(prefix, { volumes: claimsNamed(prefix) })) as [Pod, Pod];
  const found = facts(volumesOfSizes());
  expect(cpuMillisOf(() => expect(volumeReasons(one, node, new NodePods([other]), found)).toEqual([]))).toBeLessThan(
    STALL_MILLIS,
  );
  expect(volumeReasons(one, node, new NodePods([one]), found)).toHaveLength(1);
});

test('volumes for many claims are found in linear time', () => {
  const sizes = volumesOfSizes();
  const request = (namespace: string, name: string) => claimOf(namespace, name, Number(name.slice(1)) + 1);
  const wanting = named('a', { volumes: claimsNamed('c') });
  const reasons = (volumes: PersistentVolume[]) =>
    volumeReasons(wanting, node, new NodePods(), facts(volumes, request));
  expect(cpuMillisOf(() => expect(reasons(sizes)).toEqual([]))).toBeLessThan(STALL_MILLIS);
  expect(reasons(sizes.slice(1))).toEqual(["node(s) didn't find available persistent volumes to bind"]);
});

test('preemption victims among many Pods are found in linear time', () => {
  const resources = { requests: { cpu: '1' } };
  const spec = { containers: [{ name: 'a', image: 'b', resources }], nodeName: 'n' };
  const lower = list((index) => named(`p${index}`, spec)).slice(0, COUNT / 4);
  const important = named('important', { containers: [{ name: 'a', image: 'b', resources }], priority: 1 });
  const full = nodeOf('n', { allocatable: { cpu: String(COUNT / 4), pods: '1000000' } });
  const time = cpuMillisOf(() =>
    expect(roomFor(important, [full], podsByNode(lower))?.victims).toEqual([lower.at(-1)]),
  );
  expect(time).toBeLessThan(STALL_MILLIS);
});
