/**
 * Exits that containerd told of before lifepod listened, and that its CRI plugin has not noted yet: nothing would tell of
 * them any more. Asked for once after each subscription, of containerd's tasks, which know first.
 */
import { delay, hasCode } from './connection.ts';
import type { EventSource } from './events.ts';
import { containerFacts, sandboxFacts } from './facts.ts';
import { podUidOf } from './labels.ts';
import { type Timestamp, timestampMillis } from './responses.ts';

const TASKS = 'containerd.services.tasks.v1.Tasks';
const LOOK_AGAIN_MILLIS = 10;
/** Between the end of a task and CRI's note of it containerd writes one file. */
const CRI_AGREES_WITHIN_MILLIS = 5_000;

interface Task {
  status: 'UNKNOWN' | 'CREATED' | 'RUNNING' | 'STOPPED' | 'PAUSED' | 'PAUSING';
  exitStatus: number;
  exitedAt: Timestamp | null;
}

/** Notes the exits in the facts. */
export async function catchUpExits(source: EventSource, signal: AbortSignal): Promise<void> {
  const { observer, facts, timers } = source;
  const [containers, sandboxes] = await Promise.all([
    observer.listContainers({}, signal),
    observer.listSandboxes({}, signal),
  ]);
  const running = containers.filter(({ state }) => state === 'CONTAINER_RUNNING');
  const ready = sandboxes.filter(({ state }) => state === 'SANDBOX_READY');
  await Promise.all([
    ...running.map(async ({ id, labels }) => {
      const task = await taskOf(source, id, signal);
      if (task === undefined) return criAgrees(source, id, signal);
      if (task.status !== 'STOPPED') return;
      const finishedAt = timestampMillis(task.exitedAt) ?? timers.now();
      containerFacts(facts, id, podUidOf(labels)).exit = { exitCode: task.exitStatus, finishedAt };
    }),
    ...ready.map(async ({ id, labels }) => {
      const task = await taskOf(source, id, signal);
      if (task === undefined || task.status === 'STOPPED') sandboxFacts(facts, id, podUidOf(labels)).exited = true;
    }),
  ]);
}

/** undefined where it was deleted: its exit is known to CRI, which is about to note it. */
async function taskOf({ connection }: EventSource, id: string, signal: AbortSignal): Promise<Task | undefined> {
  try {
    const { process } = await connection.unary<{ process: Task }>(`${TASKS}/Get`, { containerId: id }, signal);
    return process;
  } catch (error) {
    if (hasCode(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** Resolves when CRI no longer calls the container running; it says nothing when that comes: hence the repeated question. */
async function criAgrees({ observer, timers, log }: EventSource, id: string, signal: AbortSignal): Promise<void> {
  const deadline = timers.now() + CRI_AGREES_WITHIN_MILLIS;
  while ((await observer.containerStatus(id, signal))?.state === 'CONTAINER_RUNNING') {
    if (timers.now() > deadline) {
      log.warn('the runtime calls a container running that has no task', { container: id });
      return;
    }
    await delay(LOOK_AGAIN_MILLIS, timers, signal);
  }
}
