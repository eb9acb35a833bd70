/**
 * Finds out whether a restart of the machine has ended the containers of a Pod. The status shows them as running until the node has
 * looked for them.
 */
import type { ContainerStatus, CoreV1Event, Pod } from '../../../api/generated/types.ts';
import { EVENTS } from '../../../api/resources.ts';
import type { Client } from '../../../client/client.ts';
import { isApiError } from '../../../machinery/status.ts';
import { type Millis, parseTime } from '../../../machinery/time.ts';
import { podContainers } from '../../pod-containers.ts';
import { isEndUnknown } from '../run-end.ts';
import { lastTime, type Subject } from '../subject.ts';

/** Whether rebootOf() can change the explanation of the Pod. */
export const mayBeCut = (pod: Pod): boolean =>
  podContainers(pod).some(({ status }) => {
    const ended = status?.state?.terminated ?? status?.lastState?.terminated;
    return status?.state?.running !== undefined || (ended !== undefined && isEndUnknown(ended));
  });

/**
 * Resolves with the time of the node's newest Event about a restart of its machine; undefined if there is none, or if the user may not read
 * Events.
 */
export async function rebootOf(client: Client, node: string): Promise<Millis | undefined> {
  // Events about objects without a namespace, such as Nodes, are in the namespace default.
  const namespace = 'default';
  const fieldSelector = `involvedObject.kind=Node,involvedObject.name=${node},reason=Rebooted`;
  try {
    const { items } = await client.resource<CoreV1Event>(EVENTS).list({ namespace, fieldSelector });
    return items.length === 0 ? undefined : Math.max(...items.map(lastTime));
  } catch (error) {
    if (isApiError(error, 'Forbidden')) return undefined;
    throw error;
  }
}

/**
 * Returns whether the status still shows the container as running, although a restart of the machine after the container's start has ended
 * its processes.
 */
export function isGhost({ rebootedAt }: Pick<Subject, 'rebootedAt'>, { state }: ContainerStatus): boolean {
  const startedAt = parseTime(state?.running?.startedAt);
  return startedAt !== undefined && rebootedAt !== undefined && startedAt < rebootedAt;
}

/** Returns whether the container runs; false for a container for which isGhost() returns true. */
export const isRunning = (subject: Pick<Subject, 'rebootedAt'>, status: ContainerStatus): boolean =>
  status.state?.running !== undefined && !isGhost(subject, status);
