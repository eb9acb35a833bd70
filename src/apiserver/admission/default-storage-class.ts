/**
 * An empty storageClassName means that the claim requests no class, and is kept.
 * Source: the plugin DefaultStorageClass of v1.33 (behavior).
 */
import type { PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '../../api/resources.ts';
import { defaultClassName } from '../../api/storage.k8s.io/v1/storage-class/index.ts';
import { resourcePrefix } from '../cache/keys.ts';
import type { PluginFactory } from './plugin.ts';
import { on } from './targets.ts';

const PREFIX = resourcePrefix('storage.k8s.io', 'storageclasses');

export const defaultStorageClass: PluginFactory = ({ cache }) => ({
  name: 'DefaultStorageClass',
  handles: on(PERSISTENT_VOLUME_CLAIMS, 'CREATE'),
  admit({ object }) {
    const { spec } = object as PersistentVolumeClaim;
    if (spec === undefined || spec.storageClassName !== undefined) return;
    const name = defaultClassName(cache.list(PREFIX) as StorageClass[]);
    if (name !== undefined) spec.storageClassName = name;
  },
});
