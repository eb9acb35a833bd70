import { expect, test } from 'vitest';
import type { KubeObject } from '../../machinery/meta.ts';
import { failure, ref, startRegistry } from './testing.ts';

const CLAIMS = ref('persistentvolumeclaims');
const CLASSES = ref('storageclasses', 'storage.k8s.io');

test('a PersistentVolumeClaim cannot grow, whether its StorageClass forbids or allows it', async () => {
  const { registry } = await startRegistry();
  const storageClass = { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: 'growing' } };
  const growing = { ...storageClass, provisioner: 'example.com/x', allowVolumeExpansion: true };
  await registry.create(CLASSES, undefined, growing as KubeObject);
  const refusalOf = async (storageClassName: string): Promise<string> => {
    const resources = (storage: string) => ({ requests: { storage } });
    const spec = { accessModes: ['ReadWriteOnce'], storageClassName, volumeName: 'v', resources: resources('1Gi') };
    const metadata = { name: storageClassName };
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec } as KubeObject;
    const created = await registry.create(CLAIMS, 'default', claim);
    const status = { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } };
    const bound = await registry.update(CLAIMS, { ...created, status } as KubeObject, { subresource: 'status' });
    const grown = { ...bound, spec: { ...spec, volumeMode: 'Filesystem', resources: resources('2Gi') } } as KubeObject;
    const { code, message } = await failure(registry.update(CLAIMS, grown));
    return `${code} ${message}`;
  };
  expect(await refusalOf('plain')).toBe(
    '403 persistentvolumeclaims "plain" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
  );
  expect(await refusalOf('growing')).toBe(
    '403 persistentvolumeclaims "growing" is forbidden: volume plugin does not support resize',
  );
});
