/** The Pods never run, because no node has the label that they select. */
import { expect } from 'vitest';
import { lifepod, test } from '../support/shared-engine.ts';

const labels = { app: 'scaled' };
const template = {
  metadata: { labels },
  spec: { nodeSelector: { no: 'node' }, containers: [{ name: 'app', image: 'busybox:1.28' }] },
};

test.each([
  ['apps/v1', 'Deployment', { matchLabels: labels }, 'deployment.apps/x'],
  ['apps/v1', 'ReplicaSet', { matchLabels: labels }, 'replicaset.apps/x'],
  ['v1', 'ReplicationController', labels, 'replicationcontroller/x'],
])('kubectl scales an object of %s %s only from the expected replicas', async (apiVersion, kind, selector, shown) => {
  await lifepod.apply({ apiVersion, kind, metadata: { name: 'x' }, spec: { replicas: 1, selector, template } });
  const replicas = (): Promise<string> => lifepod.kubectlOk('get', kind, 'x', '-o', 'jsonpath={.spec.replicas}');
  const scale = ['scale', kind, 'x', '--replicas=3', '--current-replicas=1'];
  expect(await lifepod.kubectlOk(...scale)).toBe(`${shown} scaled\n`);
  expect(await replicas()).toBe('3');
  const refused = await lifepod.kubectl(...scale);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain('Expected replicas to be 1, was 3');
  expect(await replicas()).toBe('3');
});
