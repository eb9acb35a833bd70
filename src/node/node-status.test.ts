import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Lease, Node } from '../api/generated/types.ts';
import { memoryBackend, silentLog, testTimers } from '../client/testing.ts';
import { inProcessClient } from '../client/typed-client.ts';
import type { ContainerRuntime } from '../runtime/runtime.ts';
import { type NodeStatusReporter, startNodeStatus } from './node-status.ts';

const nodesRef = { group: '', version: 'v1', resource: 'nodes' };
const leasesRef = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' };

let backend: ReturnType<typeof memoryBackend>;
let timers: ReturnType<typeof testTimers>;
let controller: AbortController;
let problems: string[] | Error;
let reporter: NodeStatusReporter;

const runtime = {
  version: async () => ({ name: 'containerd', version: '1.6.20', apiVersion: 'v1' }),
  notReady: async () => {
    if (problems instanceof Error) throw problems;
    return problems;
  },
} as unknown as ContainerRuntime;

const start = async (): Promise<void> => {
  reporter = await startNodeStatus({
    client: inProcessClient(backend),
    nodeName: 'n1',
    runtime,
    podCidr: '10.244.0.0/24',
    internalIp: '192.0.2.2',
    dataDir: tmpdir(),
    version: 'v1.33.0+lifepod',
    timers,
    log: silentLog,
    signal: controller.signal,
  });
};
beforeEach(async () => {
  backend = memoryBackend();
  timers = testTimers();
  controller = new AbortController();
  problems = [];
  await start();
});
afterEach(() => controller.abort());

const node = (): Node => backend.objects(nodesRef)[0] as Node;
const lease = (): Lease => backend.objects(leasesRef)[0] as Lease;
const ready = () => node().status?.conditions?.find(({ type }) => type === 'Ready');
const writes = (): string[] => backend.calls.filter((call) => /^(create|update|patch)/.test(call));
/** Moves the time on and waits until what was due is done. */
const advance = async (millis: number): Promise<void> => {
  timers.advance(millis);
  await reporter.check();
};

describe('startNodeStatus', () => {
  it('registers the node with what it is and has', () => {
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
    // Whether there is pressure is the machine's affair.
    const words = Object.fromEntries(
      (node().status?.conditions ?? []).map((c) => [`${c.type}=${c.status}`, `${c.reason}: ${c.message}`]),
    );
    const known = {
      'MemoryPressure=False': 'KubeletHasSufficientMemory: kubelet has sufficient memory available',
      'MemoryPressure=True': 'KubeletHasInsufficientMemory: kubelet has insufficient memory available',
      'DiskPressure=False': 'KubeletHasNoDiskPressure: kubelet has no disk pressure',
      'DiskPressure=True': 'KubeletHasDiskPressure: kubelet has disk pressure',
      'PIDPressure=False': 'KubeletHasSufficientPID: kubelet has sufficient PID available',
      'PIDPressure=True': 'KubeletHasInsufficientPID: kubelet has insufficient PID available',
      'Ready=True': 'KubeletReady: kubelet is posting ready status',
    };
    expect(Object.keys(words).map((key) => key.split('=')[0])).toEqual([
      'MemoryPressure',
      'DiskPressure',
      'PIDPressure',
      'Ready',
    ]);
    expect(known).toMatchObject(words);
    expect(lease()).toMatchObject({
      metadata: { name: 'n1', namespace: 'kube-node-lease' },
      spec: { holderIdentity: 'n1', leaseDurationSeconds: 40, renewTime: '2026-01-31T00:00:00.000000Z' },
    });
  });

  it('writes the Lease alone while nothing changes, and the status every five minutes', async () => {
    const before = writes().length;
    await advance(10_000);
    expect(lease().spec?.renewTime).toBe('2026-01-31T00:00:10.000000Z');
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

  it('is not ready while the runtime is not, and says why', async () => {
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

  it('adopts its Node after a restart, keeping what others wrote', async () => {
    controller.abort();
    const labelled = structuredClone(node());
    labelled.metadata.labels = { ...labelled.metadata.labels, disk: 'ssd' };
    backend.set(nodesRef, labelled);
    controller = new AbortController();
    timers.advance(3_600_000);
    await start();
    expect(node().metadata).toMatchObject({ uid: labelled.metadata.uid, labels: { disk: 'ssd' } });
    expect(ready()).toMatchObject({
      lastHeartbeatTime: '2026-01-31T01:00:00Z',
      lastTransitionTime: '2026-01-31T00:00:00Z',
    });
    expect(backend.objects(leasesRef)).toHaveLength(1);
  });

  it('registers anew where its Node or Lease was deleted', async () => {
    backend.remove(nodesRef, undefined, 'n1');
    backend.remove(leasesRef, 'kube-node-lease', 'n1');
    await advance(300_000);
    await advance(10_000);
    expect(ready()?.status).toBe('True');
    expect(lease().spec?.renewTime).toBe('2026-01-31T00:05:10.000000Z');
  });
});
