import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../../../machinery/meta.ts';
import { formatQuantity } from '../../../../../machinery/quantity.ts';
import type { Pod, ResourceQuota } from '../../../../generated/types.ts';
import { charge } from './charge.ts';
import { evaluatorOf } from './evaluators.ts';
import { announcedStatus, needsRecount, recount } from './recount.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const container = (name: string, requests?: object, limits?: object, more: object = {}) => ({
  name,
  image: 'x',
  ...(requests || limits ? { resources: { ...(requests && { requests }), ...(limits && { limits }) } } : {}),
  ...more,
});
const pod = (spec: object, metadata: object = {}, status: object = {}): Pod =>
  ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'a', ...metadata }, spec, status }) as Pod;
const simple = (requests?: object, limits?: object): Pod => pod({ containers: [container('app', requests, limits)] });

const usage = (object: KubeObject, group = '', resource = 'pods'): string =>
  [...evaluatorOf(group, resource).usage(object, NOW)]
    .map(([name, amount]) => `${name}=${formatQuantity(amount)}`)
    .sort()
    .join(' ');

describe('the usage of a Pod', () => {
  test.each([
    [
      'contains its requests and limits, and a limit as the request if there is none',
      simple({ cpu: '100m' }, { memory: '1Mi' }),
      'count/pods=1 cpu=100m limits.memory=1Mi memory=1Mi pods=1 requests.cpu=100m requests.memory=1Mi',
    ],
    [
      'contains the request of an init container that is higher than the sum of the apps',
      pod({ containers: [container('app', { cpu: '1' })], initContainers: [container('init', { cpu: '3' })] }),
      'count/pods=1 cpu=3 pods=1 requests.cpu=3',
    ],
    [
      'contains sidecars with the apps',
      pod({
        containers: [container('app', { cpu: '1' })],
        initContainers: [container('side', { cpu: '2' }, undefined, { restartPolicy: 'Always' })],
      }),
      'count/pods=1 cpu=3 pods=1 requests.cpu=3',
    ],
    [
      'contains the largest PreExit entry with the apps, and at least a PostExit entry',
      pod({
        containers: [container('app', { cpu: '1' })],
        deferContainers: [
          container('pre', { cpu: '2' }, undefined, { trigger: 'PreExit' }),
          container('post', { cpu: '3500m' }, undefined, { trigger: 'PostExit' }),
        ],
      }),
      'count/pods=1 cpu=3500m pods=1 requests.cpu=3500m',
    ],
    [
      'contains the overhead',
      pod({ containers: [container('app', { cpu: '1' })], overhead: { cpu: '100m' } }),
      'count/pods=1 cpu=1100m pods=1 requests.cpu=1100m',
    ],
    [
      'contains extended resources and huge pages as requests',
      simple({ 'a.b/gpu': '2', 'hugepages-2Mi': '4Mi' }),
      'count/pods=1 hugepages-2Mi=4Mi pods=1 requests.a.b/gpu=2 requests.hugepages-2Mi=4Mi',
    ],
    [
      'is only that of an object once it has ended',
      pod({ containers: [container('app', { cpu: '1' })] }, {}, { phase: 'Failed' }),
      'count/pods=1',
    ],
    [
      'is only that of an object after the grace period of its deletion',
      pod(
        { containers: [container('app', { cpu: '1' })] },
        { deletionTimestamp: '2026-01-31T11:59:00Z', deletionGracePeriodSeconds: 30 },
      ),
      'count/pods=1',
    ],
  ])('%s', (_, object, expected) => expect(usage(object)).toBe(expected));
});

