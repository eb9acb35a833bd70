import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KUBECTL, OLDER_KUBECTL } from '../support/kubectl.ts';
import { type KubectlFixture, startKubectlFixture } from './kubectl-fixture.ts';

const labels = { app: 'web' };
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web' },
  spec: {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'busybox:1.28' }] } },
  },
};
/** kubectl ignores the version after a short name, such as in hpa.v1.autoscaling. */
const V1 = 'horizontalpodautoscalers.v1.autoscaling';
const V2 = 'horizontalpodautoscalers.v2.autoscaling';
const METRICS = 'autoscaling.alpha.kubernetes.io/metrics';

describe.each([
  ['the current kubectl', KUBECTL],
  ['kubectl 1.20', OLDER_KUBECTL],
])('%s', (_, program) => {
  describe.skipIf(program === undefined)('HorizontalPodAutoscalers', () => {
    let fixture: KubectlFixture;
    beforeAll(async () => {
      fixture = await startKubectlFixture(program);
      await fixture.apply(deployment);
    });
    afterAll(() => fixture?.close());

    test('kubectl autoscale creates one, which get and describe show in both versions', async () => {
      const { ok, get } = fixture;
      expect(await ok('autoscale', 'deployment', 'web', '--min', '1', '--max', '3', '--cpu-percent', '80')).toBe(
        'horizontalpodautoscaler.autoscaling/web autoscaled\n',
      );
      expect(await ok('get', 'hpa')).toMatch(
        /^NAME +REFERENCE +TARGETS +MINPODS +MAXPODS +REPLICAS +AGE\nweb +Deployment\/web +cpu: <unknown>\/80% +1 +3 +0 +\d+s\n$/,
      );
      const spec = { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, minReplicas: 1 };
      expect(await get(`${V2}/web`)).toMatchObject({
        apiVersion: 'autoscaling/v2',
        spec: {
          ...spec,
          maxReplicas: 3,
          metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { averageUtilization: 80 } } }],
        },
      });
      expect(await get(`${V1}/web`)).toMatchObject({
        apiVersion: 'autoscaling/v1',
        spec: { ...spec, maxReplicas: 3, targetCPUUtilizationPercentage: 80 },
        status: { currentReplicas: 0, desiredReplicas: 0 },
      });
      const text = await ok('describe', 'hpa', 'web');
      expect(text).toMatch(/^Reference: +Deployment\/web$/m);
      // kubectl 1.20 knows v1, but not v2.
      const target = program === KUBECTL ? /^ +resource cpu on pods .*: +<unknown> \/ 80%$/m : /^Target CPU .*: +80%$/m;
      expect(text).toMatch(target);
      expect(text).toMatch(/^Min replicas: +1$/m);
    });

    test('kubectl patch and edit change one version, and the other shows the change', async () => {
      const { ok, get, kubectl } = fixture;
      const patch = { spec: { targetCPUUtilizationPercentage: 60 } };
      await ok('patch', V1, 'web', '-p', JSON.stringify(patch));
      expect((await get(`${V2}/web`)).spec.metrics[0].resource.target.averageUtilization).toBe(60);
      const behavior = { scaleDown: { policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] } };
      await ok('patch', V2, 'web', '--type=merge', '-p', JSON.stringify({ spec: { behavior } }));
      const edited = await kubectl(['edit', V1, 'web'], {
        env: { KUBE_EDITOR: `sed -i 's/maxReplicas: 3/maxReplicas: 5/'` },
      });
      expect(edited.out).toBe('horizontalpodautoscaler.autoscaling/web edited\n');
      expect((await get(`${V2}/web`)).spec).toMatchObject({
        maxReplicas: 5,
        behavior: { ...behavior, scaleUp: { selectPolicy: 'Max' } },
      });
    });

    test('kubectl apply stores metrics of v2, which v1 shows in an annotation', async () => {
      const { ok, get, apply } = fixture;
      const pods = { metric: { name: 'hits' }, target: { type: 'AverageValue', averageValue: '1k' } };
      const applied = (maxReplicas: number) => ({
        apiVersion: 'autoscaling/v2',
        kind: 'HorizontalPodAutoscaler',
        metadata: { name: 'applied' },
        spec: {
          scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
          maxReplicas,
          metrics: [{ type: 'Pods', pods }],
        },
      });
      const name = 'horizontalpodautoscaler.autoscaling/applied';
      expect(await apply(applied(2))).toBe(`${name} created\n`);
      expect(await apply(applied(2))).toBe(`${name} unchanged\n`);
      expect(await apply(applied(4))).toBe(`${name} configured\n`);
      expect(await apply(applied(4), '--server-side', '--force-conflicts')).toBe(`${name} serverside-applied\n`);
      const { metadata, spec } = await get(`${V1}/applied`);
      expect(spec.maxReplicas).toBe(4);
      expect(JSON.parse(metadata.annotations[METRICS])).toEqual([
        { type: 'Pods', pods: { metricName: 'hits', targetAverageValue: '1k' } },
      ]);
      expect(await ok('delete', V1, 'applied')).toContain('deleted');
      expect(await ok('get', 'hpa', '-o', 'name')).toBe('horizontalpodautoscaler.autoscaling/web\n');
    });

    test('kubectl explain describes both versions', async () => {
      const { ok } = fixture;
      expect(await ok('explain', 'hpa.spec', '--api-version=autoscaling/v1')).toContain(
        'targetCPUUtilizationPercentage',
      );
      const text = await ok('explain', 'hpa.spec.behavior.scaleDown', '--api-version=autoscaling/v2');
      expect(text).toContain('stabilizationWindowSeconds');
      expect(text).not.toContain('<no description>');
    });

    test('wrong input is refused with the messages of Kubernetes', async () => {
      const { refused } = fixture;
      expect(await refused(['autoscale', 'deployment', 'web', '--max', '3', '--name', 'web'])).toContain(
        'already exists',
      );
      expect(await refused(['autoscale', 'deployment', 'none', '--max', '3'])).toContain(
        'deployments.apps "none" not found',
      );
      expect(await refused(['patch', V2, 'web', '--type=merge', '-p', '{"spec":{"minReplicas":9}}'])).toContain(
        'spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`',
      );
      expect(await refused(['patch', V1, 'web', '--type=merge', '-p', '{"spec":{"maxReplicas":"many"}}'])).toContain(
        'HorizontalPodAutoscaler',
      );
    });
  });
});
