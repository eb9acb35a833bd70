/** The selector and the labels that the API server generates for Jobs. Source: pkg/registry/batch/job of v1.33 (behavior). */
import type { Job } from '../../../generated/types.ts';

const CONTROLLER_UID = 'batch.kubernetes.io/controller-uid';

export const generatedLabels = ({ metadata }: Job): Record<string, string> => ({
  'controller-uid': metadata.uid ?? '',
  'job-name': metadata.name,
  [CONTROLLER_UID]: metadata.uid ?? '',
  'batch.kubernetes.io/job-name': metadata.name,
});

/**
 * Adds the generated selector and labels to a Job without a manual selector. Labels that the client sent remain; validation rejects them if
 * they conflict.
 */
export function generateSelector(job: Job): void {
  const { spec } = job;
  if (spec === undefined || spec.manualSelector === true) return;
  spec.template ??= {};
  spec.template.metadata ??= {} as NonNullable<typeof spec.template.metadata>;
  spec.template.metadata.labels = { ...generatedLabels(job), ...spec.template.metadata.labels };
  const selector = spec.selector ?? {};
  spec.selector = { ...selector, matchLabels: { [CONTROLLER_UID]: job.metadata.uid ?? '', ...selector.matchLabels } };
}
