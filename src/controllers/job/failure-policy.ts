/**
 * Finds the rule of the podFailurePolicy that a failed Pod matches. The functions are pure.
 * Source: pkg/controller/job/pod_failure_policy.go of v1.33 (behavior and wording).
 */
import type { ContainerStatus, JobSpec, Pod, PodFailurePolicyRule } from '../../api/generated/types.ts';

export interface FailureMatch {
  /** The action of the first rule that matches; undefined if none does. */
  action: string | undefined;
  /** Whether the failure counts toward the limits of the Job. */
  isCounted: boolean;
  /** Why the Job fails, if the action is FailJob. */
  message?: string;
}

const COUNTED: FailureMatch = { action: undefined, isCounted: true };

export function matchFailurePolicy({ podFailurePolicy, backoffLimitPerIndex }: JobSpec, pod: Pod): FailureMatch {
  for (const [index, rule] of (podFailurePolicy?.rules ?? []).entries()) {
    const cause = causeOf(rule, pod);
    if (cause === undefined) continue;
    const { action } = rule;
    if (action === 'Ignore') return { action, isCounted: false };
    if (action === 'Count') return { action, isCounted: true };
    if (action === 'FailIndex' && backoffLimitPerIndex !== undefined) return { action, isCounted: true };
    if (action === 'FailJob')
      return { action, isCounted: true, message: `${cause} matching ${action} rule at index ${index}` };
  }
  return COUNTED;
}

function causeOf(
  { onExitCodes, onPodConditions = [] }: PodFailurePolicyRule,
  { metadata, status }: Pod,
): string | undefined {
  const name = `${metadata.namespace}/${metadata.name}`;
  if (onExitCodes !== undefined) {
    const ended = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
    const found = ended.find((container) => matchesExitCode(container, onExitCodes));
    if (found === undefined) return undefined;
    return `Container ${found.name} for pod ${name} failed with exit code ${found.state?.terminated?.exitCode}`;
  }
  const condition = (status?.conditions ?? []).find((each) =>
    onPodConditions.some(({ type, status: wanted }) => each.type === type && each.status === wanted),
  );
  return condition === undefined ? undefined : `Pod ${name} has condition ${condition.type}`;
}

function matchesExitCode(
  { name, state }: ContainerStatus,
  { containerName, operator, values = [] }: NonNullable<PodFailurePolicyRule['onExitCodes']>,
): boolean {
  const code = state?.terminated?.exitCode;
  if (code === undefined || code === 0 || (containerName !== undefined && containerName !== name)) return false;
  if (operator === 'In') return values.includes(code);
  return operator === 'NotIn' && !values.includes(code);
}
