/**
 * Observations: one round of two list calls, then a status call only for what is not final yet.
 *
 * An exit that an event reported counts before CRI reports it too: containerd's CRI plugin learns of it from the same event, a little
 * later.
 */
import type { ShimExits } from '../containerd/shim-exits.ts';
import type { ContainerObservation, PodObservation, SandboxObservation } from '../runtime.ts';
import { type Connection, hasCode } from './connection.ts';
import { type ContainerFacts, containerFacts, type Facts, sandboxFacts } from './facts.ts';
import { isOurs, kindOf, type Labels, POD_UID_LABEL, podUidOf, splitImageName } from './labels.ts';
import {
  type ContainerStateName,
  type ContainerStatus,
  type ListedContainer,
  type ListedSandbox,
  millisOf,
  type SandboxStatus,
} from './responses.ts';

const SERVICE = 'runtime.v1.RuntimeService';

const STATES: Record<ContainerStateName, ContainerObservation['state']> = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
  CONTAINER_UNKNOWN: 'unknown',
};

export const OOM_KILLED = 'OOMKilled';

interface ContainerFilter {
  id?: string;
  sandboxId?: string;
  labels?: Labels;
}

export interface Observer {
  observeAll(signal: AbortSignal): Promise<Map<string, PodObservation>>;
  observe(podUid: string, signal: AbortSignal): Promise<PodObservation>;
  /** Sandboxes and containers with all these labels; their states are CRI's. */
  listSandboxes(filter: { id?: string; labels?: Labels }, signal: AbortSignal): Promise<ListedSandbox[]>;
  listContainers(filter: ContainerFilter, signal: AbortSignal): Promise<ListedContainer[]>;
  /** undefined if the container is gone. */
  containerStatus(id: string, signal: AbortSignal): Promise<ContainerStatus | undefined>;
}

/** `scope`: labels that everything of this instance has. `shimExits`: exits that containerd itself may not know. */
export function createObserver(
  connection: Connection,
  facts: Facts,
  scope: Labels,
  shimExits?: Pick<ShimExits, 'exitOf' | 'keepOnly'>,
): Observer {
  const listSandboxes: Observer['listSandboxes'] = async (filter, signal) =>
    (
      await connection.unary<{ items: ListedSandbox[] }>(
        `${SERVICE}/ListPodSandbox`,
        { filter: { id: filter.id ?? '', labelSelector: { ...filter.labels, ...scope } } },
        signal,
      )
    ).items.filter((sandbox) => isOurs(sandbox.labels));
  const listContainers: Observer['listContainers'] = async (filter, signal) =>
    (
      await connection.unary<{ containers: ListedContainer[] }>(
        `${SERVICE}/ListContainers`,
        {
          filter: {
            id: filter.id ?? '',
            podSandboxId: filter.sandboxId ?? '',
            labelSelector: { ...filter.labels, ...scope },
          },
        },
        signal,
      )
    ).containers.filter((container) => isOurs(container.labels));

  /** undefined if the object was removed after it was listed. */
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
  const containerStatus = (id: string, signal: AbortSignal): Promise<ContainerStatus | undefined> =>
    statusOf('ContainerStatus', { containerId: id }, signal);

  const observeSandbox = async (
    listed: ListedSandbox,
    signal: AbortSignal,
  ): Promise<SandboxObservation | undefined> => {
    const known = sandboxFacts(facts, listed.id, podUidOf(listed.labels));
    let ready = listed.state === 'SANDBOX_READY';
    if (ready && known.ips === undefined) {
      const status = await statusOf<SandboxStatus>('PodSandboxStatus', { podSandboxId: listed.id }, signal);
      if (status === undefined) return undefined;
      ready = status.state === 'SANDBOX_READY';
      if (ready) known.ips = ipsOf(status);
    }
    ready &&= known.exited !== true;
    return {
      id: listed.id,
      podUid: known.podUid,
      namespace: listed.metadata.namespace,
      name: listed.metadata.name,
      attempt: listed.metadata.attempt,
      ready,
      createdAt: millisOf(listed.createdAt) ?? 0,
      ips: ready ? (known.ips ?? []) : [],
    };
  };

  const observeContainer = async (
    listed: ListedContainer,
    signal: AbortSignal,
  ): Promise<ContainerObservation | undefined> => {
    const known = containerFacts(facts, listed.id, podUidOf(listed.labels));
    if (known.final !== undefined) return known.final;
    if (isSettled(listed, known)) return fromFacts(listed, known);
    const status = await containerStatus(listed.id, signal);
    if (status === undefined) {
      facts.containers.delete(listed.id);
      return undefined;
    }
    learn(known, status);
    if (status.state !== 'CONTAINER_EXITED') return fromFacts({ ...listed, state: status.state }, known);
    if (isEndUnknown(status)) known.exit ??= shimExits?.exitOf(listed.id);
    known.final =
      isEndUnknown(status) && known.exit !== undefined ? fromFacts(listed, known) : fromExit(listed, known, status);
    return known.final;
  };

  const assemble = async (
    sandboxes: ListedSandbox[],
    containers: ListedContainer[],
    signal: AbortSignal,
  ): Promise<PodObservation> => {
    const [sandboxResults, containerResults] = await Promise.all([
      Promise.all(sandboxes.map((sandbox) => observeSandbox(sandbox, signal))),
      Promise.all(containers.map((container) => observeContainer(container, signal))),
    ]);
    return {
      sandboxes: sandboxResults.filter((sandbox) => sandbox !== undefined),
      containers: containerResults.filter((container) => container !== undefined),
    };
  };

  const list = (labels: Labels, signal: AbortSignal): Promise<[ListedSandbox[], ListedContainer[]]> =>
    Promise.all([listSandboxes({ labels }, signal), listContainers({ labels }, signal)]);

  return {
    listSandboxes,
    listContainers,
    containerStatus,
    observe: async (podUid, signal) => {
      const [sandboxes, containers] = await list({ [POD_UID_LABEL]: podUid }, signal);
      return assemble(sandboxes, containers, signal);
    },
    observeAll: async (signal) => {
      const [sandboxes, containers] = await list({}, signal);
      prune(facts.sandboxes, sandboxes);
      prune(facts.containers, containers);
      shimExits?.keepOnly(new Set(containers.map(({ id }) => id)));
      const all = await assemble(sandboxes, containers, signal);
      return groupByPod(all);
    },
  };
}

