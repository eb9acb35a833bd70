/** Sets the defaults of volumes, and of the references in volumes and environment variables. Source: v1.33. */
import type {
  DownwardAPIVolumeFile,
  ObjectFieldSelector,
  ResourceFieldSelector,
  Volume,
} from '../../../generated/types.ts';
import { pullPolicyOf } from './pull-policy.ts';

/** 0644 in octal. */
const DEFAULT_FILE_MODE = 420;
const DEFAULT_TOKEN_SECONDS = 3600;

export function defaultVolume(volume: Volume): void {
  const sources = Object.entries(volume).filter(([field, value]) => field !== 'name' && value != null);
  if (sources.length === 0) volume.emptyDir = {};
  if (volume.configMap) volume.configMap.defaultMode ??= DEFAULT_FILE_MODE;
  if (volume.secret) volume.secret.defaultMode ??= DEFAULT_FILE_MODE;
  if (volume.hostPath) volume.hostPath.type ??= '';
  if (volume.downwardAPI) {
    volume.downwardAPI.defaultMode ??= DEFAULT_FILE_MODE;
    defaultDownwardItems(volume.downwardAPI.items);
  }
  if (volume.projected) {
    volume.projected.defaultMode ??= DEFAULT_FILE_MODE;
    for (const source of volume.projected.sources ?? []) {
      if (source.serviceAccountToken) source.serviceAccountToken.expirationSeconds ??= DEFAULT_TOKEN_SECONDS;
      defaultDownwardItems(source.downwardAPI?.items);
    }
  }
  if (volume.image) volume.image.pullPolicy ||= pullPolicyOf(volume.image.reference ?? '');
  if (volume.ephemeral?.volumeClaimTemplate) volume.ephemeral.volumeClaimTemplate.spec.volumeMode ??= 'Filesystem';
  defaultNetworkDisks(volume);
}

function defaultNetworkDisks({ iscsi, rbd, azureDisk, scaleIO }: Volume): void {
  if (iscsi) iscsi.iscsiInterface ||= 'default';
  if (rbd) {
    rbd.pool ||= 'rbd';
    rbd.user ||= 'admin';
    rbd.keyring ||= '/etc/ceph/keyring';
  }
  if (azureDisk) {
    azureDisk.cachingMode ??= 'ReadWrite';
    azureDisk.kind ??= 'Shared';
    azureDisk.fsType ??= 'ext4';
    azureDisk.readOnly ??= false;
  }
  if (scaleIO) {
    scaleIO.storageMode ||= 'ThinProvisioned';
    scaleIO.fsType ||= 'xfs';
  }
}

function defaultDownwardItems(items: DownwardAPIVolumeFile[] | undefined): void {
  for (const item of items ?? []) {
    if (item.fieldRef) defaultFieldRef(item.fieldRef);
    if (item.resourceFieldRef) defaultResourceFieldRef(item.resourceFieldRef);
  }
}

export function defaultFieldRef(reference: ObjectFieldSelector): void {
  reference.apiVersion ||= 'v1';
}

/** Zero means one unit of the resource. */
export function defaultResourceFieldRef(reference: ResourceFieldSelector): void {
  reference.divisor ??= '0';
}
