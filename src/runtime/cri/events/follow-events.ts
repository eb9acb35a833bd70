/**
 * Converts the runtime's events to reports of changed Pods. The events come from containerd's own events service or, for other runtimes
 * (CRI-O), from CRI's event stream. containerd 1.7 and later also has CRI's stream, but sends each event to only one of its clients.
 *
 * Invariants:
 *  1. At the start and after each cut of the stream, `resync` is sent when no further event can be missed and CRI responds.
 *  2. An exit that an event of containerd reports is recorded in the facts before its Pod is reported as changed, so that the following
 *     observation shows the exit.
 */
import { atMost } from '../../../platform/at-most.ts';
import type { Log, Timers } from '../../../platform/platform.ts';
import { CRI_NAMESPACE } from '../../containerd/paths.ts';
import type { ShimExits } from '../../containerd/shim-exits.ts';
import type { RuntimeEvent } from '../../runtime.ts';
import { type Connection, delay, runtimeInitialized } from '../connection.ts';
import { type ContainerFacts, containerFacts, type Facts, logEndOf, sandboxFacts } from '../facts.ts';
import { isOurs, type Labels, podUidOf } from '../labels.ts';
import type { Observer } from '../observer.ts';
import { type SandboxStatus, type Timestamp, timestampMillis } from '../responses.ts';
import { catchUpExits } from './catch-up.ts';

const CRI = 'runtime.v1.RuntimeService';
const CONTAINERD = 'containerd.services.events.v1';

/** The topic of an event that lifepod publishes and waits for, because containerd does not report when a subscription has begun. */
const MARKER_TOPIC = '/lifepod/subscribed';
const MARKER_RETRY_MILLIS = 20;
const FIRST_RECONNECT_MILLIS = 20;
const LONGEST_RECONNECT_MILLIS = 2000;
const SIGKILL_EXIT_CODE = 137;
const OOM_REPORT_MILLIS = 1000;

interface Envelope {
  timestamp: Timestamp | null;
  namespace: string;
  topic: string;
  event: { typeUrl: string; value: Buffer } | null;
}
interface TaskExit {
  containerId: string;
  id: string;
  exitStatus: number;
  exitedAt: Timestamp | null;
}

export interface EventSource {
  connection: Connection;
  facts: Facts;
  observer: Observer;
  scope: Labels;
  log: Log;
  timers: Timers;
  /** The field runtimeName in CRI's response to Version. */
  runtimeName: string;
  /** Watches the shims while the stream is cut. Absent: exits while containerd is down may remain unknown. */
  shimExits?: ShimExits | undefined;
}

type Listener = (event: RuntimeEvent) => void;

/** When the stream ends, calls `cut`, and opens the stream again. */
export async function followEvents(
  source: EventSource,
  listener: Listener,
  cut: () => void,
  signal: AbortSignal,
): Promise<void> {
  const follow = source.runtimeName === 'containerd' ? followContainerd : followCri;
  let wait = FIRST_RECONNECT_MILLIS;
  const resync = (): void => {
    wait = FIRST_RECONNECT_MILLIS;
    source.shimExits?.unwatch();
    listener({ type: 'resync' });
  };
  while (!signal.aborted) {
    try {
      await follow(source, listener, resync, signal);
    } catch (error) {
      if (signal.aborted) return;
      cut();
      void source.shimExits?.watch();
      source.log.warn('the stream of runtime events ended; connecting again', { error: String(error) });
      await delay(wait, source.timers, signal).catch(() => undefined);
      wait = Math.min(wait * 2, LONGEST_RECONNECT_MILLIS);
    }
  }
}

/** If one of `stream` and `begin` rejects, aborts the other and throws the error. */
async function whileBeginning(
  stream: (signal: AbortSignal) => Promise<never>,
  begin: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  try {
    await Promise.race([stream(either), begin(either).then(() => new Promise<never>(() => undefined))]);
  } finally {
    failed.abort(new Error('the stream ended'));
  }
}

async function followCri(source: EventSource, listener: Listener, resync: () => void, signal: AbortSignal) {
  const { connection, timers } = source;
  const onEvent = (event: { containerId: string; podSandboxStatus: SandboxStatus | null }): void => {
    const sandbox = event.podSandboxStatus;
    if (sandbox === null || !isOurs(sandbox.labels) || !hasLabels(sandbox.labels, source.scope)) return;
    listener({ type: 'changed', podUid: sandbox.metadata.uid });
  };
  await whileBeginning(
    (either) => connection.stream(`${CRI}/GetContainerEvents`, {}, onEvent, either),
    async (either) => {
      // CRI does not report when the stream has begun. Once CRI has responded to two later calls, the stream has begun or failed.
      await runtimeInitialized(connection, timers, either);
      await runtimeInitialized(connection, timers, either);
      resync();
    },
    signal,
  );
}

async function followContainerd(source: EventSource, listener: Listener, resync: () => void, signal: AbortSignal) {
  const { connection, timers, log } = source;
  const marker = `${process.pid}-${performance.now()}`;
  let subscribed = (): void => undefined;
  const began = new Promise<void>((resolve) => {
    subscribed = resolve;
  });
  const onEnvelope = (envelope: Envelope): void => {
    const value = envelope.event?.value ?? Buffer.alloc(0);
    if (envelope.topic === MARKER_TOPIC) {
      if (connection.decode<{ id: string }>(`${CONTAINERD}.ContainerDelete`, value).id === marker) subscribed();
      return;
    }
    const changed = onTaskEvent(source, envelope, value, signal);
    void changed.then(
      (podUid) => {
        if (podUid !== undefined && !signal.aborted) listener({ type: 'changed', podUid });
      },
      (error) => {
        // The query for the Pod fails if the runtime is unreachable. The stream then ends as well, and the next resync covers this event.
        log.debug('no Pod found for a runtime event', { error: String(error) });
      },
    );
  };
  await whileBeginning(
    (either) =>
      connection.stream(
        `${CONTAINERD}.Events/Subscribe`,
        {
          filters: [
            `namespace==${CRI_NAMESPACE},topic~="^/tasks/(start|exit|oom|delete)$"`,
            `namespace==${CRI_NAMESPACE},topic=="/containers/delete"`,
            `namespace==${CRI_NAMESPACE},topic=="${MARKER_TOPIC}"`,
          ],
        },
        onEnvelope,
        either,
      ),
    async (either) => {
      await publishUntilSeen(source, marker, began, either);
      await runtimeInitialized(connection, timers, either);
      await catchUpExits(source, either);
      resync();
    },
    signal,
  );
}

