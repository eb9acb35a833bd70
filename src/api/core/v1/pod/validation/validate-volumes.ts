/** Validates the volumes of a Pod. Source: validation of v1.33 (rules and wording). */
import {
  allErrors,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../../machinery/field-error.ts';
import { dns1123LabelErrors, dns1123SubdomainErrors, inclusiveRangeText } from '../../../../../machinery/names.ts';
import { compareQuantities, parseQuantity, zeroQuantity } from '../../../../../machinery/quantity.ts';
import type {
  CSIVolumeSource,
  DownwardAPIVolumeFile,
  HostPathVolumeSource,
  ISCSIVolumeSource,
  KeyToPath,
  ProjectedVolumeSource,
  Volume,
} from '../../../../generated/types.ts';
import { validateFieldRef, validateResourceFieldRef, volumeFieldPaths } from './validate-references.ts';
import {
  descendingPath,
  fileModeErrors,
  nameErrors,
  noBacksteps,
  requiredName,
  requiredText,
  unreservedPath,
} from './validate-values.ts';

type SourceName = Exclude<keyof Volume, 'name'>;

/** The sources in upstream's order. The first source that a volume sets is validated, and each further source is an error. */
const sourceOrder = [
  'emptyDir',
  'hostPath',
  'gitRepo',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'secret',
  'nfs',
  'iscsi',
  'glusterfs',
  'flocker',
  'persistentVolumeClaim',
  'rbd',
  'cinder',
  'cephfs',
  'quobyte',
  'downwardAPI',
  'fc',
  'flexVolume',
  'configMap',
  'azureFile',
  'vsphereVolume',
  'photonPersistentDisk',
  'portworxVolume',
  'azureDisk',
  'storageos',
  'projected',
  'scaleIO',
  'csi',
  'ephemeral',
  'image',
] as const satisfies readonly SourceName[];
const sources: ReadonlySet<string> = new Set(sourceOrder);

/** Validates volumes, and returns the valid ones by name. `fieldPaths`: the paths of the Pod's fields to which files may refer. */
export function validateVolumes(
  volumes: readonly Volume[] | undefined,
  fieldPaths: readonly string[] = volumeFieldPaths,
): { errors: FieldError[]; byName: Map<string, Volume> } {
  const byName = new Map<string, Volume>();
  const errors = (volumes ?? []).flatMap((volume, index) => {
    const path = `spec.volumes[${index}]`;
    const found = allErrors(
      validateSource(volume, path, fieldPaths),
      requiredName(volume.name, `${path}.name`, dns1123LabelErrors),
      byName.has(volume.name) ? [duplicate(`${path}.name`, volume.name)] : [],
    );
    if (found.length === 0) byName.set(volume.name, volume);
    return found;
  });
  return { errors, byName };
}

function validateSource(volume: Volume, path: string, fieldPaths: readonly string[]): FieldError[] {
  const given = (Object.keys(volume) as SourceName[]).filter((key) => sources.has(key) && volume[key] != null);
  const [first, ...others] = given.length < 2 ? given : sourceOrder.filter((name) => volume[name] != null);
  if (first === undefined) return [required(path, 'must specify a volume type')];
  return allErrors(
    validators[first]?.(volume, `${path}.${first}`, fieldPaths) ?? [],
    others.map((name) => forbidden(`${path}.${name}`, 'may not specify more than 1 volume type')),
  );
}

/** The functions that validate required fields and formats of the sources. The fields of the other types of sources are not validated. */
const validators: Partial<
  Record<SourceName, (volume: Volume, path: string, fieldPaths: readonly string[]) => FieldError[]>
> = {
  emptyDir: ({ emptyDir }, path) => validateSizeLimit(emptyDir?.sizeLimit, `${path}.sizeLimit`),
  hostPath: ({ hostPath }, path) => (hostPath ? validateHostPath(hostPath, path) : []),
  gitRepo: ({ gitRepo }, path) =>
    allErrors(
      requiredText(gitRepo?.repository, `${path}.repository`),
      descendingPath(gitRepo?.directory ?? '', `${path}.directory`),
    ),
  secret: ({ secret }, path) =>
    allErrors(
      requiredText(secret?.secretName, `${path}.secretName`),
      fileModeErrors(secret?.defaultMode, `${path}.defaultMode`),
      validateItems(secret?.items, `${path}.items`),
    ),
  configMap: ({ configMap }, path) =>
    allErrors(
      requiredText(configMap?.name, `${path}.name`),
      fileModeErrors(configMap?.defaultMode, `${path}.defaultMode`),
      validateItems(configMap?.items, `${path}.items`),
    ),
  downwardAPI: ({ downwardAPI }, path, fieldPaths) =>
    allErrors(
      fileModeErrors(downwardAPI?.defaultMode, `${path}.defaultMode`),
      (downwardAPI?.items ?? []).flatMap((file) => validateDownwardFile(file, path, fieldPaths)),
    ),
  projected: ({ projected }, path, fieldPaths) => (projected ? validateProjected(projected, path, fieldPaths) : []),
  persistentVolumeClaim: ({ persistentVolumeClaim }, path) =>
    requiredText(persistentVolumeClaim?.claimName, `${path}.claimName`),
  ephemeral: ({ ephemeral }, path) => (ephemeral?.volumeClaimTemplate ? [] : [required(`${path}.volumeClaimTemplate`)]),
  image: ({ image }, path) =>
    allErrors(
      requiredText(image?.reference, `${path}.reference`),
      ['Always', 'IfNotPresent', 'Never', '', undefined].includes(image?.pullPolicy)
        ? []
        : [notSupported(`${path}.pullPolicy`, image?.pullPolicy, ['Always', 'IfNotPresent', 'Never'])],
    ),
  nfs: ({ nfs }, path) =>
    allErrors(
      requiredText(nfs?.server, `${path}.server`),
      requiredText(nfs?.path, `${path}.path`),
      nfs?.path && !nfs.path.startsWith('/') ? [invalid(`${path}.path`, nfs.path, 'must be an absolute path')] : [],
    ),
  iscsi: ({ iscsi }, path) => (iscsi ? validateIscsi(iscsi, path) : []),
  csi: ({ csi }, path) => (csi ? validateCsi(csi, path) : []),
  glusterfs: ({ glusterfs }, path) =>
    allErrors(requiredText(glusterfs?.endpoints, `${path}.endpoints`), requiredText(glusterfs?.path, `${path}.path`)),
  rbd: ({ rbd }, path) =>
    allErrors(
      (rbd?.monitors ?? []).length === 0 ? [required(`${path}.monitors`)] : [],
      requiredText(rbd?.image, `${path}.image`),
    ),
  cephfs: ({ cephfs }, path) => ((cephfs?.monitors ?? []).length === 0 ? [required(`${path}.monitors`)] : []),
  cinder: ({ cinder }, path) => requiredText(cinder?.volumeID, `${path}.volumeID`),
  awsElasticBlockStore: ({ awsElasticBlockStore }, path) =>
    requiredText(awsElasticBlockStore?.volumeID, `${path}.volumeID`),
  gcePersistentDisk: ({ gcePersistentDisk }, path) => requiredText(gcePersistentDisk?.pdName, `${path}.pdName`),
  azureFile: ({ azureFile }, path) =>
    allErrors(
      requiredText(azureFile?.secretName, `${path}.secretName`),
      requiredText(azureFile?.shareName, `${path}.shareName`),
    ),
  azureDisk: ({ azureDisk }, path) =>
    allErrors(
      requiredText(azureDisk?.diskName, `${path}.diskName`),
      requiredText(azureDisk?.diskURI, `${path}.diskURI`),
    ),
  vsphereVolume: ({ vsphereVolume }, path) => requiredText(vsphereVolume?.volumePath, `${path}.volumePath`),
  portworxVolume: ({ portworxVolume }, path) => requiredText(portworxVolume?.volumeID, `${path}.volumeID`),
  photonPersistentDisk: ({ photonPersistentDisk }, path) => requiredText(photonPersistentDisk?.pdID, `${path}.pdID`),
  flexVolume: ({ flexVolume }, path) => requiredText(flexVolume?.driver, `${path}.driver`),
};

function validateSizeLimit(sizeLimit: string | undefined, path: string): FieldError[] {
  if (sizeLimit === undefined) return [];
  const quantity = parseQuantity(String(sizeLimit));
  return quantity !== undefined && compareQuantities(quantity, zeroQuantity) >= 0
    ? []
    : [forbidden(path, 'SizeLimit field must be a valid resource quantity')];
}

const hostPathTypes = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
] as const;

