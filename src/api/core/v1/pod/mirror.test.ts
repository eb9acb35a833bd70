import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { PodSpec } from '../../../generated/types.ts';
import { podKind } from './index.ts';
import { admitMirrorPod, apiReferences, MIRROR_ANNOTATION } from './mirror.ts';
import { containerOf, defaulted, podOf } from './pod-fixtures.ts';

const PATH = `metadata.annotations[${MIRROR_ANNOTATION}]`;
const mirrorOf = (spec: Partial<PodSpec> = {}, uid = 'abc') => {
  const pod = defaulted(podOf({ nodeName: 'node-1', ...spec }));
  pod.metadata = { ...pod.metadata, resourceVersion: '7', annotations: { [MIRROR_ANNOTATION]: uid } };
  return pod;
};
const projected = (source: object): Partial<PodSpec> => ({
  volumes: [{ name: 'v', projected: { sources: [source] } }],
});

const references: [string, Partial<PodSpec>, string[]][] = [
  ['nothing', {}, []],
  ['a ServiceAccount', { serviceAccountName: 'builder' }, ['serviceaccounts']],
  ['pull secrets', { imagePullSecrets: [{ name: 's' }] }, ['secrets']],
  ['a secret volume', { volumes: [{ name: 'v', secret: { secretName: 's' } }] }, ['secrets']],
  ['a configMap volume', { volumes: [{ name: 'v', configMap: { name: 'c' } }] }, ['configmaps']],
  [
    'a PersistentVolumeClaim',
    { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] },
    ['persistentvolumeclaims'],
  ],
  ['a token', projected({ serviceAccountToken: { path: 't' } }), ['serviceaccounts']],
  ['a projected secret', projected({ secret: { name: 's' } }), ['secrets']],
  ['a projected configMap', projected({ configMap: { name: 'c' } }), ['configmaps']],
  ['a trust bundle', projected({ clusterTrustBundle: { path: 'b' } }), ['clustertrustbundles']],
  ['a resource claim', { resourceClaims: [{ name: 'r' }] }, ['resourceclaims']],
  [
    'variables of an init container',
    {
      initContainers: [
        containerOf('i', { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] }),
        containerOf('j', { envFrom: [{ configMapRef: { name: 'c' } }] }),
      ],
    },
    ['secrets', 'configmaps'],
  ],
  [
    'only data that the node itself has',
    {
      volumes: [
        { name: 'a', emptyDir: {} },
        { name: 'b', hostPath: { path: '/x' } },
        { name: 'c', downwardAPI: { items: [] } },
      ],
      containers: [
        containerOf('app', { env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] }),
      ],
    },
    [],
  ],
];

describe('references of a Pod to other objects', () => {
  it.each(references)('apiReferences() lists the resources to which a Pod refers: %s', (_, spec, expected) => {
    expect(apiReferences(defaulted(podOf(spec)))).toEqual(expected);
  });
});

describe('admission of mirror Pods', () => {
  it('a node may create mirror Pods', () => {
    expect(() => admitMirrorPod(mirrorOf(), true)).not.toThrow();
  });
  it('only nodes may create mirror Pods', () => {
    expect(() => admitMirrorPod(mirrorOf(), false)).toThrow(
      'pods "web" is forbidden: pod has "kubernetes.io/config.mirror" annotation, only nodes can create mirror pods',
    );
  });
  it.each(references.filter(([, , expected]) => expected.length > 0))(
    'a mirror Pod may not refer to %s',
    (_, spec, found) => {
      const cause =
        found[0] === 'serviceaccounts'
          ? 'a mirror pod may not reference service accounts'
          : `node "node-1" can not create pods that reference ${found[0]}`;
      expect(() => admitMirrorPod(mirrorOf(spec), true)).toThrow(`pods "web" is forbidden: ${cause}`);
    },
  );
});

it('a mirror Pod may not get ephemeral containers, because its node would not see them', () => {
  const validate = podKind.subresources['ephemeralcontainers']?.validate;
  expect(validate?.(mirrorOf(), mirrorOf()).map(fieldErrorText)).toEqual([
    ': Forbidden: static pods do not support ephemeral containers',
  ]);
});

describe('the mirror annotation', () => {
  it('the mirror annotation requires spec.nodeName', () => {
    const pod = mirrorOf({ nodeName: undefined });
    expect(podKind.validateCreate(pod).map(fieldErrorText)).toEqual([
      `${PATH}: Invalid value: "abc": must set spec.nodeName if mirror pod annotation is set`,
    ]);
    expect(podKind.validateCreate(mirrorOf())).toEqual([]);
  });
  it.each([
    ['update', (pod = mirrorOf(), old = pod) => podKind.validateUpdate(pod, old)],
    ['status write', (pod = mirrorOf(), old = pod) => podKind.subresources['status']?.validate?.(pod, old) ?? []],
  ])('the mirror annotation is immutable: %s', (_, validate) => {
    const plain = mirrorOf();
    plain.metadata = { ...plain.metadata, annotations: {} };
    const changed = `${PATH}: Forbidden: may not remove or update mirror pod annotation`;
    expect(validate(mirrorOf(), mirrorOf())).toEqual([]);
    expect(validate(mirrorOf({}, 'other'), mirrorOf()).map(fieldErrorText)).toEqual([changed]);
    expect(validate(plain, mirrorOf()).map(fieldErrorText)).toEqual([changed]);
    expect(validate(mirrorOf(), plain).map(fieldErrorText)).toEqual([
      `${PATH}: Forbidden: may not add mirror pod annotation`,
    ]);
  });
});
