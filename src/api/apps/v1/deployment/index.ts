/**
 * The Deployment: has a ReplicaSet for each version of its template, and replaces the Pods of older versions with Pods of the current one.
 * Source: pkg/registry/apps/deployment, pkg/apis/apps and pkg/printers of v1.33.
 */
import { defaultTemplate, dropDisabledTemplateFields } from '../../../core/v1/pod-template/template.ts';
import { workloadWarnings } from '../../../core/v1/pod-template/workload-warnings.ts';
import { kind } from '../../../declaration.ts';
import type { Deployment, DeploymentSpec } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { immutable } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { containerColumns, dropTerminatingReplicas, selectorColumn, selectorOf } from '../workload-rules.ts';
import { validateDeployment, validateDeploymentStatus } from './validation.ts';

const DEFAULT_AMOUNT = '25%';
const DEFAULT_HISTORY_LIMIT = 10;
const DEFAULT_PROGRESS_SECONDS = 600;

function defaultSpec(spec: DeploymentSpec): void {
  spec.template ??= {};
  defaultTemplate(spec.template);
  spec.replicas ??= 1;
  spec.strategy ??= {};
  spec.strategy.type ||= 'RollingUpdate';
  if (spec.strategy.type === 'RollingUpdate') {
    spec.strategy.rollingUpdate ??= {};
    spec.strategy.rollingUpdate.maxUnavailable ??= DEFAULT_AMOUNT;
    spec.strategy.rollingUpdate.maxSurge ??= DEFAULT_AMOUNT;
  }
  spec.revisionHistoryLimit ??= DEFAULT_HISTORY_LIMIT;
  spec.progressDeadlineSeconds ??= DEFAULT_PROGRESS_SECONDS;
}

/** Changes of these parts increment the generation. The controller copies the annotations to ReplicaSets. */
const askedOf = ({ spec, metadata }: Deployment): unknown => ({ spec, annotations: metadata.annotations });

function prepareStatus(deployment: Deployment, old: Deployment): void {
  if (old.metadata.labels === undefined) delete deployment.metadata.labels;
  else deployment.metadata.labels = old.metadata.labels;
  dropTerminatingReplicas(deployment, old);
}

export const deploymentKind = kind<Deployment>('apps/v1', 'Deployment', {
  shortNames: ['deploy'],
  categories: ['all'],
  defaults(deployment) {
    deployment.spec ??= {} as DeploymentSpec;
    defaultSpec(deployment.spec);
  },
  scale: selectorOf,
  status: { initial: () => ({}), rules: [validateDeploymentStatus], prepare: prepareStatus },
  prepareForCreate(deployment) {
    startGeneration(deployment);
    dropDisabledTemplateFields(deployment.spec?.template);
  },
  prepareForUpdate(deployment, old) {
    dropDisabledTemplateFields(deployment.spec?.template, old.spec?.template);
    countGeneration(deployment, old, [askedOf(deployment), askedOf(old)]);
  },
  rules: [validateDeployment, immutable('spec.selector')],
  warnings: workloadWarnings,
  columns: [
    nameColumn,
    column(
      'Ready',
      'How many Pods are ready, and how many there should be.',
      ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
    ),
    column('Up-to-date', 'How many Pods have the current template.', ({ status }) => status?.updatedReplicas ?? 0),
    column('Available', 'How many Pods are available.', ({ status }) => status?.availableReplicas ?? 0),
    ageColumn,
    ...containerColumns,
    selectorColumn,
  ],
});
