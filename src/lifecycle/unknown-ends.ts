/**
 * The containers of a Pod that has been stopped of which no end is known: they never started, or the runtime has lost them.
 * Source: TerminatePod of v1.33's status manager (behaviour and wording).
 */
import type { ContainerStatus } from '../api/generated/types.ts';

interface Statuses {
  init: ContainerStatus[];
  apps: ContainerStatus[];
}

/** They count as failed, but for those whose turn had not come. */
export function withUnknownEnds({ init, apps }: Statuses): Statuses {
  const begun = Math.max(1, init.findLastIndex(hasBegun) + 1);
  return {
    init: init.map((status, index) => (index < begun ? ended(status) : status)),
    apps: isInitialized({ init, apps }) ? apps.map(ended) : apps,
  };
}

const ended = (status: ContainerStatus): ContainerStatus =>
  status.state?.terminated !== undefined
    ? status
    : {
        ...status,
        ready: false,
        started: false,
        state: {
          terminated: {
            exitCode: 137,
            reason: 'ContainerStatusUnknown',
            message: 'The container could not be located when the pod was terminated',
          },
        },
      };

const hasBegun = ({ state, lastState }: ContainerStatus): boolean =>
  state?.waiting === undefined || lastState?.terminated !== undefined;

function isInitialized({ init, apps }: Statuses): boolean {
  const last = init.at(-1);
  if (last === undefined || apps.some(hasBegun)) return true;
  return last.state?.terminated?.exitCode === 0 || last.lastState?.terminated?.exitCode === 0;
}