test.each([
  [
    'services',
    { spec: { type: 'NodePort', ports: [{ port: 1 }, { port: 2 }] } },
    'count/services=1 services.loadbalancers=0 services.nodeports=2 services=1',
  ],
  [
    'services',
    { spec: { type: 'LoadBalancer', ports: [{ port: 1 }] } },
    'count/services=1 services.loadbalancers=1 services.nodeports=1 services=1',
  ],
  [
    'persistentvolumeclaims',
    { spec: { storageClassName: 'fast', resources: { requests: { storage: '1Gi' } } } },
    'count/persistentvolumeclaims=1 fast.storageclass.storage.k8s.io/persistentvolumeclaims=1 fast.storageclass.storage.k8s.io/requests.storage=1Gi persistentvolumeclaims=1 requests.storage=1Gi',
  ],
  ['configmaps', {}, 'configmaps=1 count/configmaps=1'],
])('the usage of an object of %s: %j', (resource, object, expected) =>
  expect(usage({ metadata: { name: 'x' }, ...object } as unknown as KubeObject, '', resource)).toBe(expected),
);

test('objects of other groups are counted by the name of their resource', () => {
  expect(usage({ metadata: { name: 'x' } } as KubeObject, 'apps', 'deployments')).toBe('count/deployments.apps=1');
});

const quota = (hard: Record<string, string>, used: Record<string, string> = {}, spec: object = {}): ResourceQuota => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'q', namespace: 'a' },
  spec: { hard, ...spec },
  status: { hard, used },
});
const write = (object: KubeObject, old?: KubeObject) => ({ evaluator: evaluatorOf('', 'pods'), object, old, now: NOW });

describe('charge()', () => {
  test.each<[title: string, quota: ResourceQuota, pod: Pod, refused: string]>([
    [
      'rejects a Pod that exceeds a quota',
      quota({ pods: '2', 'requests.cpu': '1' }, { pods: '2', 'requests.cpu': '900m' }),
      simple({ cpu: '200m' }),
      'exceeded quota: q, requested: pods=1,requests.cpu=200m, used: pods=2,requests.cpu=900m, limited: pods=2,requests.cpu=1',
    ],
    [
      'rejects a Pod whose init container requests too much',
      quota({ 'requests.cpu': '1' }, { 'requests.cpu': '0' }),
      pod({ containers: [container('app', { cpu: '1' })], initContainers: [container('init', { cpu: '2' })] }),
      'exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1',
    ],
    [
      'rejects a Pod without a value that a quota limits',
      quota({ 'limits.cpu': '1', 'requests.memory': '1Gi' }, { 'limits.cpu': '0', 'requests.memory': '0' }),
      pod({ containers: [container('b'), container('a', { memory: '1Mi' })] }),
      'failed quota: q: must specify limits.cpu for: a,b; requests.memory for: b',
    ],
    [
      'rejects a Pod while its usage has not been counted',
      quota({ pods: '2' }),
      simple(),
      'status unknown for quota: q, resources: pods',
    ],
  ])('%s', (_, limit, object, refused) => expect(charge([limit], write(object))).toEqual({ refused }));

  test('demands no values for defer containers without resources', () => {
    const limit = quota({ 'requests.cpu': '9' }, { 'requests.cpu': '0' });
    const containers = [container('app', { cpu: '1' })];
    expect(charge([limit], write(pod({ containers, deferContainers: [container('bye')] })))).not.toHaveProperty(
      'refused',
    );
    const partial = container('bye', undefined, { memory: '1Mi' });
    expect(charge([limit], write(pod({ containers, deferContainers: [partial] })))).toEqual({
      refused: 'failed quota: q: must specify requests.cpu for: bye',
    });
  });

  test('charge() adds to the usage of every quota that applies', () => {
    const used = { pods: '1', 'requests.cpu': '1' };
    const result = charge([quota({ pods: '5', 'requests.cpu': '4' }, used)], write(simple({ cpu: '500m' })));
    expect(result).toMatchObject({ charged: [{ status: { used: { pods: '2', 'requests.cpu': '1500m' } } }] });
  });

  test('charge() adds only the difference of an update, and nothing for a decrease', () => {
    const limit = quota({ 'requests.cpu': '4' }, { 'requests.cpu': '1' });
    expect(charge([limit], write(simple({ cpu: '3' }), simple({ cpu: '1' })))).toMatchObject({
      charged: [{ status: { used: { 'requests.cpu': '3' } } }],
    });
    expect(charge([limit], write(simple({ cpu: '1' }), simple({ cpu: '3' })))).toEqual({ charged: [] });
  });

  const scoped = (scopes: string[], matchExpressions: object[] = []) =>
    quota({ pods: '0' }, { pods: '0' }, { scopes, scopeSelector: { matchExpressions } });
  const affinity = {
    podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'x', namespaces: ['b'] }] },
  };
  const containers = [container('app')];
  test.each([
    ['BestEffort', scoped(['BestEffort']), simple(), true],
    ['BestEffort with requests', scoped(['BestEffort']), simple({ cpu: '1' }), false],
    ['NotBestEffort', scoped(['NotBestEffort']), simple({ cpu: '1' }), true],
    ['Terminating', scoped(['Terminating']), pod({ containers, activeDeadlineSeconds: 5 }), true],
    ['NotTerminating', scoped(['NotTerminating']), pod({ containers, activeDeadlineSeconds: 5 }), false],
    ['CrossNamespacePodAffinity', scoped(['CrossNamespacePodAffinity']), pod({ containers, affinity }), true],
    [
      'PriorityClass In',
      scoped([], [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }]),
      pod({ containers, priorityClassName: 'high' }),
      true,
    ],
    [
      'PriorityClass NotIn',
      scoped([], [{ scopeName: 'PriorityClass', operator: 'NotIn', values: ['high'] }]),
      pod({ containers, priorityClassName: 'high' }),
      false,
    ],
  ])('a quota with the scope %s applies to a Pod in it only', (_, limit, object, applies) =>
    expect('refused' in charge([limit], write(object))).toBe(applies),
  );
});

