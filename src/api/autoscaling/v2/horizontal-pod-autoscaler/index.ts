/**
 * The HorizontalPodAutoscaler: the minimum and maximum number of replicas of a scalable object, and the metrics that determine the number.
 * Source: pkg/registry/autoscaling/horizontalpodautoscaler, pkg/apis/autoscaling and pkg/printers of v1.33.
 */
import { kind } from '../../../declaration.ts';
import type { V2HorizontalPodAutoscaler } from '../../../generated/types.ts';
import { at, nonNegative } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { defaultAutoscaler } from './defaults.ts';
import { targetsCell } from './targets-cell.ts';
import { validateAutoscaler } from './validation.ts';

/** The feature gate HPAConfigurableTolerance is off in v1.33. */
function dropTolerances({ spec }: V2HorizontalPodAutoscaler): void {
  delete spec?.behavior?.scaleUp?.tolerance;
  delete spec?.behavior?.scaleDown?.tolerance;
}

export const horizontalPodAutoscalerKind = kind<V2HorizontalPodAutoscaler>(
  'autoscaling/v2',
  'HorizontalPodAutoscaler',
  {
    shortNames: ['hpa'],
    categories: ['all'],
    defaults: defaultAutoscaler,
    status: {
      initial: () => ({ currentMetrics: [], desiredReplicas: 0 }),
      rules: [at('status.currentReplicas', nonNegative), at('status.desiredReplicas', nonNegative)],
    },
    prepareForCreate: dropTolerances,
    prepareForUpdate: dropTolerances,
    rules: [validateAutoscaler],
    columns: [
      nameColumn,
      column('Reference', 'The object whose replicas are scaled.', ({ spec }) =>
        [spec?.scaleTargetRef.kind, spec?.scaleTargetRef.name].join('/'),
      ),
      column('Targets', 'The current values of the metrics and their targets.', targetsCell),
      column('MinPods', 'The minimum number of replicas.', ({ spec }) => String(spec?.minReplicas ?? '<unset>')),
      column('MaxPods', 'The maximum number of replicas.', ({ spec }) => spec?.maxReplicas ?? 0),
      column('Replicas', 'The number of replicas.', ({ status }) => status?.currentReplicas ?? 0),
      ageColumn,
    ],
  },
);
