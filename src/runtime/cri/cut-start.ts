/**
 * Recognizes a container that never had a process because its start was cut: containerd cancels the call and records a failed start
 * (StartError, exit code 128) when the engine dies. The outcome of a canceled call is no failure of the container. Therefore nothing
 * observes the container, and it is removed when its successor, which has the same attempt, is created.
 */
import type { ContainerStatus } from './responses.ts';

/** A later message, `failed to start containerd task`, does not match: the process may have run. */
const MESSAGE = /^failed to create containerd task: (?:failed to create shim task: )?context canceled(?:: unknown)?$/;

export const isStartCut = ({ state, startedAt, message }: ContainerStatus): boolean =>
  state === 'CONTAINER_EXITED' && startedAt === 0 && MESSAGE.test(message);
