/**
 * Recognizes a container whose start was interrupted ("cut"). When the engine dies, containerd cancels the call, kills the shim or the
 * process, and records a failed start (StartError, exit code 128). When containerd dies, the shim continues to create the task. If the task
 * is complete when the next containerd starts, containerd adopts or deletes the task; otherwise, the next start of the container fails
 * because the task exists. In all cases, the container itself has not failed. It is therefore observed as created, and is replaced when it
 * is created again with the same attempt. If the call was canceled while the process started, the process may have run for a moment: as
 * with the kubelet, a program may be started twice, also with the restartPolicy Never.
 */
import type { ContainerStatus } from './responses.ts';

const TASK = /^failed to (?:create|start) containerd task\b/;
const TASK_EXISTS = /^failed to create containerd task: task \S+: already exists$/;
/** The canceled part of the start may be any, such as the request for the ID of the process. */
const CANCELED = /: context canceled(?:: unknown)?$/;
const KILLED = /: signal: killed(?:: unknown)?$/;

/** Examines a message, which may be long and contain text of the Pod, in linear time. */
function isCut(message: string): boolean {
  if (TASK_EXISTS.test(message)) return true;
  // containerd kills the program that starts the shim. Other programs may be killed because of the memory limit of the Pod.
  const isShimKilled = message.includes('start failed: ') && KILLED.test(message);
  return TASK.test(message) && (CANCELED.test(message) || isShimKilled);
}

export const isStartCut = ({ state, startedAt, message }: ContainerStatus): boolean =>
  state === 'CONTAINER_EXITED' && startedAt === 0 && isCut(message);
