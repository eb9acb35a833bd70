/**
 * lifepod's volumes cannot be resized, so a claim cannot grow.
 * Source: the plugin PersistentVolumeClaimResize of v1.33 (behavior and wording).
 */
import { growthRefusal } from '../../api/core/v1/persistent-volume-claim/validation.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '../../api/resources.ts';
import { forbidden } from '../../machinery/status.ts';
import { objectKey, resourcePrefix } from '../cache/keys.ts';
import type { PluginFactory } from './plugin.ts';
import { on } from './targets.ts';

const PREFIX = resourcePrefix('storage.k8s.io', 'storageclasses');

export const claimResize: PluginFactory = ({ cache }) => ({
  name: 'PersistentVolumeClaimResize',
  handles: on(PERSISTENT_VOLUME_CLAIMS, 'UPDATE'),
  validate({ object, old, groupResource, name }) {
    const claim = object as PersistentVolumeClaim;
    const storageClass = cache.get(objectKey(PREFIX, undefined, claim.spec?.storageClassName ?? ''));
    const cause = growthRefusal(claim, old as PersistentVolumeClaim, storageClass as StorageClass | undefined);
    if (cause !== undefined) throw forbidden(groupResource, name, cause);
  },
});
