import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { DownwardAPIVolumeFile, Volume, VolumeProjection } from '../../../../generated/types.ts';
import { defaulted, podOf } from '../pod-fixtures.ts';
import { validateVolumes } from './validate-volumes.ts';

/** Returns the errors of a volume with this source, which may lack required fields. */
const errorsOf = (source: object): string[] => {
  const pod = defaulted(podOf({ volumes: [{ name: 'a', ...source } as Volume] }));
  return validateVolumes(pod.spec?.volumes).errors.map(fieldErrorText);
};
const required = (field: string): string => `spec.volumes[0].${field}: Required value`;
const MODE = 'must be a number between 0 and 0777 (octal), both inclusive';
const KEY_AND_PATH = { key: 'k', path: 'p' };

it('only valid volumes can be mounted', () => {
  const volumes: Volume[] = [
    { name: 'a', emptyDir: {} },
    { name: 'b' },
    { name: 'C', emptyDir: {} },
    { name: 'a', hostPath: { path: '/x', type: '' } },
  ];
  const { errors, byName } = validateVolumes(volumes);
  expect(errors.map(fieldErrorText)).toEqual([
    'spec.volumes[1]: Required value: must specify a volume type',
    expect.stringMatching(/^spec.volumes\[2\].name: Invalid value: "C"/),
    'spec.volumes[3].name: Duplicate value: "a"',
  ]);
  expect([...byName]).toEqual([['a', volumes[0]]]);
});

describe('the source of a volume', () => {
  it.each<[object, ...string[]]>([
    [{ gitRepo: {} }, 'gitRepo.repository'],
    [{ persistentVolumeClaim: {} }, 'persistentVolumeClaim.claimName'],
    [{ ephemeral: {} }, 'ephemeral.volumeClaimTemplate'],
    [{ image: {} }, 'image.reference'],
    [{ hostPath: {} }, 'hostPath.path'],
    [{ nfs: {} }, 'nfs.server', 'nfs.path'],
    [{ iscsi: { lun: 0 } }, 'iscsi.targetPortal', 'iscsi.iqn'],
    [{ csi: {} }, 'csi.driver'],
    [{ csi: { driver: 'd', nodePublishSecretRef: {} } }, 'csi.nodePublishSecretRef.name'],
    [{ glusterfs: {} }, 'glusterfs.endpoints', 'glusterfs.path'],
    [{ rbd: {} }, 'rbd.monitors', 'rbd.image'],
    [{ cephfs: {} }, 'cephfs.monitors'],
    [{ cinder: {} }, 'cinder.volumeID'],
    [{ awsElasticBlockStore: {} }, 'awsElasticBlockStore.volumeID'],
    [{ gcePersistentDisk: {} }, 'gcePersistentDisk.pdName'],
    [{ azureFile: {} }, 'azureFile.secretName', 'azureFile.shareName'],
    [{ azureDisk: {} }, 'azureDisk.diskName', 'azureDisk.diskURI'],
    [{ vsphereVolume: {} }, 'vsphereVolume.volumePath'],
    [{ portworxVolume: {} }, 'portworxVolume.volumeID'],
    [{ photonPersistentDisk: {} }, 'photonPersistentDisk.pdID'],
    [{ flexVolume: {} }, 'flexVolume.driver'],
    [{ configMap: { name: 'c', items: [{}] } }, 'configMap.items[0].key', 'configMap.items[0].path'],
    [{ secret: { secretName: 's', items: [{}] } }, 'secret.items[0].key', 'secret.items[0].path'],
  ])('the required fields of the source %j are reported', (source, ...fields) => {
    expect(errorsOf(source)).toEqual(fields.map(required));
  });
  it.each([
    { emptyDir: { sizeLimit: '0' } },
    { emptyDir: { sizeLimit: '1Gi' } },
    { gitRepo: { repository: 'r', directory: 'a/b' } },
    { persistentVolumeClaim: { claimName: 'c' } },
    { ephemeral: { volumeClaimTemplate: { spec: {} } } },
    { image: { reference: 'r', pullPolicy: 'Never' } },
    { image: { reference: 'r' } },
    { nfs: { server: 's', path: '/' } },
    { iscsi: { targetPortal: 't', iqn: 'iqn.x', lun: 0 } },
    { iscsi: { targetPortal: 't', iqn: 'eui.x', lun: 255, chapAuthSession: true, secretRef: { name: 's' } } },
    { csi: { driver: 'Example.com' } },
    { csi: { driver: 'd', nodePublishSecretRef: { name: 's' } } },
    { glusterfs: { endpoints: 'e', path: 'p' } },
    { rbd: { monitors: ['m'], image: 'i' } },
    { cephfs: { monitors: ['m'] } },
    { configMap: { name: 'c', defaultMode: 0o777, items: [{ ...KEY_AND_PATH, mode: 0 }] } },
  ])('the source %j is valid', (source) => {
    expect(errorsOf(source)).toEqual([]);
  });
  it.each<[object, ...string[]]>([
    [
      { gitRepo: { repository: 'r', directory: '/a/..' } },
      'gitRepo.directory: Invalid value: "/a/..": must be a relative path',
      'gitRepo.directory: Invalid value: "/a/..": must not contain \'..\'',
    ],
    [
      { emptyDir: { sizeLimit: 'x' } },
      'emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity',
    ],
    [
      { image: { reference: 'r', pullPolicy: 'x' } },
      'image.pullPolicy: Unsupported value: "x": supported values: "Always", "IfNotPresent", "Never"',
    ],
    [
      { iscsi: { targetPortal: 't', iqn: 'x.iqn', lun: -1 } },
      'iscsi.iqn: Invalid value: "x.iqn": must be valid format starting with iqn, eui, or naa',
      'iscsi.lun: Invalid value: -1: must be between 0 and 255, inclusive',
    ],
    [
      { iscsi: { targetPortal: 't', iqn: 'naa.x', lun: 256 } },
      'iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive',
    ],
    [{ iscsi: { targetPortal: 't', iqn: 'iqn', lun: 1, chapAuthDiscovery: true } }, 'iscsi.secretRef: Required value'],
    [{ iscsi: { targetPortal: 't', iqn: 'iqn', lun: 1, chapAuthSession: true } }, 'iscsi.secretRef: Required value'],
    [
      { configMap: { name: 'c', defaultMode: 0o1000, items: [{ ...KEY_AND_PATH, mode: -1 }] } },
      `configMap.defaultMode: Invalid value: 512: ${MODE}`,
      `configMap.items[0].mode: Invalid value: -1: ${MODE}`,
    ],
    [{ downwardAPI: { defaultMode: 0o1000 } }, `downwardAPI.defaultMode: Invalid value: 512: ${MODE}`],
  ])('the errors in the source %j are reported', (source, ...errors) => {
    expect(errorsOf(source)).toEqual(errors.map((text) => `spec.volumes[0].${text}`));
  });
  it.each([
    [{ csi: { driver: 'a b' } }, 'csi.driver', 'a b'],
    [{ csi: { driver: 'd', nodePublishSecretRef: { name: 'A' } } }, 'csi.nodePublishSecretRef.name', 'A'],
  ])('a name in the source %j must be a valid name', (source, field, value) => {
    expect(errorsOf(source)).toEqual([
      expect.stringContaining(
        `spec.volumes[0].${field}: Invalid value: "${value}": a lowercase RFC 1123 subdomain must`,
      ),
    ]);
  });
});

