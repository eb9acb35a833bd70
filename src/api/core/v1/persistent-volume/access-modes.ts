/** The access modes and volume modes of PersistentVolumes and claims. Source: pkg/apis/core of v1.33 (behavior and wording). */
import { type FieldError, forbidden, notSupported, required } from '../../../../machinery/field-error.ts';

const ABBREVIATIONS: readonly (readonly [mode: string, abbreviation: string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
];
const SUPPORTED = ABBREVIATIONS.map(([mode]) => mode).sort();
const VOLUME_MODES = ['Block', 'Filesystem'];

/** Returns a text such as `RWO,ROX`. */
export const accessModesCell = (modes: readonly string[] | undefined): string =>
  ABBREVIATIONS.filter(([mode]) => modes?.includes(mode))
    .map(([, abbreviation]) => abbreviation)
    .join(',');

export function validateAccessModes(modes: readonly string[] | undefined, missing: string): FieldError[] {
  const path = 'spec.accessModes';
  if (modes === undefined || modes.length === 0) return [required(path, missing)];
  const errors = modes.filter((mode) => !SUPPORTED.includes(mode)).map((mode) => notSupported(path, mode, SUPPORTED));
  if (modes.includes('ReadWriteOncePod') && modes.length > 1) {
    errors.push(forbidden(path, 'may not use ReadWriteOncePod with other access modes'));
  }
  return errors;
}

export const validateVolumeMode = (mode: string | undefined): FieldError[] =>
  mode === undefined || VOLUME_MODES.includes(mode) ? [] : [notSupported('spec.volumeMode', mode, VOLUME_MODES)];
