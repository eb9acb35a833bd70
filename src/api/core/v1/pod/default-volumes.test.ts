import { expect, it } from 'vitest';
import type { Volume } from '../../../generated/types.ts';
import { defaultVolume } from './default-volumes.ts';
import { pullPolicyOf } from './pull-policy.ts';

it.each<[string, Omit<Volume, 'name'>, Omit<Volume, 'name'>]>([
  ['no source', {}, { emptyDir: {} }],
  ['a ConfigMap', { configMap: { name: 'c' } }, { configMap: { name: 'c', defaultMode: 420 } }],
  ['a Secret', { secret: { secretName: 's' } }, { secret: { secretName: 's', defaultMode: 420 } }],
  ['a path of the host', { hostPath: { path: '/x' } }, { hostPath: { path: '/x', type: '' } }],
  [
    'files about the Pod',
    {
      downwardAPI: {
        items: [
          { path: 'a', fieldRef: { fieldPath: 'metadata.name' } },
          { path: 'b', resourceFieldRef: { resource: 'limits.cpu' } },
        ],
      },
    },
    {
      downwardAPI: {
        defaultMode: 420,
        items: [
          { path: 'a', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } },
          { path: 'b', resourceFieldRef: { resource: 'limits.cpu', divisor: '0' } },
        ],
      },
    },
  ],
  [
    'projected sources',
    { projected: { sources: [{ serviceAccountToken: { path: 't' } }, { configMap: { name: 'c' } }] } },
    {
      projected: {
        defaultMode: 420,
        sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 3600 } }, { configMap: { name: 'c' } }],
      },
    },
  ],
  ['an image', { image: { reference: 'a:1' } }, { image: { reference: 'a:1', pullPolicy: 'IfNotPresent' } }],
  [
    'a claim of its own',
    { ephemeral: { volumeClaimTemplate: { spec: {} } } },
    { ephemeral: { volumeClaimTemplate: { spec: { volumeMode: 'Filesystem' } } } },
  ],
  [
    'an iSCSI disk',
    { iscsi: { targetPortal: 'p', iqn: 'iqn', lun: 0 } },
    { iscsi: { targetPortal: 'p', iqn: 'iqn', lun: 0, iscsiInterface: 'default' } },
  ],
  [
    'a RADOS disk',
    { rbd: { monitors: ['m'], image: 'i' } },
    { rbd: { monitors: ['m'], image: 'i', pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' } },
  ],
  [
    'an Azure disk',
    { azureDisk: { diskName: 'd', diskURI: 'u' } },
    {
      azureDisk: {
        diskName: 'd',
        diskURI: 'u',
        cachingMode: 'ReadWrite',
        kind: 'Shared',
        fsType: 'ext4',
        readOnly: false,
      },
    },
  ],
  [
    'a ScaleIO disk',
    { scaleIO: { gateway: 'g', system: 's', secretRef: {} } },
    { scaleIO: { gateway: 'g', system: 's', secretRef: {}, storageMode: 'ThinProvisioned', fsType: 'xfs' } },
  ],
])('the defaults of a volume with %s are set', (_, source, expected) => {
  const volume: Volume = { name: 'v', ...structuredClone(source) };
  defaultVolume(volume);
  expect(volume).toEqual({ name: 'v', ...expected });
});

const DIGEST = `sha256:${'0'.repeat(64)}`;

it.each([
  ['', 'IfNotPresent'],
  ['busybox', 'Always'],
  ['busybox:latest', 'Always'],
  ['busybox:1', 'IfNotPresent'],
  ['host:5000/busybox', 'Always'],
  ['host:5000/busybox:1', 'IfNotPresent'],
  [`busybox@${DIGEST}`, 'IfNotPresent'],
  [`busybox:latest@${DIGEST}`, 'Always'],
])('the default pull policy of the image "%s" is %s', (image, expected) => {
  expect(pullPolicyOf(image)).toBe(expected);
});
