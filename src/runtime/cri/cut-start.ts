/**
 * Recognizes a container whose start was interrupted ("cut"). When the engine dies, containerd cancels the call, kills the shim or the
 * process, and records a failed start (StartError, exit code 128). When containerd dies, the shim continues to create the task. If the task
 * is complete when the next containerd starts, containerd adopts or deletes the task; otherwise, the next start of the container fails
 * because the task exists. In all cases, the container itself has not failed. It is therefore observed as created, and is replaced when it
 * is created again with the same attempt. If the call was canceled while the process started, the process may have run for a moment, and
 * its program is then started twice, also with the restartPolicy Never.
 */
import type { ContainerStatus } from './responses.ts';

const TASK = /^failed to (?:create|start) containerd task\b/;
const TASK_EXISTS = /^failed to create containerd task: task \S+: already exists$/;
/** The canceled part of the start may be any, such as the request for the ID of the process. */
const CANCELED = /: context canceled(?:: unknown)?$/;
const KILLED = /: signal: killed(?:: unknown)?$/;

/** Follows the name of the shim in messages. Other programs may be killed because of the memory limit of the Pod. */
const SHIM_START = 'start failed: ';

/** Returns whether a start with this status was canceled. The message may be long and contain text of the Pod. */
export const isStartCanceled = ({ state, startedAt, message }: ContainerStatus): boolean =>
  state === 'CONTAINER_EXITED' &&
  startedAt === 0 &&
  (TASK_EXISTS.test(message) || (TASK.test(message) && CANCELED.test(message)));

/**
 * Returns whether the start was canceled, or the program that starts the shim was killed, which the kernel may also have done because
 * memory ran out.
 */
export const isStartCut = (status: ContainerStatus): boolean => {
  const { state, startedAt, message } = status;
  if (isStartCanceled(status)) return true;
  const isFailed = state === 'CONTAINER_EXITED' && startedAt === 0 && TASK.test(message);
  return isFailed && message.includes(SHIM_START) && KILLED.test(message);
};
