import { describe, expect, it } from 'vitest';
import type { PodSpec, PriorityClass, ServiceAccount } from '../../../generated/types.ts';
import { admitPriority, admitServiceAccount } from './admission.ts';
import { containerOf, defaulted, podOf } from './pod-fixtures.ts';
import { validatePodCreate } from './validation/validation.ts';

const account = (more: Partial<ServiceAccount> = {}): ServiceAccount => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'default' },
  ...more,
});
const path = '/var/run/secrets/kubernetes.io/serviceaccount';

describe('ServiceAccount admission', () => {
  it('Pods share the content of the token volumes that ServiceAccount admission adds, which is frozen', () => {
    const [one, other] = ['abc12', 'def34'].map((suffix) => {
      const pod = defaulted(podOf());
      admitServiceAccount(pod, account(), suffix);
      return pod.spec?.volumes?.at(-1)?.projected;
    });
    expect(one).toBe(other);
    expect(Object.isFrozen(one?.sources?.[1]?.configMap?.items)).toBe(true);
  });

  it('ServiceAccount admission mounts the token in init and app containers that have no mount at its path', () => {
    const own = { name: 'own', mountPath: path };
    const pod = defaulted(
      podOf({
        initContainers: [containerOf('init')],
        containers: [containerOf('app'), containerOf('other', { volumeMounts: [own] })],
        volumes: [{ name: 'own' }],
      }),
    );
    admitServiceAccount(pod, account(), 'abc12');
    const mount = { name: 'kube-api-access-abc12', readOnly: true, mountPath: path };
    expect(pod.spec?.initContainers?.[0]?.volumeMounts).toEqual([mount]);
    expect(pod.spec?.containers.map((container) => container.volumeMounts)).toEqual([[mount], [own]]);
    expect(pod.spec).toMatchObject({ serviceAccountName: 'default', serviceAccount: 'default' });
    expect(pod.spec?.volumes?.at(-1)).toEqual({
      name: 'kube-api-access-abc12',
      projected: {
        defaultMode: 420,
        sources: [
          { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
          { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
          {
            downwardAPI: {
              items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
            },
          },
        ],
      },
    });
    expect(validatePodCreate(pod)).toEqual([]);
    expect(defaulted(pod)).toEqual(pod);
  });

  it.each([
    ['the account, which opts out', {}, { automountServiceAccountToken: false }, false],
    ['the Pod, which opts out', { automountServiceAccountToken: false }, {}, false],
    [
      'the Pod, whose setting takes precedence over that of the ServiceAccount',
      { automountServiceAccountToken: true },
      { automountServiceAccountToken: false },
      true,
    ],
  ])('whether the token is mounted is decided by %s', (_name, spec, accountSpec, mounted) => {
    const pod = defaulted(podOf(spec));
    admitServiceAccount(pod, account(accountSpec), 'abc12');
    expect((pod.spec?.volumes ?? []).length).toBe(mounted ? 1 : 0);
  });

  it('ServiceAccount admission adds the pull secrets of the ServiceAccount to a Pod without any', () => {
    const secrets = [{ name: 'pull' }];
    const pod = defaulted(podOf());
    admitServiceAccount(pod, account({ imagePullSecrets: secrets }), 'abc12');
    expect(pod.spec?.imagePullSecrets).toEqual(secrets);
    const own = defaulted(podOf({ imagePullSecrets: [{ name: 'own' }] }));
    admitServiceAccount(own, account({ imagePullSecrets: secrets }), 'abc12');
    expect(own.spec?.imagePullSecrets).toEqual([{ name: 'own' }]);
  });
});

it('a Pod without a spec passes admission unchanged, and absent pull secrets stay absent', () => {
  const { spec: _, ...bare } = podOf();
  const pod = structuredClone(bare);
  admitServiceAccount(pod, account(), 'abc12');
  admitPriority(pod, []);
  expect(pod).toEqual(bare);
  const plain = defaulted(podOf());
  admitServiceAccount(plain, account(), 'abc12');
  expect(plain.spec).not.toHaveProperty('imagePullSecrets');
});

describe('priority admission', () => {
  const classOf = (name: string, value: number): PriorityClass => ({
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    preemptionPolicy: 'PreemptLowerPriority',
  });
  const admitted = (spec: Partial<PodSpec>, ...classes: PriorityClass[]) => {
    const pod = defaulted(podOf(spec));
    admitPriority(pod, classes);
    const { priorityClassName, priority, preemptionPolicy } = pod.spec ?? {};
    return { priorityClassName, priority, preemptionPolicy };
  };
  it('the priority and preemption policy of a Pod come only from its class', () => {
    expect(admitted({ priorityClassName: 'system-cluster-critical' })).toEqual({
      priority: 2_000_000_000,
      preemptionPolicy: 'PreemptLowerPriority',
      priorityClassName: 'system-cluster-critical',
    });
    expect(admitted({})).toEqual({ priority: 0, preemptionPolicy: 'PreemptLowerPriority' });
    const gold = { ...classOf('gold', 1000), preemptionPolicy: 'Never' };
    expect(admitted({ priorityClassName: 'gold' }, gold)).toEqual({
      priorityClassName: 'gold',
      priority: 1000,
      preemptionPolicy: 'Never',
    });
    expect(() => admitted({ priorityClassName: 'gold' })).toThrow(
      'pods "web" is forbidden: no PriorityClass with name gold was found',
    );
    expect(() => admitted({ priority: 5 })).toThrow(
      'pods "web" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name',
    );
    expect(() => admitted({ preemptionPolicy: 'Never' })).toThrow(
      'pods "web" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name',
    );
  });
  it('a Pod without a class gets the default class with the lowest priority', () => {
    const usual = { ...classOf('usual', 7), globalDefault: true };
    expect(admitted({}, usual, classOf('gold', 1000))).toMatchObject({ priorityClassName: 'usual', priority: 7 });
    expect(admitted({}, { ...classOf('other', 9), globalDefault: true }, usual)).toMatchObject({ priority: 7 });
  });
});
