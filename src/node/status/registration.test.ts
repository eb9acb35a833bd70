import { beforeEach, expect, test } from 'vitest';
import type { Node } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { alreadyExists, notFound, serviceUnavailable } from '../../machinery/status.ts';
import { nodeLabels, registerNode } from './registration.ts';

let backend: RegistryBackend;
beforeEach(async () => {
  backend = await registryBackend();
});
const register = (podCidrs = ['10.244.0.0/24'], labels: Record<string, string> = {}): Promise<Node> =>
  registerNode({ client: clientOf(backend), nodeName: 'n', podCidrs, labels });
const nodeCalls = (): string[] => backend.calls.filter((call) => call.includes(' nodes '));

test('registerNode() creates a missing Node, and only updates the labels and the Pod CIDRs of an existing one', async () => {
  expect(await register()).toMatchObject({
    metadata: { name: 'n', labels: nodeLabels('n') },
    spec: { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24'] },
  });
  const node = backend.objects(NODES)[0] as Node;
  const labels = { ...node.metadata.labels, 'kubernetes.io/hostname': 'old', mine: 'kept' };
  const changed: Node = {
    ...node,
    metadata: { ...node.metadata, labels },
    spec: { ...node.spec, unschedulable: true },
  };
  await backend.set(NODES, changed);
  backend.calls.length = 0;
  expect(await register()).toMatchObject({
    metadata: { labels: { ...nodeLabels('n'), mine: 'kept' } },
    spec: { podCIDR: '10.244.0.0/24', unschedulable: true },
  });
  expect(nodeCalls()).toEqual(['patch nodes /n']);
});

test('registerNode() gives the Node two Pod CIDRs, the first of which is its podCIDR', async () => {
  const podCIDRs = ['10.244.0.0/24', 'fd00:10:244::/64'];
  for (const _ of ['create', 'update']) {
    expect((await register(podCIDRs)).spec).toEqual({ podCIDR: podCIDRs[0], podCIDRs });
  }
});

test('registerNode() adds the labels of its options, which cannot replace the labels that every Node has', async () => {
  const { metadata } = await register(undefined, { zone: 'a', 'kubernetes.io/os': 'other' });
  expect(metadata.labels).toEqual({ ...nodeLabels('n'), zone: 'a' });
});

test('registerNode() updates a Node that another client creates in the meantime, and creates one that disappears', async () => {
  await register();
  backend.calls.length = 0;
  backend.failNext('patch nodes', notFound(NODES, 'n'));
  backend.failNext('create nodes', alreadyExists(NODES, 'n'));
  expect((await register()).metadata.name).toBe('n');
  expect(nodeCalls()).toEqual(['patch nodes /n', 'create nodes /n', 'patch nodes /n']);
});

test.each(['patch nodes', 'create nodes'])(
  'registerNode() rejects if the API server refuses the call %s',
  async (call) => {
    backend.failNext(call, serviceUnavailable('the API is down'));
    await expect(register()).rejects.toThrow('the API is down');
  },
);
