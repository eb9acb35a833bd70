import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CoreV1Event, Lease, Node } from '../../api/generated/types.ts';
import { EVENTS, LEASES, NODES } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import type { ContainerRuntime, ImageInfo, RuntimeFeatures } from '../../runtime/runtime.ts';
import type { PressureCondition } from '../eviction/thresholds.ts';
import { readCapacity } from './machine-facts.ts';
import { type NodeStatusReporter, startNodeStatus } from './node-status.ts';

let backend: RegistryBackend;
let timers: VirtualTimers;
let controller: AbortController;
let problems: string[] | Error;
let features: RuntimeFeatures | undefined;
let images: ImageInfo[];
let addresses: string[];
let pressures: ReadonlySet<PressureCondition>;
let reporter: NodeStatusReporter;
let question: () => Promise<void>;

const runtime: Pick<ContainerRuntime, 'version' | 'notReady' | 'listImages' | 'features'> = {
  version: async () => ({ name: 'containerd', version: '1.6.20', apiVersion: 'v1' }),
  features: async () => features,
  notReady: async () => {
    await question();
    if (problems instanceof Error) throw problems;
    return problems;
  },
  listImages: async () => [...images],
};

const start = async (): Promise<void> => {
  reporter = await startNodeStatus({
    ...withInformers({ client: clientOf(backend), timers, log: silentLog }),
    nodeName: 'n1',
    runtime,
    podCidrs: ['10.244.0.0/24'],
    internalIps: async () => addresses,
    capacity: await readCapacity({ folder: tmpdir() }),
    pressure: { conditions: () => pressures },
    version: 'v1.33.0+lifepod',
    signal: controller.signal,
  });
};
beforeEach(async () => {
  timers = createVirtualTimers();
  backend = await registryBackend({ timers });
  controller = new AbortController();
  question = async () => undefined;
  problems = [];
  features = undefined;
  images = [];
  addresses = ['192.0.2.2'];
  pressures = new Set();
  await start();
});
afterEach(() => controller.abort());

const node = (): Node => backend.objects(NODES)[0] as Node;
const lease = (): Lease => backend.objects(LEASES)[0] as Lease;
const ready = () => node().status?.conditions?.find(({ type }) => type === 'Ready');
const writes = (): string[] => backend.calls.filter((call) => /^(create|update|patch)/.test(call));
const advance = async (millis: number): Promise<void> => {
  timers.advance(millis);
  await reporter.check();
};

