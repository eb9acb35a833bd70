/** Queries sandboxes and containers through CRI. The lists contain only objects of this lifepod instance. */
import { type Connection, hasCode } from './connection.ts';
import { isOurs, type Labels } from './labels.ts';
import type { ContainerStatus, ListedContainer, ListedSandbox, SandboxStatus } from './responses.ts';

const SERVICE = 'runtime.v1.RuntimeService';

export interface ObjectQueries {
  /** The sandboxes match all fields of the filter that are set. Their states are as CRI reports them, even if events are newer. */
  listSandboxes(filter: { id?: string; labels?: Labels }, signal: AbortSignal): Promise<ListedSandbox[]>;
  /** The containers match all fields of the filter that are set. Their states are as CRI reports them, even if events are newer. */
  listContainers(
    filter: { id?: string; sandboxId?: string; labels?: Labels },
    signal: AbortSignal,
  ): Promise<ListedContainer[]>;
  /** Resolves with undefined if the sandbox does not exist. */
  sandboxStatus(id: string, signal: AbortSignal): Promise<SandboxStatus | undefined>;
  /** Resolves with undefined if the container does not exist. */
  containerStatus(id: string, signal: AbortSignal): Promise<ContainerStatus | undefined>;
}

/** `scope`: the labels that all sandboxes and containers of this lifepod instance have. */
export function objectQueries(connection: Connection, scope: Labels): ObjectQueries {
  const statusOf = async <Status>(
    method: string,
    request: object,
    signal: AbortSignal,
  ): Promise<Status | undefined> => {
    try {
      return (await connection.unary<{ status: Status }>(`${SERVICE}/${method}`, request, signal)).status;
    } catch (error) {
      if (hasCode(error, 'NotFound')) return undefined;
      throw error;
    }
  };
  return {
    listSandboxes: async ({ id = '', labels }, signal) => {
      const filter = { id, labelSelector: { ...labels, ...scope } };
      const { items } = await connection.unary<{ items: ListedSandbox[] }>(
        `${SERVICE}/ListPodSandbox`,
        { filter },
        signal,
      );
      return items.filter((sandbox) => isOurs(sandbox.labels));
    },
    listContainers: async ({ id = '', sandboxId = '', labels }, signal) => {
      const filter = { id, podSandboxId: sandboxId, labelSelector: { ...labels, ...scope } };
      const { containers } = await connection.unary<{ containers: ListedContainer[] }>(
        `${SERVICE}/ListContainers`,
        { filter },
        signal,
      );
      return containers.filter((container) => isOurs(container.labels));
    },
    sandboxStatus: (id, signal) => statusOf('PodSandboxStatus', { podSandboxId: id }, signal),
    containerStatus: (id, signal) => statusOf('ContainerStatus', { containerId: id }, signal),
  };
}
