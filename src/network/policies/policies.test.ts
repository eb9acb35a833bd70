/** Uses the real registry, and a table that only stores its sections. */
import { expect, onTestFinished, test } from 'vitest';
import { MIRROR_ANNOTATION } from '../../api/core/v1/pod/mirror.ts';
import type { CoreV1Event, NetworkPolicy, Pod } from '../../api/generated/types.ts';
import { EVENTS, NETWORK_POLICIES, PODS } from '../../api/resources.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import type { Rejections, Section } from '../nftables/section.ts';
import { type LeftSandbox, startPolicies } from './policies.ts';

const ADDRESS = '10.0.0.7';
const DENY: NetworkPolicy = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'deny', namespace: 'a' },
  spec: { podSelector: { matchLabels: { app: 'db' } }, policyTypes: ['Ingress'] },
};
const HELD = { namespace: 'a', name: 'db', uid: 'u', labels: { app: 'db' }, ports: [] };
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
};

/** `left`: the attached sandboxes that an earlier engine has left, or the error with which left() rejects. */
async function enforced(left: readonly LeftSandbox[] | Error = []) {
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const attached = new Set(left instanceof Error ? [] : left.flatMap(({ addresses }) => addresses));
  let detached: (addresses: readonly string[]) => void = () => undefined;
  let section: Section = new Map();
  let judge: (parts: Section) => Rejections = () => new Map();
  const policies = startPolicies({
    ...withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal }),
    nodeName: 'n1',
    table: {
      name: 'lifepod-0',
      set: async (_name, parts) => {
        section = parts;
        return judge(parts);
      },
    },
    sandboxes: {
      isAttached: (address) => attached.has(address),
      onDetached: (listener) => {
        detached = listener;
      },
    },
    left: async () => {
      if (left instanceof Error) throw left;
      return left;
    },
    firstRulesMillis: 30_000,
  });
  await backend.set(NETWORK_POLICIES, DENY);
  const setPod = (name: string, labels: Record<string, string>, annotations = {}): Promise<Pod> => {
    const stored = backend.objects(PODS).find(({ metadata }) => metadata.name === name) as Pod | undefined;
    const spec = { containers: [{ name: 'c', image: 'i' }], nodeName: 'n1' };
    const pod: Pod = stored ?? { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'a', annotations }, spec };
    return backend.set<Pod>(PODS, { ...pod, metadata: { ...pod.metadata, labels } });
  };
  return {
    timers,
    attached,
    backend,
    policies,
    setPod,
    async start(name: string, labels: Record<string, string>, address = ADDRESS) {
      const pod = await setPod(name, labels);
      await settled();
      attached.add(address);
      await policies.hold(
        { namespace: 'a', name, uid: pod.metadata.uid ?? '', labels, ports: [] },
        [address],
        stop.signal,
      );
    },
    async detach(address = ADDRESS) {
      attached.delete(address);
      detached([address]);
      await settled();
    },
    isIsolated: (address = ADDRESS) => (section.get(`address ${address}`)?.elements ?? []).length > 0,
    /** Makes nft reject the part of the section until `accept` is called. */
    reject(name: string): { accept(): void } {
      const known = new WeakMap<object, Error>();
      judge = (parts) => {
        const part = parts.get(name);
        if (part === undefined) return new Map();
        const error = known.get(part) ?? new Error('Error: syntax error');
        known.set(part, error);
        return new Map([[name, error]]);
      };
      return {
        accept: () => {
          judge = () => new Map();
        },
      };
    },
    elements: (address = ADDRESS) => section.get(`address ${address}`)?.elements ?? [],
    knows: (address = ADDRESS) => section.has(`address ${address}`),
  };
}

test('a Pod whose object is deleted stays isolated until its sandbox is detached', async () => {
  const cluster = await enforced();
  await cluster.start('db', { app: 'db' });
  expect(cluster.isIsolated()).toBe(true);
  await cluster.backend.remove(PODS, 'a', 'db');
  await settled();
  expect(cluster.isIsolated()).toBe(true);
  await cluster.detach();
  expect(cluster.knows()).toBe(false);
});

test('a new Pod with the name of a deleted one changes nothing for the sandbox of the deleted one', async () => {
  const cluster = await enforced();
  await cluster.start('db', { app: 'db' });
  await cluster.backend.remove(PODS, 'a', 'db');
  await cluster.start('db', { app: 'open' }, '10.0.0.8');
  await settled();
  expect(cluster.isIsolated()).toBe(true);
  expect(cluster.isIsolated('10.0.0.8')).toBe(false);
  await cluster.detach();
  expect([cluster.knows(), cluster.knows('10.0.0.8')]).toEqual([false, true]);
});

test('a Pod without a sandbox is forgotten when its object is deleted', async () => {
  const cluster = await enforced();
  await cluster.start('db', { app: 'db' });
  await cluster.detach();
  await cluster.backend.remove(PODS, 'a', 'db');
  await settled();
  expect(cluster.knows()).toBe(false);
});

test.each(['Failed', 'Succeeded'])(
  'a Pod with the phase %s stays isolated until its sandbox is detached',
  async (phase) => {
    const cluster = await enforced();
    await cluster.start('db', { app: 'db' });
    await cluster.backend.setStatus(PODS, 'a', 'db', { phase, podIP: ADDRESS, podIPs: [{ ip: ADDRESS }] });
    await settled();
    expect(cluster.isIsolated()).toBe(true);
    await cluster.detach();
    expect(cluster.knows()).toBe(false);
  },
);