/** One marker is not enough: containerd discards a marker that arrives before the subscription. */
async function publishUntilSeen(
  { connection, timers }: EventSource,
  marker: string,
  began: Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const value = connection.encode(`${CONTAINERD}.ContainerDelete`, { id: marker });
  const request = { topic: MARKER_TOPIC, event: { typeUrl: 'containerd.events.ContainerDelete', value } };
  let seen = false;
  const beganSeen = began.then(() => {
    seen = true;
  });
  while (!seen) {
    await connection.unaryWhenReachable(`${CONTAINERD}.Events/Publish`, request, signal);
    await Promise.race([beganSeen, delay(MARKER_RETRY_MILLIS, timers, signal)]);
  }
}

/**
 * Resolves when it is known whether memory had run out: when the task is deleted, at the latest after OOM_REPORT_MILLIS. The report is an
 * event of its own, which may follow the event of the exit, but precedes the deletion of the task.
 */
async function oomReported(known: ContainerFacts, timers: Timers, signal: AbortSignal): Promise<void> {
  if (known.outOfMemory !== true) await atMost(logEndOf(known).promise, OOM_REPORT_MILLIS, timers, signal);
}

/** Records the content of the event in the facts. Returns the UID of the Pod that must be observed; undefined if there is none. */
async function onTaskEvent(
  source: EventSource,
  envelope: Envelope,
  value: Buffer,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { connection, facts } = source;
  switch (envelope.topic) {
    case '/tasks/start': {
      const { containerId } = connection.decode<{ containerId: string }>(`${CONTAINERD}.TaskStart`, value);
      const known = facts.containers.get(containerId);
      if (known === undefined) return undefined;
      known.startEventAt ??= timestampMillis(envelope.timestamp);
      return facts.starting.has(containerId) ? undefined : known.podUid;
    }
    case '/tasks/exit': {
      const exit = connection.decode<TaskExit>(`${CONTAINERD}.TaskExit`, value);
      if (exit.id !== exit.containerId) return undefined;
      const owner = await ownerOf(source, exit.containerId, signal);
      if (owner?.kind === 'sandbox') owner.known.exited = true;
      if (owner?.kind === 'container') {
        if (exit.exitStatus === SIGKILL_EXIT_CODE) await oomReported(owner.known, source.timers, signal);
        owner.known.exit = {
          exitCode: exit.exitStatus,
          finishedAt: timestampMillis(exit.exitedAt) ?? source.timers.now(),
        };
      }
      return owner?.known.podUid;
    }
    case '/tasks/oom': {
      const { containerId } = connection.decode<{ containerId: string }>(`${CONTAINERD}.TaskOOM`, value);
      const owner = await ownerOf(source, containerId, signal);
      if (owner?.kind !== 'container') return undefined;
      owner.known.outOfMemory = true;
      owner.known.final = undefined;
      return owner.known.podUid;
    }
    case '/tasks/delete': {
      const { containerId } = connection.decode<{ containerId: string }>(`${CONTAINERD}.TaskDelete`, value);
      const known = facts.containers.get(containerId);
      if (known !== undefined) logEndOf(known).resolve();
      return undefined;
    }
    case '/containers/delete': {
      const { id } = connection.decode<{ id: string }>(`${CONTAINERD}.ContainerDelete`, value);
      const known = facts.containers.get(id) ?? facts.sandboxes.get(id);
      facts.containers.get(id)?.logEnd?.resolve();
      facts.containers.delete(id);
      facts.sandboxes.delete(id);
      return known?.podUid;
    }
    default:
      return undefined;
  }
}

type Owner =
  | { kind: 'container'; known: ReturnType<typeof containerFacts> }
  | { kind: 'sandbox'; known: ReturnType<typeof sandboxFacts> };

/** Resolves with undefined if the object does not exist or this lifepod instance did not create it. */
async function ownerOf({ facts, observer }: EventSource, id: string, signal: AbortSignal): Promise<Owner | undefined> {
  const container = facts.containers.get(id);
  if (container !== undefined) return { kind: 'container', known: container };
  const sandbox = facts.sandboxes.get(id);
  if (sandbox !== undefined) return { kind: 'sandbox', known: sandbox };
  const [containers, sandboxes] = await Promise.all([
    observer.listContainers({ id }, signal),
    observer.listSandboxes({ id }, signal),
  ]);
  const [listedContainer, listedSandbox] = [containers[0], sandboxes[0]];
  if (listedContainer !== undefined) {
    return { kind: 'container', known: containerFacts(facts, id, podUidOf(listedContainer.labels)) };
  }
  if (listedSandbox !== undefined) {
    return { kind: 'sandbox', known: sandboxFacts(facts, id, podUidOf(listedSandbox.labels)) };
  }
  return undefined;
}

const hasLabels = (labels: Labels, wanted: Labels): boolean =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value);
