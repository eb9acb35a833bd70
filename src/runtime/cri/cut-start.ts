/**
 * Recognizes a container that never had a process because its start was interrupted ("cut"). When the engine dies, containerd cancels the
 * call and records a failed start (StartError, exit code 128). When containerd dies, the shim continues to create the task. If the task is
 * complete when the next containerd starts, containerd adopts or deletes the task; otherwise, the next start of the container fails because
 * the task exists. In both cases, the container itself has not failed. It is therefore observed as created, and is replaced when it is
 * created again with the same attempt.
 */
import type { ContainerStatus } from './responses.ts';

/** The messages of starts that were cut. Does not match `failed to start containerd task`, because the process may then have run. */
const MESSAGE =
  /^failed to create containerd task: (?:(?:failed to create shim task: )?context canceled(?:: unknown)?|task \S+: already exists)$/;

export const isStartCut = ({ state, startedAt, message }: ContainerStatus): boolean =>
  state === 'CONTAINER_EXITED' && startedAt === 0 && MESSAGE.test(message);