/** A status call would add nothing: CRI has not started the container, or its start is known and there is no exit to read. */
const isSettled = (listed: ListedContainer, known: ContainerFacts): boolean => {
  const exited = known.exit !== undefined;
  if (listed.state === 'CONTAINER_CREATED') return !exited;
  return listed.state === 'CONTAINER_RUNNING' && known.startedAt !== undefined && known.imageRef !== undefined;
};

/** What containerd reports for a container that ended while containerd was down, if its shim can no longer be queried. */
const isEndUnknown = (status: ContainerStatus): boolean => status.exitCode === 255 && status.reason === 'Unknown';

function learn(known: ContainerFacts, status: ContainerStatus): void {
  known.startedAt = millisOf(status.startedAt) ?? known.startedAt;
  if (status.imageRef !== '') known.imageRef = status.imageRef;
}

function common(listed: ListedContainer, known: ContainerFacts) {
  const { image, annotations } = splitImageName(listed.annotations);
  return {
    id: listed.id,
    sandboxId: listed.podSandboxId,
    podUid: known.podUid,
    name: listed.metadata.name,
    kind: kindOf(listed.labels) ?? 'app',
    attempt: listed.metadata.attempt,
    createdAt: millisOf(listed.createdAt) ?? 0,
    ...(known.startedAt === undefined ? {} : { startedAt: known.startedAt }),
    image: image ?? listed.image?.image ?? '',
    imageId: known.imageRef ?? listed.imageRef,
    annotations,
  } as const;
}

function fromFacts(listed: ListedContainer, known: ContainerFacts): ContainerObservation {
  if (known.exit === undefined) return { ...common(listed, known), state: STATES[listed.state] };
  const { exitCode, finishedAt } = known.exit;
  const reason = known.outOfMemory === true ? OOM_KILLED : exitCode === 0 ? 'Completed' : 'Error';
  return { ...common(listed, known), state: 'exited', exitCode, finishedAt, reason };
}

function fromExit(listed: ListedContainer, known: ContainerFacts, status: ContainerStatus): ContainerObservation {
  const finishedAt = millisOf(status.finishedAt) ?? known.exit?.finishedAt;
  const reason = known.outOfMemory === true ? OOM_KILLED : status.reason;
  return {
    ...common(listed, known),
    state: 'exited',
    exitCode: status.exitCode,
    ...(finishedAt === undefined ? {} : { finishedAt }),
    ...(reason === '' ? {} : { reason }),
    ...(status.message === '' ? {} : { message: status.message }),
  };
}

function ipsOf(status: SandboxStatus): string[] {
  if (status.network === null || status.network.ip === '') return [];
  return [status.network.ip, ...status.network.additionalIps.map(({ ip }) => ip)];
}

function prune(known: Map<string, unknown>, listed: { id: string }[]): void {
  const ids = new Set(listed.map(({ id }) => id));
  for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
}

function groupByPod(all: PodObservation): Map<string, PodObservation> {
  const pods = new Map<string, PodObservation>();
  const pod = (uid: string): PodObservation => {
    let observation = pods.get(uid);
    if (observation === undefined) {
      observation = { sandboxes: [], containers: [] };
      pods.set(uid, observation);
    }
    return observation;
  };
  for (const sandbox of all.sandboxes) pod(sandbox.podUid).sandboxes.push(sandbox);
  for (const container of all.containers) pod(container.podUid).containers.push(container);
  return pods;
}
