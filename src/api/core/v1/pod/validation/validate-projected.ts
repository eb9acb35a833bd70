/**
 * Validates the files in volumes of Secrets, ConfigMaps and the downward API, and in projected volumes. Source: validation of v1.33 (rules
 * and wording).
 */
import { allErrors, type FieldError, forbidden, invalid, required } from '../../../../../machinery/field-error.ts';
import type { DownwardAPIVolumeFile, KeyToPath, ProjectedVolumeSource } from '../../../../generated/types.ts';
import { validateFieldRef, validateResourceFieldRef } from './validate-references.ts';
import { fileModeErrors, requiredText, unreservedPath } from './validate-values.ts';

export const validateItems = (items: readonly KeyToPath[] | undefined, path: string): FieldError[] =>
  (items ?? []).flatMap((item, index) =>
    allErrors(
      requiredText(item.key, `${path}[${index}].key`),
      requiredText(item.path, `${path}[${index}].path`),
      unreservedPath(item.path ?? '', `${path}[${index}].path`),
      fileModeErrors(item.mode, `${path}[${index}].mode`),
    ),
  );

export function validateDownwardFile(
  file: DownwardAPIVolumeFile,
  path: string,
  fieldPaths: readonly string[],
): FieldError[] {
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

/** The feature gates of other sources are off by default in v1.33: upstream drops these sources silently, but an error is clearer. */
const projectable: ReadonlySet<string> = new Set(['secret', 'configMap', 'downwardAPI', 'serviceAccountToken']);

export function validateProjected(
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
