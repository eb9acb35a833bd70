/** CRI's queries for the sandboxes and containers of this instance. */
import { type Connection, hasCode } from './connection.ts';
import { isOurs, type Labels } from './labels.ts';
import type { ContainerStatus, ListedContainer, ListedSandbox, SandboxStatus } from './responses.ts';

const SERVICE = 'runtime.v1.RuntimeService';

export interface ObjectQueries {
  /** Sandboxes with all these labels; their states are CRI's. */
  listSandboxes(filter: { id?: string; labels?: Labels }, signal: AbortSignal): Promise<ListedSandbox[]>;
  /** Containers with all these labels; their states are CRI's. */
  listContainers(
    filter: { id?: string; sandboxId?: string; labels?: Labels },
    signal: AbortSignal,
  ): Promise<ListedContainer[]>;
  /** undefined if the sandbox does not exist. */
  sandboxStatus(id: string, signal: AbortSignal): Promise<SandboxStatus | undefined>;
  /** undefined if the container does not exist. */
  containerStatus(id: string, signal: AbortSignal): Promise<ContainerStatus | undefined>;
}

/** `scope`: labels that everything of this instance has. */
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
