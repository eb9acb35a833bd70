/**
 * The ReplicaSet: keeps a number of Pods of one template running.
 * Source: pkg/registry/apps/replicaset, pkg/apis/apps and pkg/printers of v1.33.
 */
import { allErrors } from '../../../../machinery/field-error.ts';
import { defaultTemplate, dropDisabledTemplateFields } from '../../../core/v1/pod-template/template.ts';
import { workloadWarnings } from '../../../core/v1/pod-template/workload-warnings.ts';
import { kind } from '../../../declaration.ts';
import type { ReplicaSet, ReplicaSetSpec } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { at, immutable, nonNegative, type Rule } from '../../../rules.ts';
import { ageColumn, nameColumn } from '../../../table.ts';
import { replicaColumns, validateReplicaStatus } from '../replica-status.ts';
import { validateReplicaTemplate } from '../replica-template.ts';
import { containerColumns, dropTerminatingReplicas, selectorColumn, selectorOf } from '../workload-rules.ts';

const numbers = ['replicas', 'minReadySeconds'].map((name) => at(`spec.${name}`, nonNegative));

const validateReplicaSet: Rule<ReplicaSet> = (replicaSet, old) =>
  allErrors(...numbers.map((rule) => rule(replicaSet)), validateReplicaTemplate(replicaSet.spec ?? {}, old?.spec));

export const replicaSetKind = kind<ReplicaSet>('apps/v1', 'ReplicaSet', {
  shortNames: ['rs'],
  categories: ['all'],
  defaults(replicaSet) {
    replicaSet.spec ??= {} as ReplicaSetSpec;
    replicaSet.spec.template ??= {};
    defaultTemplate(replicaSet.spec.template);
    replicaSet.spec.replicas ??= 1;
  },
  scale: selectorOf,
  status: { initial: () => ({ replicas: 0 }), rules: [validateReplicaStatus], prepare: dropTerminatingReplicas },
  prepareForCreate(replicaSet) {
    startGeneration(replicaSet);
    dropDisabledTemplateFields(replicaSet.spec?.template);
  },
  prepareForUpdate(replicaSet, old) {
    dropDisabledTemplateFields(replicaSet.spec?.template, old.spec?.template);
    countGeneration(replicaSet, old, [replicaSet.spec, old.spec]);
  },
  rules: [validateReplicaSet, immutable('spec.selector')],
  warnings: workloadWarnings,
  selectableFields: ({ status }) => ({ 'status.replicas': String(status?.replicas ?? 0) }),
  columns: [nameColumn, ...replicaColumns, ageColumn, ...containerColumns, selectorColumn],
});
