/** Warnings about PersistentVolumeClaims and templates of them. Source: pkg/api/persistentvolumeclaim of v1.33 (behavior and wording). */
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from '../../../generated/types.ts';
import { fractionWarnings } from '../fraction-warnings.ts';

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

export const claimSpecWarnings = (spec: PersistentVolumeClaimSpec | undefined, path: string): string[] => [
  ...fractionWarnings(spec?.resources?.requests, ['storage'], `${path}.resources.requests`),
  ...fractionWarnings(spec?.resources?.limits, ['storage'], `${path}.resources.limits`),
];

export const claimWarnings = ({ metadata, spec }: PersistentVolumeClaim): string[] => [
  ...(metadata.annotations?.[CLASS_ANNOTATION] === undefined
    ? []
    : [`metadata.annotations[${CLASS_ANNOTATION}]: deprecated since v1.8; use "storageClassName" attribute instead`]),
  ...claimSpecWarnings(spec, 'spec'),
];
