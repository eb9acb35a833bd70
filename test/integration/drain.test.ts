/** kubectl chooses the version of the eviction from discovery. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KUBECTL, OLDER_KUBECTL } from '../support/kubectl.ts';
import { type KubectlFixture, startKubectlFixture } from './kubectl-fixture.ts';

const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' } };
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'drained' },
  spec: { nodeName: 'node-1', terminationGracePeriodSeconds: 0, containers: [{ name: 'main', image: 'busybox:1.28' }] },
};
const budget = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'budget' },
  spec: { minAvailable: '50%', selector: { matchLabels: { app: 'a' } } },
};

describe.each([
  ['the current kubectl', KUBECTL],
  ['kubectl 1.20', OLDER_KUBECTL],
])('%s', (_, program) => {
  describe.skipIf(program === undefined)('drain', () => {
    let fixture: KubectlFixture;
    beforeAll(async () => {
      fixture = await startKubectlFixture(program);
    });
    afterAll(() => fixture?.close());

    test('drain evicts the Pods of a node, and a PodDisruptionBudget can be shown', async () => {
      await fixture.apply(node);
      await fixture.apply(pod);
      await fixture.apply(budget);
      expect(await fixture.ok('get', 'pdb')).toMatch(/^budget +50% +N\/A +0 +\d+s$/m);
      const out = await fixture.ok('drain', 'node-1', '--force', '--grace-period=0');
      expect(out).toContain('evicted');
    });
  });
});
