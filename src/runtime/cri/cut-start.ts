/**
 * Recognizes a container whose start was interrupted ("cut"). When the engine dies, containerd cancels the call, kills the shim or the
 * process, and records a failed start (StartError, exit code 128). When containerd dies, the shim continues to create the task. If the task
 * is complete when the next containerd starts, containerd adopts or deletes the task; otherwise, the next start of the container fails
 * because the task exists. In all cases, the container itself has not failed. It is therefore observed as created, and is replaced when it
 * is created again with the same attempt. If the call was canceled while the process started, the process may have run for a moment: as
 * with the kubelet, a program may be started twice, also with the restartPolicy Never.
 */
import type { ContainerStatus } from './responses.ts';

/** The canceled part of the start may be any, such as the start of the shim or the request for the ID of its process. */
const CANCELED = /^failed to (?:create|start) containerd task\b.*: context canceled(?:: unknown)?$/s;
/** containerd kills the program that starts the shim. */
const SHIM_KILLED = /^failed to create containerd task: (?:.*: )?start failed: .*: signal: killed(?:: unknown)?$/s;
const TASK_EXISTS = /^failed to create containerd task: task \S+: already exists$/;
const MESSAGES = [CANCELED, SHIM_KILLED, TASK_EXISTS];

export const isStartCut = ({ state, startedAt, message }: ContainerStatus): boolean =>
  state === 'CONTAINER_EXITED' && startedAt === 0 && MESSAGES.some((each) => each.test(message));
