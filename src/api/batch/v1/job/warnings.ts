/** Warnings about the specs of Jobs, also in CronJobs. Source: pkg/api/job of v1.33 (behavior and wording). */
import { templateWarnings } from '../../../core/v1/pod-template/template.ts';
import type { JobSpec } from '../../../generated/types.ts';

const MANY_COMPLETIONS = 100_000;
const MANY_PARALLEL = 10_000;

/** `old`: the spec that is replaced; undefined on create. `path`: of the spec. */
export function specWarnings(spec: Partial<JobSpec>, old: Partial<JobSpec> | undefined, path: string): string[] {
  const { completionMode, completions = 0, parallelism = 0, template } = spec;
  const isHuge = completionMode === 'Indexed' && completions > MANY_COMPLETIONS && parallelism > MANY_PARALLEL;
  const text =
    'In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail';
  return [...(isHuge ? [`${path}: ${text}`] : []), ...templateWarnings(template, old?.template, `${path}.template`)];
}
