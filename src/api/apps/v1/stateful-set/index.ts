/**
 * The StatefulSet: numbered Pods, each with its own claims. By default, the Pods are created and replaced in order.
 * Source: pkg/registry/apps/statefulset, pkg/apis/apps/v1 and pkg/printers of v1.33. The feature MaxUnavailableStatefulSet is enabled, but
 * maxUnavailable has no default, so that an object without the field is the same as in a v1.33 cluster that disables the feature.
 */
import { dns1123LabelErrors } from '../../../../machinery/names.ts';
import { claimSpecWarnings } from '../../../core/v1/persistent-volume-claim/warnings.ts';
import {
  defaultTemplate,
  dropDisabledTemplateFields,
  templateWarnings,
} from '../../../core/v1/pod-template/template.ts';
import { kind } from '../../../declaration.ts';
import type {
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
  StatefulSet,
  StatefulSetSpec,
  StatefulSetUpdateStrategy,
} from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { onUpdate } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { containerColumns, selectorOf } from '../workload-rules.ts';
import { validateStatefulSet, validateStatefulSetStatus, validateStatefulSetUpdate } from './validation.ts';

const DEFAULT_HISTORY_LIMIT = 10;

function defaultStrategy(strategy: StatefulSetUpdateStrategy): void {
  if ((strategy.type ?? '') === '') {
    strategy.type = 'RollingUpdate';
    strategy.rollingUpdate ??= {};
  }
  if (strategy.type === 'RollingUpdate' && strategy.rollingUpdate !== undefined) strategy.rollingUpdate.partition ??= 0;
}

/** Like upstream's conversion to apps/v1, sets apiVersion, kind and status. */
function defaultClaim(claim: PersistentVolumeClaim): void {
  claim.apiVersion = 'v1';
  claim.kind = 'PersistentVolumeClaim';
  claim.metadata ??= {} as PersistentVolumeClaim['metadata'];
  claim.spec ??= {} as PersistentVolumeClaimSpec;
  claim.spec.volumeMode ??= 'Filesystem';
  claim.status ??= {};
  claim.status.phase ||= 'Pending';
}

function defaultSpec(spec: StatefulSetSpec): void {
  spec.template ??= {};
  defaultTemplate(spec.template);
  spec.podManagementPolicy ||= 'OrderedReady';
  spec.updateStrategy ??= {};
  defaultStrategy(spec.updateStrategy);
  spec.persistentVolumeClaimRetentionPolicy ??= {};
  spec.persistentVolumeClaimRetentionPolicy.whenDeleted ||= 'Retain';
  spec.persistentVolumeClaimRetentionPolicy.whenScaled ||= 'Retain';
  spec.replicas ??= 1;
  spec.revisionHistoryLimit ??= DEFAULT_HISTORY_LIMIT;
  for (const claim of spec.volumeClaimTemplates ?? []) defaultClaim(claim);
}

/** Drops the fields of disabled feature gates, except those that `old` also has. */
const dropDisabled = ({ spec }: StatefulSet, old?: StatefulSet): void =>
  dropDisabledTemplateFields(spec?.template, old?.spec?.template);

/** As in upstream, the paths contain `.Spec` only on update. */
const claimTemplateWarnings = ({ spec }: StatefulSet, old: StatefulSet | undefined): string[] =>
  (spec?.volumeClaimTemplates ?? []).flatMap((claim, index) =>
    claimSpecWarnings(claim.spec, `spec.volumeClaimTemplates[${index}]${old === undefined ? '' : '.Spec'}`),
  );

export const statefulSetKind = kind<StatefulSet>('apps/v1', 'StatefulSet', {
  shortNames: ['sts'],
  categories: ['all'],
  names: dns1123LabelErrors,
  defaults(set) {
    set.spec ??= { template: {} } as StatefulSetSpec;
    defaultSpec(set.spec);
  },
  scale: selectorOf,
  status: { initial: () => ({ replicas: 0, availableReplicas: 0 }), rules: [validateStatefulSetStatus] },
  prepareForCreate(set) {
    startGeneration(set);
    dropDisabled(set);
  },
  prepareForUpdate(set, old) {
    dropDisabled(set, old);
    countGeneration(set, old, [set.spec, old.spec]);
  },
  rules: [validateStatefulSet, onUpdate(validateStatefulSetUpdate)],
  warnings: (set, old) => [
    ...(set.metadata.generation === old?.metadata.generation
      ? []
      : templateWarnings(set.spec?.template, old?.spec?.template, 'spec.template')),
    ...claimTemplateWarnings(set, old),
  ],
  columns: [
    nameColumn,
    column(
      'Ready',
      'How many Pods are ready, and how many there should be.',
      ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
    ),
    ageColumn,
    ...containerColumns,
  ],
});