describe('startNodeStatus', () => {
  it('the agent registers the Node with its addresses, resources, system info and conditions', () => {
    expect(node()).toMatchObject({
      metadata: { name: 'n1', labels: { 'kubernetes.io/hostname': 'n1', 'kubernetes.io/os': 'linux' } },
      spec: { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24'] },
      status: {
        addresses: [
          { type: 'InternalIP', address: '192.0.2.2' },
          { type: 'Hostname', address: 'n1' },
        ],
        capacity: { pods: '110', cpu: expect.stringMatching(/^\d+$/), memory: expect.stringMatching(/^\d+Ki$/) },
        allocatable: { pods: '110', 'ephemeral-storage': expect.stringMatching(/^\d+$/) },
        nodeInfo: {
          containerRuntimeVersion: 'containerd://1.6.20',
          kubeletVersion: 'v1.33.0+lifepod',
          operatingSystem: 'linux',
          osImage: expect.stringMatching(/./),
          kernelVersion: expect.stringMatching(/^\d+\./),
        },
      },
    });
    const words = Object.fromEntries(
      (node().status?.conditions ?? []).map((c) => [`${c.type}=${c.status}`, `${c.reason}: ${c.message}`]),
    );
    expect(words).toEqual({
      'MemoryPressure=False': 'KubeletHasSufficientMemory: kubelet has sufficient memory available',
      'DiskPressure=False': 'KubeletHasNoDiskPressure: kubelet has no disk pressure',
      'PIDPressure=False': 'KubeletHasSufficientPID: kubelet has sufficient PID available',
      'Ready=True': 'KubeletReady: kubelet is posting ready status',
    });
    expect(lease()).toMatchObject({
      metadata: { name: 'n1', namespace: 'kube-node-lease' },
      spec: { holderIdentity: 'n1', leaseDurationSeconds: 40, renewTime: '2026-01-31T00:00:00.000000Z' },
    });
  });

  it('the agent reports the current addresses of both families, and writes the status only when they change', async () => {
    const listed = (): string[] => (node().status?.addresses ?? []).map(({ type, address }) => `${type} ${address}`);
    for (const now of [['192.0.2.2', '2001:db8::2'], ['192.0.2.3', '2001:db8::3'], ['192.0.2.3']]) {
      addresses = now;
      await advance(10_000);
      expect(listed()).toEqual([...now.map((address) => `InternalIP ${address}`), 'Hostname n1']);
      backend.calls.length = 0;
      await advance(10_000);
      expect(writes().filter((call) => !call.includes('leases'))).toEqual([]);
    }
  });

  it('the agent writes only the Lease while nothing changes, and the status every five minutes', async () => {
    const before = writes().length;
    await advance(10_000);
    await vi.waitFor(() => expect(lease().spec?.renewTime).toBe('2026-01-31T00:00:10.000000Z'));
    expect(
      writes()
        .slice(before)
        .filter((call) => !call.includes('leases')),
    ).toEqual([]);
    await advance(290_000);
    expect(ready()).toMatchObject({
      lastHeartbeatTime: '2026-01-31T00:05:00Z',
      lastTransitionTime: '2026-01-31T00:00:00Z',
    });
  });

  it('the agent does not write the status because another client has added a condition', async () => {
    const other = { type: 'KernelDeadlock', status: 'False', reason: 'KernelHasNoDeadlock', message: '' };
    const type = 'application/strategic-merge-patch+json';
    const nodes = clientOf(backend).resource<Node>(NODES);
    await nodes.patch('n1', undefined, type, { status: { conditions: [other] } }, 'status');
    backend.calls.length = 0;
    await advance(10_000);
    expect(writes().filter((call) => !call.includes('leases'))).toEqual([]);
    pressures = new Set(['DiskPressure']);
    await advance(10_000);
    expect(node().status?.conditions?.map(({ type }) => type)).toContain('KernelDeadlock');
  });
  it('the agent lists the images again after imagesChanged()', async () => {
    expect(node().status?.images).toEqual([]);
    images = [{ id: 'x', tags: ['x:1'], digests: ['x@sha256:1'], sizeBytes: 7 }];
    await advance(10_000);
    expect(node().status?.images).toEqual([]);
    reporter.imagesChanged();
    await reporter.check();
    expect(node().status?.images).toEqual([{ names: ['x@sha256:1', 'x:1'], sizeBytes: 7 }]);
    images = [];
    reporter.imagesChanged();
    await reporter.check();
    expect(node().status?.images).toEqual([]);
  });

  it('all calls of check() during a check are combined into one more check', async () => {
    const answer = Promise.withResolvers<void>();
    let questions = 0;
    question = () => {
      questions++;
      return answer.promise;
    };
    const first = reporter.check();
    await vi.waitFor(() => expect(questions).toBe(1));
    const others = Array.from({ length: 5 }, () => reporter.check());
    answer.resolve();
    await Promise.all([first, ...others]);
    expect(questions).toBe(2);
    await reporter.check();
    expect(questions).toBe(3);
  });

  it('the agent records Events for changes of readiness, schedulability and boot ID', async () => {
    const events = () =>
      (backend.objects(EVENTS) as CoreV1Event[]).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
    problems = ['x'];
    await advance(10_000);
    problems = [];
    await advance(10_000);
    await vi.waitFor(() => expect(backend.calls).toContain('watch nodes /'));
    await backend.set(NODES, { ...node(), spec: { ...node().spec, unschedulable: true } } as Node);
    await backend.set(NODES, { ...node(), spec: { ...node().spec, unschedulable: false } } as Node);
    const { status } = node();
    await backend.setStatus(NODES, undefined, 'n1', {
      ...status,
      nodeInfo: { ...status?.nodeInfo, bootID: 'of old' },
    });
    await advance(10_000);
    await vi.waitFor(() =>
      expect(events()).toEqual([
        'Normal Starting: Starting kubelet.',
        'Normal NodeNotReady: Node n1 status is now: NodeNotReady',
        'Normal NodeReady: Node n1 status is now: NodeReady',
        'Normal NodeNotSchedulable: Node n1 status is now: NodeNotSchedulable',
        'Normal NodeSchedulable: Node n1 status is now: NodeSchedulable',
        expect.stringMatching(/^Warning Rebooted: Node n1 has been rebooted, boot id: /),
      ]),
    );
  });

  it('the Node has the pressure conditions of the machine', async () => {
    pressures = new Set<PressureCondition>(['MemoryPressure', 'DiskPressure', 'PIDPressure']);
    await advance(10_000);
    const under = node().status?.conditions?.filter(({ type }) => type.endsWith('Pressure'));
    expect(under?.map(({ status, reason, message }) => `${status} ${reason}: ${message}`)).toEqual([
      'True KubeletHasInsufficientMemory: kubelet has insufficient memory available',
      'True KubeletHasDiskPressure: kubelet has disk pressure',
      'True KubeletHasInsufficientPID: kubelet has insufficient PID available',
    ]);
    pressures = new Set();
    await advance(10_000);
    expect(
      node()
        .status?.conditions?.filter(({ status }) => status === 'True')
        .map(({ type }) => type),
    ).toEqual(['Ready']);
  });

  it('the Node is not ready while the runtime is not, and shows why', async () => {
    problems = ['container runtime network not ready: NetworkReady=false', 'other'];
    await advance(10_000);
    expect(ready()).toMatchObject({
      status: 'False',
      reason: 'KubeletNotReady',
      message: '[container runtime network not ready: NetworkReady=false, other]',
      lastTransitionTime: '2026-01-31T00:00:10Z',
    });
    problems = new Error('connection refused');
    await advance(10_000);
    expect(ready()?.message).toBe('container runtime is down: connection refused');
    problems = [];
    await advance(10_000);
    expect(ready()).toMatchObject({ status: 'True', lastTransitionTime: '2026-01-31T00:00:30Z' });
  });

  it('the Node becomes not ready when a hanging runtime has timed out', async () => {
    const asked = Promise.withResolvers<void>();
    question = () => {
      asked.resolve();
      return new Promise(() => undefined);
    };
    const checked = reporter.check();
    await asked.promise;
    timers.advance(30_000);
    await checked;
    expect(ready()).toMatchObject({ status: 'False', lastTransitionTime: '2026-01-31T00:00:30Z' });
  });

  it('the agent adopts its Node after a restart and keeps the labels of other clients', async () => {
    controller.abort();
    const labelled = structuredClone(node());
    labelled.metadata.labels = { ...labelled.metadata.labels, disk: 'ssd' };
    await backend.set(NODES, labelled);
    controller = new AbortController();
    timers.advance(3_600_000);
    await start();
    expect(node().metadata).toMatchObject({ uid: labelled.metadata.uid, labels: { disk: 'ssd' } });
    expect(ready()).toMatchObject({
      lastHeartbeatTime: '2026-01-31T01:00:00Z',
      lastTransitionTime: '2026-01-31T00:00:00Z',
    });
    expect(backend.objects(LEASES)).toHaveLength(1);
  });

  it('the agent creates its Node and Lease again if they were deleted', async () => {
    await backend.remove(NODES, undefined, 'n1');
    await backend.remove(LEASES, 'kube-node-lease', 'n1');
    await advance(300_000);
    await advance(10_000);
    expect(ready()?.status).toBe('True');
    await vi.waitFor(() => expect(lease().spec?.renewTime).toBe('2026-01-31T00:05:10.000000Z'));
  });
});

it('the Node shows the features of the runtime once they are known', async () => {
  expect(node().status).not.toHaveProperty('features');
  features = { supplementalGroupsPolicy: true, handlers: [{ name: '', recursiveReadOnlyMounts: true }] };
  await reporter.check();
  expect(node().status).toMatchObject({
    features: { supplementalGroupsPolicy: true },
    runtimeHandlers: [{ name: '', features: { recursiveReadOnlyMounts: true, userNamespaces: false } }],
  });
});
