import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Pod, PodSpec } from '../../../generated/types.ts';
import { defaultPod } from './defaults.ts';
import { podSpecs } from './pod-arbitrary.ts';
import { containerOf, defaulted, podOf } from './pod-fixtures.ts';
import { validatePodCreate } from './validation/validation.ts';

const specOf = (spec: Partial<PodSpec>): PodSpec => defaulted(podOf(spec)).spec as PodSpec;

describe('defaults of a Pod', () => {
  it('a Pod gets the defaults of upstream', () => {
    expect(specOf({})).toEqual({
      containers: [
        {
          name: 'app',
          image: 'busybox:1.28',
          imagePullPolicy: 'IfNotPresent',
          resources: {},
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
        },
      ],
      dnsPolicy: 'ClusterFirst',
      enableServiceLinks: true,
      restartPolicy: 'Always',
      schedulerName: 'default-scheduler',
      securityContext: {},
      terminationGracePeriodSeconds: 30,
      tolerations: [
        { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
        { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      ],
    });
  });

  it.each([
    ['busybox', 'Always'],
    ['busybox:latest', 'Always'],
    ['registry:5000/busybox', 'Always'],
    ['registry:5000/busybox:1.28', 'IfNotPresent'],
    ['busybox:1.28', 'IfNotPresent'],
    ['busybox@sha256:aa', 'IfNotPresent'],
    ['busybox:1.28@sha256:aa', 'IfNotPresent'],
    ['registry:5000/busybox:latest@sha256:aa', 'Always'],
    ['', 'IfNotPresent'],
  ])('the pull policy of image "%s" is %s by default', (image, policy) => {
    const { containers, initContainers } = specOf({
      containers: [containerOf('app', { image })],
      initContainers: [containerOf('init', { image })],
    });
    expect([containers[0]?.imagePullPolicy, initContainers?.[0]?.imagePullPolicy]).toEqual([policy, policy]);
  });

  it('requests default to limits', () => {
    const resources = { limits: { cpu: '500m', memory: '1536Mi' }, requests: { cpu: '100m' } };
    const { containers } = specOf({ containers: [containerOf('app', { resources })] });
    expect(containers[0]?.resources).toEqual({
      limits: { cpu: '500m', memory: '1536Mi' },
      requests: { cpu: '100m', memory: '1536Mi' },
    });
  });

  it('probes, hooks and ports get their defaults', () => {
    const { containers } = specOf({
      hostNetwork: true,
      containers: [
        containerOf('app', {
          ports: [{ containerPort: 80 }],
          livenessProbe: { httpGet: { port: 80 } },
          readinessProbe: { grpc: { port: 9 }, periodSeconds: 3 },
          lifecycle: { preStop: { httpGet: { port: 80, path: '/bye' } } },
        }),
      ],
    });
    expect(containers[0]).toMatchObject({
      ports: [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }],
      livenessProbe: {
        httpGet: { port: 80, path: '/', scheme: 'HTTP' },
        timeoutSeconds: 1,
        periodSeconds: 10,
        successThreshold: 1,
        failureThreshold: 3,
      },
      readinessProbe: { grpc: { port: 9, service: '' }, periodSeconds: 3 },
      lifecycle: { preStop: { httpGet: { port: 80, path: '/bye', scheme: 'HTTP' } } },
    });
  });

  it('volumes get their defaults', () => {
    const { volumes } = specOf({
      volumes: [
        { name: 'a' },
        { name: 'b', configMap: { name: 'c' } },
        { name: 'c', secret: { secretName: 's', defaultMode: 256 } },
        { name: 'd', hostPath: { path: '/x' } },
        {
          name: 'e',
          projected: {
            sources: [
              { serviceAccountToken: { path: 't' } },
              { downwardAPI: { items: [{ path: 'n', fieldRef: { fieldPath: 'metadata.name' } }] } },
            ],
          },
        },
        {
          name: 'f',
          downwardAPI: { items: [{ path: 'n', resourceFieldRef: { containerName: 'app', resource: 'limits.cpu' } }] },
        },
      ],
    });
    expect(volumes).toEqual([
      { name: 'a', emptyDir: {} },
      { name: 'b', configMap: { name: 'c', defaultMode: 420 } },
      { name: 'c', secret: { secretName: 's', defaultMode: 256 } },
      { name: 'd', hostPath: { path: '/x', type: '' } },
      {
        name: 'e',
        projected: {
          defaultMode: 420,
          sources: [
            { serviceAccountToken: { path: 't', expirationSeconds: 3600 } },
            { downwardAPI: { items: [{ path: 'n', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } }] } },
          ],
        },
      },
      {
        name: 'f',
        downwardAPI: {
          defaultMode: 420,
          items: [{ path: 'n', resourceFieldRef: { containerName: 'app', resource: 'limits.cpu', divisor: '0' } }],
        },
      },
    ]);
  });

  it('both fields for the ServiceAccount are set, and the newer one takes precedence', () => {
    expect(specOf({ serviceAccount: 'old' })).toMatchObject({ serviceAccount: 'old', serviceAccountName: 'old' });
    expect(specOf({ serviceAccount: 'old', serviceAccountName: 'new' })).toMatchObject({
      serviceAccount: 'new',
      serviceAccountName: 'new',
    });
  });

  it('default tolerations are not added if a toleration of the Pod covers them', () => {
    expect(specOf({ tolerations: [{ operator: 'Exists' }] }).tolerations).toEqual([{ operator: 'Exists' }]);
  });

  it('the priority of the system classes is set by default', () => {
    expect(specOf({ priorityClassName: 'system-node-critical' }).priority).toBe(2_000_001_000);
  });

  it('an update keeps the priority and the preemption policy that the client omits', () => {
    const old = podOf({ priority: 7, preemptionPolicy: 'Never' });
    const update = (spec: Partial<PodSpec>): PodSpec | undefined => {
      const pod = podOf(spec);
      defaultPod(pod, old);
      return pod.spec;
    };
    expect(update({})).toMatchObject({ priority: 7, preemptionPolicy: 'Never' });
    expect(update({ priority: 8, preemptionPolicy: 'X' })).toMatchObject({ priority: 8, preemptionPolicy: 'X' });
    const spec = specOf({});
    expect([spec.priority, spec.preemptionPolicy]).toEqual([undefined, undefined]);
  });

  it('a toleration replaces a default one only if it covers the key and the effect', () => {
    const key = 'node.kubernetes.io/not-ready';
    const keys = (effect: string) =>
      specOf({ tolerations: [{ key, operator: 'Exists', effect }] })
        .tolerations?.slice(1)
        .map((each) => each.key);
    expect(keys('NoExecute')).toEqual(['node.kubernetes.io/unreachable']);
    expect(keys('')).toEqual(['node.kubernetes.io/unreachable']);
    expect(keys('NoSchedule')).toEqual([key, 'node.kubernetes.io/unreachable']);
  });

  it('empty limits set no requests, and ports get a port of the host only in the network of the host', () => {
    const container = containerOf('app', { resources: { limits: {} }, ports: [{ containerPort: 80 }] });
    const [app] = specOf({ hostNetwork: false, containers: [container] }).containers;
    expect(app?.resources).toEqual({ limits: {} });
    expect(app?.ports).toEqual([{ containerPort: 80, protocol: 'TCP' }]);
    const ports = [{ containerPort: 80, hostPort: 81 }];
    const [own] = specOf({ hostNetwork: true, containers: [{ ...container, ports }] }).containers;
    expect(own?.ports).toEqual([{ containerPort: 80, hostPort: 81, protocol: 'TCP' }]);
  });

  it('defaults can be applied to a Pod without a spec', () => {
    const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } };
    expect(defaulted(pod).spec?.containers).toEqual([]);
  });

  it('defaults are idempotent and make every generated Pod valid', () => {
    fc.assert(
      fc.property(podSpecs, (spec) => {
        const once = defaulted(podOf(spec));
        expect(defaulted(once)).toEqual(once);
        expect(validatePodCreate(once)).toEqual([]);
      }),
    );
  });
});
