/**
 * Observes the sandboxes and containers of Pods. An observation makes two concurrent list calls, then a status call for each object whose
 * details are needed and not in the facts yet.
 *
 * An observation shows an exit that an event has reported even if CRI still reports the container as running: containerd's CRI plugin
 * processes the same event a little later.
 */
import type { ShimExits } from '../containerd/shim-exits.ts';
import type { ContainerObservation, PodObservation, SandboxObservation } from '../runtime.ts';
import type { Connection } from './connection.ts';
import { isStartCut } from './cut-start.ts';
import { type ContainerFacts, containerFacts, type Facts, sandboxFacts } from './facts.ts';
import { kindOf, type Labels, POD_UID_LABEL, podUidOf, splitImageName } from './labels.ts';
import { type ObjectQueries, objectQueries } from './object-queries.ts';
import {
  type ContainerStateName,
  type ContainerStatus,
  type ListedContainer,
  type ListedSandbox,
  millisOf,
  type SandboxStatus,
} from './responses.ts';

const STATES: Record<ContainerStateName, ContainerObservation['state']> = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
  CONTAINER_UNKNOWN: 'unknown',
};

export const OOM_KILLED = 'OOMKilled';

export interface Observer extends ObjectQueries {
  observeAll(signal: AbortSignal): Promise<Map<string, PodObservation>>;
  observe(podUid: string, signal: AbortSignal): Promise<PodObservation>;
}

/**
 * `scope`: the labels that all sandboxes and containers of this lifepod instance have. `shimExits`: exits that containerd itself may not
 * know.
 */
export function createObserver(
  connection: Connection,
  facts: Facts,
  scope: Labels,
  shimExits?: Pick<ShimExits, 'exitOf' | 'keepOnly'>,
): Observer {
  const queries = objectQueries(connection, scope);
  const view: View = { queries, facts, shimExits };
  return {
    ...queries,
    observe: async (podUid, signal) =>
      assemble(view, ...(await list(queries, { [POD_UID_LABEL]: podUid }, signal)), signal),
    observeAll: async (signal) => {
      const [sandboxes, containers] = await list(queries, {}, signal);
      prune(facts.sandboxes, sandboxes);
      prune(facts.containers, containers);
      shimExits?.keepOnly(new Set(containers.map(({ id }) => id)));
      return groupByPod(await assemble(view, sandboxes, containers, signal));
    },
  };
}

interface View {
  queries: ObjectQueries;
  facts: Facts;
  shimExits: Pick<ShimExits, 'exitOf'> | undefined;
}

function list(
  { listSandboxes, listContainers }: ObjectQueries,
  labels: Labels,
  signal: AbortSignal,
): Promise<[ListedSandbox[], ListedContainer[]]> {
  return Promise.all([listSandboxes({ labels }, signal), listContainers({ labels }, signal)]);
}

async function assemble(
  view: View,
  sandboxes: ListedSandbox[],
  containers: ListedContainer[],
  signal: AbortSignal,
): Promise<PodObservation> {
  const [sandboxResults, containerResults] = await Promise.all([
    Promise.all(sandboxes.map((sandbox) => observeSandbox(view, sandbox, signal))),
    Promise.all(containers.map((container) => observeContainer(view, container, signal))),
  ]);
  return {
    sandboxes: sandboxResults.filter((sandbox) => sandbox !== undefined),
    containers: containerResults.filter((container) => container !== undefined),
  };
}

/** Resolves with undefined if a status call shows that the sandbox was removed after it was listed. */
async function observeSandbox(
  { queries, facts }: View,
  listed: ListedSandbox,
  signal: AbortSignal,
): Promise<SandboxObservation | undefined> {
  const known = sandboxFacts(facts, listed.id, podUidOf(listed.labels));
  let ready = listed.state === 'SANDBOX_READY';
  if (ready && known.ips === undefined) {
    const status = await queries.sandboxStatus(listed.id, signal);
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
}

/** Resolves with undefined if a status call shows that the container was removed after it was listed. */
async function observeContainer(
  { queries, facts, shimExits }: View,
  listed: ListedContainer,
  signal: AbortSignal,
): Promise<ContainerObservation | undefined> {
  const known = containerFacts(facts, listed.id, podUidOf(listed.labels));
  if (known.final !== undefined) return known.final;
  if (isSettled(listed, known)) return unlessStarting(fromFacts(listed, known));
  const status = await queries.containerStatus(listed.id, signal);
  if (status === undefined) {
    facts.containers.delete(listed.id);
    return undefined;
  }
  learn(known, status);
  if (isStartCut(status)) {
    known.final = fromFacts({ ...listed, state: 'CONTAINER_CREATED' }, known);
    return known.final;
  }
  if (status.state !== 'CONTAINER_EXITED') return unlessStarting(fromFacts({ ...listed, state: status.state }, known));
  if (isEndUnknown(status)) known.exit ??= shimExits?.exitOf(listed.id);
  known.final =
    isEndUnknown(status) && known.exit !== undefined ? fromFacts(listed, known) : fromExit(listed, known, status);
  return known.final;
}

const isSettled = (listed: ListedContainer, known: ContainerFacts): boolean => {
  const exited = known.exit !== undefined;
  if (listed.state === 'CONTAINER_CREATED') return !exited;
  return listed.state === 'CONTAINER_RUNNING' && known.startedAt !== undefined && known.imageRef !== undefined;
};

/** Omits the time of the start event while CRI has not recorded the start yet. */
const unlessStarting = (seen: ContainerObservation): ContainerObservation =>
  seen.state === 'created' ? { ...seen, startedAt: undefined } : seen;

/** The container ended while containerd was down, and containerd could not query the shim later. */
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
    startedAt: known.startedAt ?? known.startEventAt,
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
    finishedAt,
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
