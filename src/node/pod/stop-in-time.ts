/**
 * Stops containers at a deadline with a precision of milliseconds. CRI counts grace periods in whole seconds, so a second, concurrent stop
 * with grace period 0 kills the container at the deadline.
 *
 * Invariant: a container has at least 2 s between the stop signal and the kill. Exception: with a deadline that is not after the
 * container's creation, the core requests a kill without a stop signal.
 */
import { MINIMUM_GRACE_MILLIS } from '../../lifecycle/hooks-and-stops.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import type { ContainerRuntime } from '../../runtime/runtime.ts';

export type StopInTime = (podUid: string, id: string, deadline: Millis, signal: AbortSignal) => Promise<void>;

export function createStopInTime(
  runtime: Pick<ContainerRuntime, 'stopContainer' | 'observe'>,
  timers: Timers,
): StopInTime {
  /** The time of the first stop signal, by container ID. */
  const signalledAt = new Map<string, Millis>();

  async function isKill(podUid: string, id: string, deadline: Millis, signal: AbortSignal): Promise<boolean> {
    const { containers } = await runtime.observe(podUid, signal);
    const container = containers.find((each) => each.id === id);
    return container === undefined || deadline <= container.createdAt;
  }

  return async (podUid, id, deadline, signal) => {
    const isLate = deadline <= timers.now() && !signalledAt.has(id);
    if (isLate && (await isKill(podUid, id, deadline, signal))) return runtime.stopContainer(id, 0, signal);
    const first = signalledAt.get(id) ?? timers.now();
    signalledAt.set(id, first);
    const killAt = Math.max(deadline, first + MINIMUM_GRACE_MILLIS);
    const graceSeconds = Math.max(0, Math.ceil((killAt - timers.now()) / 1000));
    // If this kill fails, the stop with the grace period kills the container within the next second.
    const kill = timers.at(killAt, () => void runtime.stopContainer(id, 0, signal).catch(() => undefined));
    try {
      await runtime.stopContainer(id, graceSeconds, signal);
      signalledAt.delete(id);
    } catch (error) {
      // A failed call may not have sent the signal, so the 2 s begin again. An aborted call counts as having sent the signal.
      if (!signal.aborted) signalledAt.delete(id);
      throw error;
    } finally {
      kill.cancel();
    }
  };
}