describe('the count of a quota', () => {
  const counted = (objects: Pod[]) => [{ evaluator: evaluatorOf('', 'pods'), objects }];

  test('the status of a quota is written before the count if it lacks a limited name', () => {
    const limit = { ...quota({ pods: '1', secrets: '2' }), status: { hard: { pods: '1' }, used: { pods: '1' } } };
    expect(announcedStatus(limit)).toEqual({ hard: { pods: '1', secrets: '2' }, used: { pods: '1' } });
    expect(announcedStatus(quota({ pods: '1' }))).toBeUndefined();
  });

  test('a recount sums the usage of the objects in the scopes, and returns no status if the status is correct', () => {
    const limit = quota({ pods: '9', 'requests.cpu': '9' }, { pods: '1', 'requests.cpu': '0' });
    const pods = [simple({ cpu: '1' }), simple({ cpu: '500m' })];
    const used = { pods: '2', 'requests.cpu': '1500m' };
    expect(recount(limit, counted(pods), NOW).status).toEqual({ hard: limit.spec?.hard, used });
    expect(recount(quota({ pods: '9', 'requests.cpu': '9' }, used), counted(pods), NOW).status).toBeUndefined();
  });

  test('the count of a quota changes when the grace period of a Pod that is being deleted has passed', () => {
    const deleting = pod(
      { containers: [] },
      { deletionTimestamp: '2026-01-31T12:00:30Z', deletionGracePeriodSeconds: 30 },
    );
    expect(recount(quota({ pods: '9' }), counted([deleting]), NOW).changesAt).toBe(NOW + 60_000);
  });

  test('a recount is needed after a change of the limits and after a decrease, but not after a charge', () => {
    const old = quota({ pods: '9' }, { pods: '2' });
    expect(needsRecount(quota({ pods: '9' }, { pods: '3' }), old)).toBe(false);
    expect(needsRecount(quota({ pods: '9' }, { pods: '1' }), old)).toBe(true);
    expect(needsRecount({ ...old, spec: { hard: { pods: '8' } } }, old)).toBe(true);
  });
});
