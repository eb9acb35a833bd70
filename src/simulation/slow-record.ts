import type { Transition } from '../lifecycle/types.ts';
import type { WorkerPorts } from '../node/pod/worker/ports.ts';
import type { Timers } from '../platform/platform.ts';

/**
 * A record whose writes take `millis`; undefined: no time. Steps that are reported during a write are written by the next write. Steps that
 * are not written when the agent dies are lost.
 */
export function slowRecord(
  timers: Timers,
  millis: number | undefined,
  write: (transitions: readonly Transition[]) => void,
): Pick<WorkerPorts, 'record' | 'recorded'> {
  let waiting: Transition[] = [];
  let writing: PromiseWithResolvers<void> | undefined;
  const begin = (): void => {
    const steps = waiting;
    waiting = [];
    timers.at(timers.now() + (millis ?? 0), () => {
      write(steps);
      if (waiting.length > 0) return begin();
      writing?.resolve();
      writing = undefined;
    });
  };
  return {
    record(_pod, transitions) {
      if (millis === undefined) return write(transitions);
      waiting.push(...transitions);
      if (writing !== undefined) return;
      writing = Promise.withResolvers();
      begin();
    },
    recorded: () => writing?.promise,
  };
}
