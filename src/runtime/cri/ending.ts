/**
 * Stops and removals. NotFound is success where the container or sandbox itself is gone, which the runtime's list tells: the code
 * may as well be said of something in it.
 *
 * containerd's CRI plugin has a list of its own beside containerd's records of containers. Where a record was removed behind its
 * back (`ctr containers rm`), the removal of the container and of its sandbox fail with NotFound, and both stay in the list until
 * containerd begins anew. Such a record is put back here, so that CRI can remove it.
 */
import type { Timers } from '../../platform/platform.ts';
import { CALL_TIMEOUT_MILLIS, type Connection, callErrorOf, delay, hasCode } from './connection.ts';
import type { Facts } from './facts.ts';
import type { Observer } from './observer.ts';

export interface EndingParts {
  connection: Connection;
  facts: Facts;
  observer: Observer;
  timers: Timers;
}

const SERVICE = 'runtime.v1.RuntimeService';
const CONTAINERS = 'containerd.services.containers.v1.Containers';
const EXIT_UNRECORDED = /ttrpc: closed|context canceled: unknown$|container is still running, to stop first/;
const EXIT_RECORDED_RETRY_MILLIS = 10;
const EXIT_RECORDED_TRIES = 100;

/** CRI lets two stops of one container wait side by side; the shorter grace ends first and kills. */
export function stopContainer(
  { connection, observer, timers }: EndingParts,
  id: string,
  graceSeconds: number,
  signal: AbortSignal,
): Promise<void> {
  const request = { containerId: id, timeout: graceSeconds };
  const millis = graceSeconds * 1000 + CALL_TIMEOUT_MILLIS;
  const stop = () => connection.unary(`${SERVICE}/StopContainer`, request, signal, millis);
  return endOnce(stop, timers, signal, async (error) => {
    const status = await observer.containerStatus(id, signal);
    if (status !== undefined && status.state !== 'CONTAINER_EXITED') throw refusal('stop', 'container', id, error);
  });
}

export async function removeContainer(
  { connection, facts, observer, timers }: EndingParts,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  // First, so that the event of it is nobody's: who asks looks by himself.
  facts.containers.delete(id);
  const remove = () => connection.unary(`${SERVICE}/RemoveContainer`, { containerId: id }, signal);
  await endOnce(remove, timers, signal, async (error) => {
    if ((await observer.listContainers({ id }, signal)).length === 0) return;
    await restoreRecord(connection, id, error, signal);
    await unlessNotFound(remove, (again) => Promise.reject(refusal('remove', 'container', id, again)));
  });
}

export function stopSandbox(
  { connection, observer, timers }: EndingParts,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  const stop = () => connection.unary(`${SERVICE}/StopPodSandbox`, { podSandboxId: id }, signal);
  return endOnce(stop, timers, signal, async (error) => {
    if ((await observer.listSandboxes({ id }, signal)).length > 0) throw refusal('stop', 'sandbox', id, error);
  });
}

export async function removeSandbox(parts: EndingParts, id: string, signal: AbortSignal): Promise<void> {
  const { connection, facts, observer, timers } = parts;
  facts.sandboxes.delete(id);
  // All at once: the runtime would remove them one after the other, as it does with what is not known here.
  const ended = [...facts.containers].filter(([, { final }]) => final?.sandboxId === id);
  await Promise.all(ended.map(([container]) => removeContainer(parts, container, signal)));
  const remove = () => connection.unary(`${SERVICE}/RemovePodSandbox`, { podSandboxId: id }, signal);
  await endOnce(remove, timers, signal, async () => {
    if ((await observer.listSandboxes({ id }, signal)).length === 0) return;
    for (const container of await observer.listContainers({ sandboxId: id }, signal))
      await removeContainer(parts, container.id, signal);
    await unlessNotFound(remove, (again) => Promise.reject(refusal('remove', 'sandbox', id, again)));
  });
}

/** An empty record, of which CRI wants no more than that it is there. */
async function restoreRecord(connection: Connection, id: string, error: unknown, signal: AbortSignal): Promise<void> {
  // Any spec will do: no task is made of it.
  const spec = { typeUrl: 'types.containerd.io/opencontainers/runtime-spec/1/Spec', value: Buffer.from('{}') };
  const container = { id, runtime: { name: 'io.containerd.runc.v2' }, spec };
  try {
    await connection.unary(`${CONTAINERS}/Create`, { container }, signal);
  } catch (failure) {
    if (hasCode(failure, 'AlreadyExists')) return;
    throw hasCode(failure, 'Unimplemented') ? refusal('remove', 'container', id, error) : failure;
  }
}

const refusal = (what: 'stop' | 'remove', kind: 'container' | 'sandbox', id: string, error: unknown): Error =>
  new Error(`the container runtime lists the ${kind} ${id}, but cannot ${what} it: ${callErrorOf(error)?.details}`);

async function unlessNotFound(
  call: () => Promise<unknown>,
  notFound: (error: unknown) => Promise<void>,
): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (!hasCode(error, 'NotFound')) throw error;
    await notFound(error);
  }
}

/**
 * A call that ends or removes what may just have ended by itself. Between a container's exit and CRI's record of it, containerd
 * asks the shim to kill what it does not have any more, while it closes its connection to that shim: the call fails with
 * `ttrpc: closed` or `context canceled: unknown`. Or it refuses to remove what still runs by its record. No event tells of the
 * record.
 */
async function endOnce(
  call: () => Promise<unknown>,
  timers: Timers,
  signal: AbortSignal,
  notFound: (error: unknown) => Promise<void>,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await unlessNotFound(call, notFound);
    } catch (error) {
      const unrecorded = EXIT_UNRECORDED.test(callErrorOf(error)?.details ?? '');
      if (!unrecorded || tries === EXIT_RECORDED_TRIES) throw error;
      await delay(EXIT_RECORDED_RETRY_MILLIS, timers, signal);
    }
  }
}
