/**
 * Finds the exits that containerd reported before lifepod subscribed to its events, and that containerd's CRI plugin has not recorded yet.
 * No later event reports these exits, but a task shows its exit before CRI does.
 */
import { delay, hasCode } from '../connection.ts';
import { containerFacts, sandboxFacts } from '../facts.ts';
import { podUidOf } from '../labels.ts';
import { type Timestamp, timestampMillis } from '../responses.ts';
import type { EventSource } from './follow-events.ts';

const TASKS = 'containerd.services.tasks.v1.Tasks';
const POLL_MILLIS = 10;
/** How long to wait until CRI shows the exit of a deleted task. The wait is normally short: containerd only writes one file. */
const CRI_AGREES_WITHIN_MILLIS = 5_000;

interface Task {
  status: 'UNKNOWN' | 'CREATED' | 'RUNNING' | 'STOPPED' | 'PAUSED' | 'PAUSING';
  exitStatus: number;
  exitedAt: Timestamp | null;
}

/**
 * Records in `source.facts` which tasks of running containers and ready sandboxes have ended. If the task of a container has been deleted,
 * waits until CRI shows the exit, because only CRI still has the exit code.
 */
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

/** Resolves with undefined if CRI has deleted the task. CRI does so just before it records the exit. */
async function taskOf({ connection }: EventSource, id: string, signal: AbortSignal): Promise<Task | undefined> {
  try {
    const { process } = await connection.unary<{ process: Task }>(`${TASKS}/Get`, { containerId: id }, signal);
    return process;
  } catch (error) {
    if (hasCode(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** Resolves when CRI no longer reports the container as running, or after 5 s. Polls, because no containerd event reports this change. */
async function criAgrees({ observer, timers, log }: EventSource, id: string, signal: AbortSignal): Promise<void> {
  const deadline = timers.now() + CRI_AGREES_WITHIN_MILLIS;
  while ((await observer.containerStatus(id, signal))?.state === 'CONTAINER_RUNNING') {
    if (timers.now() > deadline) {
      log.warn('the runtime reports a container without a task as running', { container: id });
      return;
    }
    await delay(POLL_MILLIS, timers, signal);
  }
}