test('both sandboxes of a Pod are isolated while the older one is still attached', async () => {
  const cluster = await enforced();
  await cluster.start('db', { app: 'db' });
  await cluster.start('db', { app: 'db' }, '10.0.0.8');
  expect([cluster.isIsolated(), cluster.isIsolated('10.0.0.8')]).toEqual([true, true]);
  await cluster.detach();
  expect([cluster.knows(), cluster.isIsolated('10.0.0.8')]).toEqual([false, true]);
});

test('an address belongs to the Pod whose sandbox has it, whatever the status of another Pod contains', async () => {
  const cluster = await enforced();
  await cluster.start('open', {});
  await cluster.detach();
  await cluster.start('db', { app: 'db' });
  await cluster.backend.setStatus(PODS, 'a', 'open', { phase: 'Running', podIP: ADDRESS, podIPs: [{ ip: ADDRESS }] });
  await settled();
  expect(cluster.isIsolated()).toBe(true);
});

test('a sandbox that was detached before its Pod could be held is not added to the rules', async () => {
  const cluster = await enforced();
  await expect(cluster.policies.hold(HELD, [ADDRESS], AbortSignal.any([]))).rejects.toThrow(
    'the sandbox of the Pod a/db has been detached from the network',
  );
  expect(cluster.knows()).toBe(false);
});

test('a sandbox of an earlier engine whose Pod the API does not have is isolated until it is detached', async () => {
  const cluster = await enforced([{ pod: HELD, addresses: [ADDRESS] }]);
  await settled();
  expect(cluster.isIsolated()).toBe(true);
  await cluster.start('db', {}, '10.0.0.8');
  expect([cluster.isIsolated(), cluster.isIsolated('10.0.0.8')]).toEqual([true, false]);
  await cluster.detach();
  expect([cluster.knows(), cluster.knows('10.0.0.8')]).toEqual([false, true]);
});

test('a mirror Pod gives the sandbox of its static Pod the labels of the API', async () => {
  const cluster = await enforced([{ pod: { ...HELD, labels: {} }, addresses: [ADDRESS] }]);
  await settled();
  expect([cluster.knows(), cluster.isIsolated()]).toEqual([true, false]);
  await cluster.setPod('db', { app: 'db' }, { [MIRROR_ANNOTATION]: HELD.uid });
  await settled();
  expect(cluster.isIsolated()).toBe(true);
});

test('nothing is written before the sandboxes of an earlier engine are known, and hold() rejects after its limit', async () => {
  const cluster = await enforced(new Error('no answer'));
  cluster.attached.add(ADDRESS);
  const held = cluster.policies.hold(HELD, [ADDRESS], AbortSignal.any([]));
  const rejected = expect(held).rejects.toThrow(
    'the node does not know all NetworkPolicies, Namespaces, Pods and sandboxes after 30 s; its log has the cause',
  );
  await cluster.timers.run(() => false, cluster.timers.now() + 30_000);
  await rejected;
  expect(cluster.knows()).toBe(false);
});

test('a named port of a held Pod that the API does not have is found by its name', async () => {
  const cluster = await enforced();
  const ports = [{ port: 'web' }];
  const spec = { podSelector: {}, policyTypes: ['Ingress'], ingress: [{ ports }] };
  await cluster.backend.set(NETWORK_POLICIES, { ...DENY, metadata: { name: 'web', namespace: 'a' }, spec });
  await settled();
  cluster.attached.add(ADDRESS);
  const held = { ...HELD, ports: [{ name: 'web', containerPort: 8080 }] };
  await cluster.policies.hold(held, [ADDRESS], AbortSignal.any([]));
  expect(cluster.elements().flatMap(({ values }) => [...values].map(([key]) => key))).toContain(`${ADDRESS} . 8080`);
});

test('a policy or a Pod whose rules nft rejects gets an Event, and its rules are tried again', async () => {
  const cluster = await enforced();
  await cluster.start('db', { app: 'db' });
  const warnings = (): unknown[] =>
    (cluster.backend.objects(EVENTS) as CoreV1Event[]).map(({ involvedObject, type, reason, message, count }) => {
      return { kind: involvedObject.kind, name: involvedObject.name, type, reason, message, count };
    });
  const { accept } = cluster.reject('policy a/deny');
  await cluster.start('other', {}, '10.0.0.8');
  await settled();
  const expected = {
    kind: 'NetworkPolicy',
    name: 'deny',
    type: 'Warning',
    reason: 'RulesRejected',
    message:
      'node n1 lets this NetworkPolicy allow nothing, because nft rejects its rules; change the NetworkPolicy: Error: syntax error',
  };
  expect(warnings()).toEqual([{ ...expected, count: 1 }]);
  // A change of another Pod does not report the rejected rules again. After a pause, the rules are tried and reported again.
  await cluster.start('another', {}, '10.0.0.9');
  await settled();
  expect(warnings()).toEqual([{ ...expected, count: 1 }]);
  cluster.timers.advance(1000);
  await settled();
  expect(warnings()).toEqual([{ ...expected, count: 2 }]);
  accept();
  cluster.timers.advance(2000);
  await settled();
  cluster.timers.advance(600_000);
  await settled();
  expect(warnings()).toEqual([{ ...expected, count: 2 }]);
  cluster.reject(`address ${ADDRESS}`);
  await cluster.start('third', {}, '10.0.0.10');
  await settled();
  expect(warnings()).toContainEqual(expect.objectContaining({ kind: 'Pod', name: 'db', reason: 'RulesRejected' }));
});