describe('a file of a downwardAPI volume', () => {
  const fieldRef = { apiVersion: 'v1', fieldPath: 'metadata.name' };
  const resourceFieldRef = { containerName: 'app', resource: 'limits.cpu' };
  it.each<[object, ...string[]]>([
    [{ path: 'a/b', fieldRef, mode: 0o777 }],
    [{ path: 'p', resourceFieldRef }],
    [{ fieldRef }, '.path: Required value'],
    [{ path: '/p', fieldRef }, '.path: Invalid value: "/p": must be a relative path'],
    [{ path: '..p', fieldRef }, '.path: Invalid value: "..p": must not start with \'..\''],
    [
      { path: 'p', fieldRef, resourceFieldRef },
      ': Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously',
    ],
    [{ path: 'p', resourceFieldRef: { resource: 'limits.cpu' } }, '.resourceFieldRef.containerName: Required value'],
    [{ path: 'p', fieldRef, mode: 0o1000 }, `.mode: Invalid value: 512: ${MODE}`],
    [
      { path: 'p', fieldRef: { apiVersion: 'v1', fieldPath: 'status.podIP' } },
      '.fieldRef.fieldPath: Unsupported value: "status.podIP": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"',
    ],
  ])('the errors in the file %j are reported', (file, ...errors) => {
    const items = [file as DownwardAPIVolumeFile];
    expect(errorsOf({ downwardAPI: { items } })).toEqual(errors.map((text) => `spec.volumes[0].downwardAPI${text}`));
    expect(errorsOf({ projected: { sources: [{ downwardAPI: { items } }] } })).toEqual(
      errors.map((text) => `spec.volumes[0].projected.sources[0].downwardAPI${text}`),
    );
  });
});

describe('a projected volume', () => {
  const token = (expirationSeconds: number, path = 't') => ({ serviceAccountToken: { path, expirationSeconds } });
  it.each<[object[], ...string[]]>([
    [[token(600)]],
    [[token(2 ** 32)]],
    [
      [token(599)],
      '.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
    ],
    [
      [token(2 ** 32 + 1)],
      '.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
    ],
    [[token(600, '')], '.path: Required value'],
    [[token(600, '..t')], '.path: Invalid value: "..t": must not start with \'..\''],
    [
      [{ secret: {} }, { configMap: {} }],
      '.sources[0].secret.name: Required value',
      '.sources[1].configMap.name: Required value',
    ],
    [[{ secret: { name: 's', items: [{ path: 'p' }] } }], '.sources[0].secret.items[0].key: Required value'],
    [
      [{ secret: { name: 's', items: [{ key: 'a' }, { key: 'b' }] } }],
      '.sources[0].secret.items[0].path: Required value',
      '.sources[0].secret.items[1].path: Required value',
    ],
    [
      [
        { secret: { name: 's', items: [KEY_AND_PATH] } },
        { configMap: { name: 'c', items: [{ key: 'k', path: 'q' }] } },
      ],
    ],
    [
      [
        { secret: { name: 's', items: [KEY_AND_PATH] } },
        { downwardAPI: { items: [{ path: 'p', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } }] } },
      ],
      ': Invalid value: "p": conflicting duplicate paths',
    ],
  ])('the errors in the sources %j are reported', (sources, ...errors) => {
    expect(errorsOf({ projected: { sources: sources as VolumeProjection[] } })).toEqual(
      errors.map((text) => `spec.volumes[0].projected${text}`),
    );
  });
  it('the mode of the files must be valid', () => {
    expect(errorsOf({ projected: { defaultMode: 0o1000 } })).toEqual([
      `spec.volumes[0].projected.defaultMode: Invalid value: 512: ${MODE}`,
    ]);
  });
});
