/** Validates volume mounts and block devices of a container. Source: validation of v1.33 (rules and wording). */
import {
  type FieldError,
  forbidden,
  invalid,
  notFoundField,
  notSupported,
} from '../../../../../machinery/field-error.ts';
import type { Volume, VolumeMount } from '../../../../generated/types.ts';
import type { AnyContainer } from '../containers.ts';
import { descendingPath, hasBacksteps, requiredText } from './validate-values.ts';

export function validateMounts(
  container: AnyContainer,
  volumes: ReadonlyMap<string, Volume>,
  path: string,
): FieldError[] {
  if (container.volumeMounts === undefined) return [];
  const mountPaths = new Set<string>();
  const devices = new Set(container.volumeDevices?.map(({ name }) => name));
  const devicePaths = new Set(container.volumeDevices?.map(({ devicePath }) => devicePath));
  return container.volumeMounts.flatMap((mount, index) => {
    const at = `${path}[${index}]`;
    const errors = requiredText(mount.name, `${at}.name`);
    if (!volumes.has(mount.name)) errors.push(notFoundField(`${at}.name`, mount.name ?? ''));
    errors.push(...requiredText(mount.mountPath, `${at}.mountPath`));
    if (mountPaths.has(mount.mountPath)) errors.push(invalid(`${at}.mountPath`, mount.mountPath, 'must be unique'));
    mountPaths.add(mount.mountPath);
    if (devices.has(mount.name)) {
      errors.push(invalid(`${at}.name`, mount.name, 'must not already exist in volumeDevices'));
    }
    if (devicePaths.has(mount.mountPath)) {
      errors.push(invalid(`${at}.mountPath`, mount.mountPath, 'must not already exist as a path in volumeDevices'));
    }
    errors.push(...validateSubPaths(mount, at, path));
    errors.push(...validatePropagation(mount, container, `${path}.mountPropagation`));
    errors.push(...validateRecursiveReadOnly(mount, `${path}.recursiveReadOnly`));
    return errors;
  });
}

/** `listPath`: the path without the mount's index, at which upstream reports some errors. */
function validateSubPaths(mount: VolumeMount, path: string, listPath: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['subPath', 'subPathExpr'] as const) {
    const value = mount[field];
    if (!value) continue;
    if (field === 'subPathExpr' && mount.subPath) {
      errors.push(invalid(`${path}.${field}`, value, 'subPathExpr and subPath are mutually exclusive'));
    }
    errors.push(...descendingPath(value, `${listPath}.${field}`));
  }
  return errors;
}

const propagations = ['Bidirectional', 'HostToContainer', 'None'] as const;

function validatePropagation({ mountPropagation }: VolumeMount, container: AnyContainer, path: string): FieldError[] {
  if (mountPropagation === undefined) return [];
  if (!(propagations as readonly string[]).includes(mountPropagation)) {
    return [notSupported(path, mountPropagation, propagations)];
  }
  return mountPropagation === 'Bidirectional' && container.securityContext?.privileged !== true
    ? [forbidden(path, 'Bidirectional mount propagation is available only to privileged containers')]
    : [];
}

function validateRecursiveReadOnly(mount: VolumeMount, path: string): FieldError[] {
  const { recursiveReadOnly, readOnly, mountPropagation } = mount;
  if (recursiveReadOnly === undefined || recursiveReadOnly === 'Disabled') return [];
  if (recursiveReadOnly !== 'Enabled' && recursiveReadOnly !== 'IfPossible') {
    return [notSupported(path, recursiveReadOnly, ['Disabled', 'Enabled', 'IfPossible'])];
  }
  const errors: FieldError[] = [];
  if (!readOnly) errors.push(forbidden(path, 'may only be specified when readOnly is true'));
  if (mountPropagation !== undefined && mountPropagation !== 'None') {
    errors.push(forbidden(path, 'may only be specified when mountPropagation is None or not specified'));
  }
  return errors;
}

export function validateDevices(
  container: AnyContainer,
  volumes: ReadonlyMap<string, Volume>,
  path: string,
): FieldError[] {
  if (container.volumeDevices === undefined) return [];
  const names = new Set<string>();
  const paths = new Set<string>();
  const mounts = new Set(container.volumeMounts?.map((mount) => mount.name));
  const mountPaths = new Set(container.volumeMounts?.map(({ mountPath }) => mountPath));
  return container.volumeDevices.flatMap(({ name, devicePath }, index) => {
    const at = `${path}[${index}]`;
    const volume = volumes.get(name);
    const errors = requiredText(name, `${at}.name`);
    if (names.has(name)) errors.push(invalid(`${at}.name`, name, 'must be unique'));
    if (volume === undefined) errors.push(notFoundField(`${at}.name`, name ?? ''));
    else if (!volume.persistentVolumeClaim && !volume.ephemeral) {
      errors.push(
        invalid(
          `${at}.name`,
          name,
          'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
        ),
      );
    }
    errors.push(...requiredText(devicePath, `${at}.devicePath`));
    if (paths.has(devicePath)) errors.push(invalid(`${at}.devicePath`, devicePath, 'must be unique'));
    if (hasBacksteps(devicePath ?? '')) {
      errors.push(invalid(`${at}.devicePath`, devicePath, "can not contain backsteps ('..')"));
    } else {
      paths.add(devicePath);
    }
    if (mounts.has(name)) {
      errors.push(invalid(`${at}.name`, name, 'must not already exist in volumeMounts'));
    }
    if (mountPaths.has(devicePath)) {
      errors.push(invalid(`${at}.devicePath`, devicePath, 'must not already exist as a path in volumeMounts'));
    }
    names.add(name);
    return errors;
  });
}
