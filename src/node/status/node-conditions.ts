/** The functions are pure. Source: pkg/kubelet/nodestatus of v1.33 (reasons and messages). */
import type { NodeCondition } from '../../api/generated/types.ts';
import { formatTime } from '../../machinery/time.ts';
import type { PressureCondition } from '../eviction/thresholds.ts';

interface Cause {
  reason: string;
  message: string;
}

const PRESSURES: readonly { type: PressureCondition; yes: Cause; no: Cause }[] = [
  {
    type: 'MemoryPressure',
    yes: { reason: 'KubeletHasInsufficientMemory', message: 'kubelet has insufficient memory available' },
    no: { reason: 'KubeletHasSufficientMemory', message: 'kubelet has sufficient memory available' },
  },
  {
    type: 'DiskPressure',
    yes: { reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure' },
    no: { reason: 'KubeletHasNoDiskPressure', message: 'kubelet has no disk pressure' },
  },
  {
    type: 'PIDPressure',
    yes: { reason: 'KubeletHasInsufficientPID', message: 'kubelet has insufficient PID available' },
    no: { reason: 'KubeletHasSufficientPID', message: 'kubelet has sufficient PID available' },
  },
];

/**
 * `problems`: the reasons why the node is not ready. `before`: the current conditions; the transition time of a condition whose status is
 * unchanged is kept.
 */
export function nodeConditions(
  pressures: ReadonlySet<PressureCondition>,
  problems: readonly string[],
  before: readonly NodeCondition[],
  now: number,
): NodeCondition[] {
  const condition = (type: string, isTrue: boolean, { reason, message }: Cause): NodeCondition => {
    const status = isTrue ? 'True' : 'False';
    const old = before.find((other) => other.type === type);
    const lastHeartbeatTime = formatTime(now);
    const lastTransitionTime = (old?.status === status ? old.lastTransitionTime : undefined) ?? lastHeartbeatTime;
    return { type, status, lastHeartbeatTime, lastTransitionTime, reason, message };
  };
  return [
    ...PRESSURES.map(({ type, yes, no }) =>
      pressures.has(type) ? condition(type, true, yes) : condition(type, false, no),
    ),
    condition('Ready', problems.length === 0, readiness(problems)),
  ];
}

const readiness = (problems: readonly string[]): Cause =>
  problems.length === 0
    ? { reason: 'KubeletReady', message: 'kubelet is posting ready status' }
    : {
        reason: 'KubeletNotReady',
        message: problems.length === 1 ? (problems[0] as string) : `[${problems.join(', ')}]`,
      };
