/** Finds the memory limit of a container, and explains failures of the container runtime because of a limit. Pure. */
import { effectiveLimits } from '../../api/core/v1/pod/resources.ts';
import type { Container, Pod, PodSpec } from '../../api/generated/types.ts';
import { formatQuantity, parseQuantity } from '../../machinery/quantity.ts';
import type { Finding } from './needs/objects.ts';

const specOf = ({ spec }: Pod, name: string): Container | undefined =>
  [...(spec?.initContainers ?? []), ...(spec?.containers ?? []), ...(spec?.deferContainers ?? [])].find(
    (each) => each.name === name,
  );

/** Returns the limit of the container, or of the Pod if the container has none. */
export function memoryLimit(pod: Pod, name: string): string | undefined {
  const own = specOf(pod, name)?.resources?.limits?.['memory'];
  const ofPod = (pod.spec as PodSpec).resources?.limits?.['memory'];
  return own ?? ofPod;
}

/** runc is also killed if other memory of the Pod fills the group, such as files in an emptyDir volume. Source: runc's messages. */
const TOO_LOW = /init was OOM-killed|unable to set memory limit to \d+ \(current usage/;
/** On cgroup v1, a new group uses memory of the Pod's group. The text is the same if the machine lacks memory. Source: runc. */
const NO_GROUP = /unable to apply cgroup configuration: .*cannot allocate memory/;
/** runc needs less than this to start a process. */
const ENOUGH_NANO = 32n * 1024n ** 2n * 1_000_000_000n;

/**
 * Explains the message of a runtime that cannot start a process within a memory limit; undefined for other messages. `container`: the
 * container that was to be started; undefined for a sandbox, whose only limit is the sum of the limits if every container has one.
 */
export function tooLowLimit(pod: Pod, container: string | undefined, text: string): Finding | undefined {
  if (!TOO_LOW.test(text) && !NO_GROUP.test(text)) return undefined;
  const sum = effectiveLimits(pod).get('memory');
  const ofPod = sum && formatQuantity(sum);
  const limit = (container === undefined ? undefined : memoryLimit(pod, container)) ?? ofPod;
  if (limit === undefined) return undefined;
  if ((parseQuantity(limit)?.nano ?? 0n) >= ENOUGH_NANO) return undefined;
  const unit = limit.endsWith('m') ? ' (m means a thousandth of a byte, Mi means 1024 * 1024 bytes)' : '';
  const isSum = container === undefined && (pod.spec?.containers.length ?? 0) > 1;
  const whose = isSum ? `the memory limits of its containers, ${limit} in total,` : `its memory limit of ${limit}`;
  return {
    cause: `${whose} ${isSum ? 'are' : 'is'} too low for the container runtime to start a process`,
    actions: [{ description: `raise ${whose.replace(/,$/, '')}${unit}, and recreate the Pod` }],
  };
}