export function validateHostPath({ path: value, type = '' }: HostPathVolumeSource, path: string): FieldError[] {
  if (!value) return [required(`${path}.path`)];
  return allErrors(
    noBacksteps(value, `${path}.path`),
    (hostPathTypes as readonly string[]).includes(type) ? [] : [notSupported(`${path}.type`, type, hostPathTypes)],
  );
}

const validateItems = (items: readonly KeyToPath[] | undefined, path: string): FieldError[] =>
  (items ?? []).flatMap((item, index) =>
    allErrors(
      requiredText(item.key, `${path}[${index}].key`),
      requiredText(item.path, `${path}[${index}].path`),
      unreservedPath(item.path ?? '', `${path}[${index}].path`),
      fileModeErrors(item.mode, `${path}[${index}].mode`),
    ),
  );

function validateDownwardFile(file: DownwardAPIVolumeFile, path: string, fieldPaths: readonly string[]): FieldError[] {
  const errors = allErrors(requiredText(file.path, `${path}.path`), unreservedPath(file.path ?? '', `${path}.path`));
  if (file.fieldRef) {
    errors.push(...validateFieldRef(file.fieldRef, `${path}.fieldRef`, fieldPaths));
    if (file.resourceFieldRef) {
      errors.push(invalid(path, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously'));
    }
  } else if (file.resourceFieldRef) {
    errors.push(...validateResourceFieldRef(file.resourceFieldRef, `${path}.resourceFieldRef`, true));
  } else {
    errors.push(required(path, 'one of fieldRef and resourceFieldRef is required'));
  }
  return allErrors(errors, fileModeErrors(file.mode, `${path}.mode`));
}

/**
 * The supported sources of projected volumes. The feature gates of other sources are off by default in v1.33: upstream drops these
 * sources silently, but an error is clearer.
 */
const projectable: ReadonlySet<string> = new Set(['secret', 'configMap', 'downwardAPI', 'serviceAccountToken']);

function validateProjected(
  { defaultMode, sources }: ProjectedVolumeSource,
  path: string,
  fieldPaths: readonly string[],
): FieldError[] {
  const errors = fileModeErrors(defaultMode, `${path}.defaultMode`);
  const taken = new Set<string>();
  const claimPath = (file: string | undefined, shown: string): void => {
    if (!file) return;
    if (taken.has(file)) errors.push(invalid(path, shown, 'conflicting duplicate paths'));
    taken.add(file);
  };
  (sources ?? []).forEach((source, index) => {
    const at = `${path}.sources[${index}]`;
    for (const kind of ['secret', 'configMap'] as const) {
      const projection = source[kind];
      if (!projection) continue;
      errors.push(...requiredText(projection.name, `${at}.${kind}.name`));
      errors.push(...validateItems(projection.items, `${at}.${kind}.items`));
      for (const item of projection.items ?? []) claimPath(item.path, projection.name ?? '');
    }
    for (const file of source.downwardAPI?.items ?? []) {
      errors.push(...validateDownwardFile(file, `${at}.downwardAPI`, fieldPaths));
      claimPath(file.path, file.path);
    }
    if (source.serviceAccountToken) {
      const { expirationSeconds = 0, path: file } = source.serviceAccountToken;
      const secondsPath = `${at}.serviceAccountToken.expirationSeconds`;
      if (expirationSeconds < 600) {
        errors.push(invalid(secondsPath, expirationSeconds, 'may not specify a duration less than 10 minutes'));
      }
      if (expirationSeconds > 2 ** 32) {
        errors.push(invalid(secondsPath, expirationSeconds, 'may not specify a duration larger than 2^32 seconds'));
      }
      errors.push(...(file ? unreservedPath(file, `${path}.path`) : [required(`${path}.path`)]));
    }
    const kinds = Object.keys(source).filter((kind) => source[kind as keyof typeof source] != null);
    for (const kind of kinds) if (!projectable.has(kind)) errors.push(forbidden(`${at}.${kind}`, 'is not supported'));
    if (kinds.length > 1) {
      errors.push(forbidden(at, 'may not specify more than 1 volume type per source'));
    }
  });
  return errors;
}

function validateIscsi(iscsi: ISCSIVolumeSource, path: string): FieldError[] {
  const errors = allErrors(
    requiredText(iscsi.targetPortal, `${path}.targetPortal`),
    requiredText(iscsi.iqn, `${path}.iqn`),
  );
  if (iscsi.iqn && !/^(iqn|eui|naa)/.test(iscsi.iqn)) {
    errors.push(invalid(`${path}.iqn`, iscsi.iqn, 'must be valid format starting with iqn, eui, or naa'));
  }
  if (iscsi.lun < 0 || iscsi.lun > 255) errors.push(invalid(`${path}.lun`, iscsi.lun, inclusiveRangeText(0, 255)));
  if ((iscsi.chapAuthDiscovery || iscsi.chapAuthSession) && !iscsi.secretRef) {
    errors.push(required(`${path}.secretRef`));
  }
  return errors;
}

function validateCsi({ driver, nodePublishSecretRef }: CSIVolumeSource, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!driver) errors.push(required(`${path}.driver`));
  else errors.push(...nameErrors(driver.toLowerCase(), `${path}.driver`, dns1123SubdomainErrors));
  if (nodePublishSecretRef) {
    errors.push(
      ...requiredName(nodePublishSecretRef.name, `${path}.nodePublishSecretRef.name`, dns1123SubdomainErrors),
    );
  }
  return errors;
}
