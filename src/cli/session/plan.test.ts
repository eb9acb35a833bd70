import { expect, test } from 'vitest';
import { kinds } from '../../api/kinds.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import {
  deletionStep,
  duplicates,
  inOrder,
  markedObject,
  mayBeCustom,
  needsOthers,
  type PlannedObject,
  runsUntilDeleted,
} from './plan.ts';

const GROUPS: Readonly<Record<string, string>> = { StatefulSet: 'apps', Deployment: 'apps', Widget: 'example.com' };
const CLUSTER_KINDS = ['Namespace', 'PriorityClass', 'RuntimeClass', 'CustomResourceDefinition'];

function planned(kind: string, name: string | undefined, namespace = 'default', spec: object = {}): PlannedObject {
  const namespaced = !CLUSTER_KINDS.includes(kind);
  const group = GROUPS[kind] ?? '';
  return {
    object: {
      apiVersion: 'v1',
      kind,
      metadata: name === undefined ? { generateName: 'g-' } : { name },
      spec,
    } as unknown as KubeObject,
    source: `${name}.yaml`,
    info: { group, version: 'v1', resource: `${kind.toLowerCase()}s`, kind, namespaced },
    namespace: namespaced ? namespace : undefined,
  };
}
const names = (objects: readonly PlannedObject[]): string[] => objects.map(({ object }) => object.metadata.name);

test('objects on which others depend are created first, the others in the order of the manifests', () => {
  const objects = [
    planned('Pod', 'pod'),
    planned('Deployment', 'deployment'),
    planned('Service', 'service'),
    planned('Widget', 'widget'),
    planned('ConfigMap', 'config'),
    planned('CustomResourceDefinition', 'definition'),
    planned('ServiceAccount', 'account'),
    planned('Namespace', 'namespace'),
    planned('PriorityClass', 'class'),
  ];
  expect(names(inOrder(objects))).toEqual([
    'namespace',
    'definition',
    'class',
    'config',
    'account',
    'service',
    'pod',
    'deployment',
    'widget',
  ]);
});

test.each([
  ['an object in a Namespace of the manifests', planned('ConfigMap', 'a', 'new'), [planned('Namespace', 'new')], true],
  ['an object in another Namespace', planned('ConfigMap', 'a', 'old'), [planned('Namespace', 'new')], false],
  [
    'a Pod with a ServiceAccount of the manifests',
    planned('Pod', 'a', 'x', { serviceAccountName: 's' }),
    [planned('ServiceAccount', 's', 'x')],
    true,
  ],
  [
    'a Pod with a ServiceAccount of another namespace',
    planned('Pod', 'a', 'x', { serviceAccountName: 's' }),
    [planned('ServiceAccount', 's', 'y')],
    false,
  ],
  [
    'a Pod with a class of the manifests',
    planned('Pod', 'a', 'x', { priorityClassName: 'c' }),
    [planned('PriorityClass', 'c')],
    true,
  ],
  [
    'a Pod with a runtime of the manifests',
    planned('Pod', 'a', 'x', { runtimeClassName: 'c' }),
    [planned('RuntimeClass', 'c')],
    true,
  ],
  [
    'a Deployment, whose Pods are created later',
    planned('Deployment', 'a', 'x', { serviceAccountName: 's' }),
    [planned('ServiceAccount', 's', 'x')],
    false,
  ],
])('needsOthers finds out whether %s can be checked first', (_, object, others, needs) => {
  expect(needsOthers(object, [object, ...others])).toBe(needs);
});

test('an object that is defined twice is refused with both places', () => {
  const twice = [planned('Pod', 'a'), planned('Pod', 'b'), planned('Pod', 'a')];
  expect(duplicates(twice)).toEqual(['pod/a in namespace default is defined twice: in a.yaml and in a.yaml']);
  expect(duplicates([planned('Pod', 'a'), planned('Pod', 'a', 'other'), planned('Service', 'a')])).toEqual([]);
  expect(duplicates([planned('Pod', undefined), planned('Pod', undefined)])).toEqual([]);
});

test('an object gets the label of the session and keeps its own', () => {
  const pod = planned('Pod', 'a');
  pod.object.metadata.labels = { app: 'web' };
  expect(markedObject(pod, 'id1').metadata).toEqual({
    name: 'a',
    namespace: 'default',
    labels: { app: 'web', 'lifepod.io/session': 'id1' },
  });
  expect(pod.object.metadata.labels).toEqual({ app: 'web' });
  expect(markedObject(planned('Namespace', 'n'), 'id1').metadata).not.toHaveProperty('namespace');
});

test('the claims of a StatefulSet get the label of the session', () => {
  const set = planned('StatefulSet', 'a', 'x', { volumeClaimTemplates: [{ metadata: { name: 'data' } }] });
  expect(markedObject(set, 'id1')).toMatchObject({
    spec: { volumeClaimTemplates: [{ metadata: { name: 'data', labels: { 'lifepod.io/session': 'id1' } } }] },
  });
});

test.each([
  ['Deployment', {}, true],
  ['Pod', {}, true],
  ['Pod', { restartPolicy: 'OnFailure' }, false],
  ['Pod', { activeDeadlineSeconds: 5 }, false],
  ['Job', {}, false],
  ['ConfigMap', {}, false],
])('runsUntilDeleted finds out whether a %s with the spec %j runs until it is deleted', (kind, spec, endless) => {
  expect(runsUntilDeleted(planned(kind, 'a', 'x', spec))).toBe(endless);
});

test('custom resources are deleted first, then Pods and their owners, other objects, Namespaces and definitions', () => {
  const order = [
    ['example.com', 'Widget'],
    ['gateway.networking.k8s.io', 'Gateway'],
    ['', 'Pod'],
    ['batch', 'Job'],
    ['apps', 'StatefulSet'],
    ['', 'ConfigMap'],
    ['rbac.authorization.k8s.io', 'Role'],
    ['', 'Namespace'],
    ['apiextensions.k8s.io', 'CustomResourceDefinition'],
  ] as const;
  expect(order.map(([group, kind]) => deletionStep({ group, kind }))).toEqual([0, 0, 1, 1, 1, 2, 2, 3, 4]);
});

test('kinds of Kubernetes are not custom, and those of approved definitions may be, although their groups end alike', () => {
  const groups = new Set(kinds.map(({ group }) => group));
  expect([...groups].filter((group) => mayBeCustom(group === '' ? 'v1' : `${group}/v1`))).toEqual(['lifepod.io']);
  const custom = [
    'gateway.networking.k8s.io/v1',
    'snapshot.storage.k8s.io/v1',
    'autoscaling.k8s.io/v1',
    'example.com/v1',
  ];
  expect(custom.filter(mayBeCustom)).toEqual(custom);
});
