import type { PodTransition } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { formatMicroTime, parseTime } from '../../machinery/time.ts';

/** Messages of containers and runtimes may be long. */
const MESSAGE_CHARACTERS = 4096;

export function toApi({ at, deadline, message, ...rest }: Transition): PodTransition {
  return {
    ...rest,
    at: formatMicroTime(at),
    ...(message === undefined ? {} : { message: message.slice(0, MESSAGE_CHARACTERS) }),
    ...(deadline === undefined ? {} : { deadline: formatMicroTime(deadline) }),
  };
}

export function fromApi({ at, deadline, ...rest }: PodTransition): Transition {
  return { ...rest, at: parseTime(at) ?? 0, deadline: parseTime(deadline) } as Transition;
}
