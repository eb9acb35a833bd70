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
import type { CSIVolumeSource, HostPathVolumeSource, ISCSIVolumeSource, Volume } from '../../../../generated/types.ts';
import { TOKEN_PROJECTION } from '../admission.ts';
import { validateDownwardFile, validateItems, validateProjected } from './validate-projected.ts';
import { volumeFieldPaths } from './validate-references.ts';
import {
  descendingPath,
  fileModeErrors,
  nameErrors,
  noBacksteps,
  requiredName,
  requiredText,
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

/** The fields of the other types of sources are not validated. */
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
  projected: ({ projected }, path, fieldPaths) =>
    projected && projected !== TOKEN_PROJECTION ? validateProjected(projected, path, fieldPaths) : [],
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
