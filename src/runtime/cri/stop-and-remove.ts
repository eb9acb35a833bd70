/**
 * Stops and removes containers and sandboxes. NotFound is success only if the runtime does not list the container or sandbox any more or,
 * for a stop of a container, reports the container as exited: NotFound may also refer to a part of the container or sandbox.
 *
 * containerd's CRI plugin has its own list of containers in addition to containerd's records. If a record was removed without CRI (`ctr
 * containers rm`), CRI's removal of the container and of its sandbox fails with NotFound, and both remain in the list until containerd
 * restarts. Therefore removeContainer() restores the missing record, so that CRI can remove the container.
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

/** CRI does not find the container's process, although CRI does not report the container as exited yet. */
class ExitUnrecordedError extends Error {}

/** If two stops of a container are under way, CRI kills the container at the end of the shorter grace period. */
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
    if (status === undefined || status.state === 'CONTAINER_EXITED') return;
    throw new ExitUnrecordedError(refusal('stop', 'container', id, error).message);
  });
}

export async function removeContainer(
  { connection, facts, observer, timers }: EndingParts,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  // The facts are deleted first, so that the event of the removal is ignored: the caller itself observes the Pod.
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
  // The exited containers are removed concurrently. RemovePodSandbox would remove them one after another.
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

/** Creates an empty record of the container, so that CRI can remove the container. `error`: why CRI could not remove the container. */
async function restoreRecord(connection: Connection, id: string, error: unknown, signal: AbortSignal): Promise<void> {
  // The content of the spec does not matter, because no task is created from it.
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
 * Calls `call`, which stops or removes a container or sandbox, and calls `notFound` if `call` fails with NotFound. If a container has just
 * exited on its own, CRI may not have recorded the exit yet: `call` may fail with `ttrpc: closed` or `context canceled: unknown`, because
 * containerd is closing the connection to the shim; `notFound` may fail with an ExitUnrecordedError; and a removal may be refused because
 * the container is recorded as running. In these cases, `call` is repeated, because no event reports that the exit has been recorded.
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
      const unrecorded =
        error instanceof ExitUnrecordedError || EXIT_UNRECORDED.test(callErrorOf(error)?.details ?? '');
      if (!unrecorded || tries === EXIT_RECORDED_TRIES) throw error;
      await delay(EXIT_RECORDED_RETRY_MILLIS, timers, signal);
    }
  }
}
