import { expect, test } from 'vitest';
import type { PodSpec, PodStatus, Volume } from '../../../generated/types.ts';
import { containerOf, deferOf, podOf } from './pod-fixtures.ts';
import { referencesOf } from './references.ts';

const ofSecret = (name: string) => ({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name, key: 'k' } } }] });
const ofMap = (name: string) => ({ envFrom: [{ configMapRef: { name } }] });
const volume = (source: object): Partial<PodSpec> => ({ volumes: [{ name: 'v', ...source } as Volume] });
const projected = (source: object): Partial<PodSpec> => volume({ projected: { sources: [source] } });

test.each<[string, Partial<PodSpec>, string[]]>([
  ['no other object', {}, []],
  ['its ServiceAccount', { serviceAccountName: 'a' }, ['serviceaccounts a']],
  ['pull secrets', { imagePullSecrets: [{ name: 'a' }, { name: 'b' }] }, ['secrets a', 'secrets b']],
  ['variables of an app container', { containers: [containerOf('c', ofSecret('a'))] }, ['secrets a']],
  ['variables of an init container', { initContainers: [containerOf('c', ofMap('a'))] }, ['configmaps a']],
  ['variables of a defer container', { deferContainers: [deferOf('c', ofSecret('a'))] }, ['secrets a']],
  [
    'variables of an ephemeral container',
    { ephemeralContainers: [containerOf('c', ofMap('a'))] as PodSpec['ephemeralContainers'] },
    ['configmaps a'],
  ],
  [
    'all values of a Secret',
    { containers: [containerOf('c', { envFrom: [{ secretRef: { name: 'a' } }] })] },
    ['secrets a'],
  ],
  ['a secret volume', volume({ secret: { secretName: 'a' } }), ['secrets a']],
  ['a configMap volume', volume({ configMap: { name: 'a' } }), ['configmaps a']],
  ['a claim', volume({ persistentVolumeClaim: { claimName: 'a' } }), ['persistentvolumeclaims a']],
  ['the claim of an ephemeral volume', volume({ ephemeral: {} }), ['persistentvolumeclaims web-v']],
  ['a projected Secret', projected({ secret: { name: 'a' } }), ['secrets a']],
  ['a projected ConfigMap', projected({ configMap: { name: 'a' } }), ['configmaps a']],
  ['a token', projected({ serviceAccountToken: { path: 't' } }), ['serviceaccounts ']],
  ['a trust bundle', projected({ clusterTrustBundle: { name: 'a', path: 't' } }), ['clustertrustbundles a']],
  ['azureFile', volume({ azureFile: { secretName: 'a' } }), ['secrets a']],
  ['csi', volume({ csi: { nodePublishSecretRef: { name: 'a' } } }), ['secrets a']],
  ...['cephfs', 'cinder', 'flexVolume', 'rbd', 'scaleIO', 'iscsi', 'storageos'].map(
    (kind): [string, Partial<PodSpec>, string[]] => [
      kind,
      volume({ [kind]: { secretRef: { name: 'a' } } }),
      ['secrets a'],
    ],
  ),
  ['a ResourceClaim', { resourceClaims: [{ name: 'r', resourceClaimName: 'a' }] }, ['resourceclaims a']],
  ['a ResourceClaim that is not created', { resourceClaims: [{ name: 'r' }] }, ['resourceclaims ']],
])('a Pod refers to %s', (_, spec, expected) => {
  expect([...referencesOf(podOf(spec))].map(({ resource, name }) => `${resource} ${name}`)).toEqual(expected);
});

test('a Pod refers to the ResourceClaim that was created from a template', () => {
  const status: PodStatus = { resourceClaimStatuses: [{ name: 'r', resourceClaimName: 'web-r' }] };
  const spec = { resourceClaims: [{ name: 'r', resourceClaimTemplateName: 't' }] };
  expect([...referencesOf(podOf(spec, status))]).toEqual([{ resource: 'resourceclaims', name: 'web-r' }]);
});
