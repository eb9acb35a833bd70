/** Ends the Pods for `lifepod down`: deletes them gracefully through the API, waits for their containers, and removes what remains. */

import { isNodeReady } from '../api/core/v1/node/ready.ts';
import { isMirrorPod } from '../api/core/v1/pod/mirror.ts';
import type { Node, Pod } from '../api/generated/types.ts';
import { NODES, PODS } from '../api/resources.ts';
import type { Client } from '../client/client.ts';
import { createInformer } from '../client/informer.ts';
import { runtimeCommands, startRuntimeHint } from '../engine/options/runtime-endpoint.ts';
import { type KubeObject, uidOf } from '../machinery/meta.ts';
import { type Millis, parseTime } from '../machinery/time.ts';
import type { Platform, Timers } from '../platform/platform.ts';
import { type ContainerRuntime, hasRunning } from '../runtime/runtime.ts';
import { deletePatiently } from './delete-patiently.ts';
import { endOfEntry, undoneText } from './why/entries.ts';
import { downRuntime } from './why/node-troubles.ts';

const nameOf = (pod: Pod): string => `${pod.metadata.namespace}/${pod.metadata.name}`;

/** Returns whether only finalizers keep the Pod. Its grace period is 0 after its node has ended it, or a client has force-deleted it. */
export const onlyFinalizersLeft = (pod: KubeObject): boolean =>
  pod.metadata.deletionGracePeriodSeconds === 0 && (pod.metadata.finalizers ?? []).length > 0;

const MOST_NAMED = 3;

/** The default grace period in seconds. If the wait may be longer, a line says how to end the Pods sooner. */
const LONG_SECONDS = 30;
const SOONER = ': to end them sooner, press Ctrl+C, and type the command again with --now';

/** Returns the end of a sentence about the wait for Pods whose own grace periods are at most `longest` seconds; empty if this is short. */
export const soonerText = (longest: number): string => (longest > LONG_SECONDS ? SOONER : '');

/** Returns for how many seconds a Pod that is being deleted may still run; undefined for other Pods. */
function secondsLeft({ metadata, status }: Pod, now: Millis): number | undefined {
  const deadline = parseTime(status?.termination?.deadline ?? metadata.deletionTimestamp);
  if (metadata.deletionTimestamp === undefined || deadline === undefined) return undefined;
  return Math.max(0, Math.ceil((deadline - now) / 1000));
}

/**
 * Returns how many seconds the Pod gets to end, and a line about that. `wanted`: the grace period of its deletion; undefined: its own. A
 * deletion never moves the deadline of an earlier one later. `since`: deletions that began at this time or later are not earlier ones.
 */
export function beginOf(
  pod: Pod,
  wanted: number | undefined,
  now: Millis,
  since: Millis,
): { grace: number; line: string } {
  const left = hasBegunSince(pod, since) ? pod.metadata.deletionGracePeriodSeconds : secondsLeft(pod, now);
  const own = left ?? pod.spec?.terminationGracePeriodSeconds ?? 30;
  const grace = Math.min(wanted ?? own, left ?? Number.POSITIVE_INFINITY);
  if (grace !== left || hasBegunSince(pod, since)) return { grace, line: `ending ${nameOf(pod)} (grace ${grace} s)` };
  // The node moves a deadline that has passed in an outage.
  return { grace, line: `${nameOf(pod)} is already ending${left === 0 ? '' : ` (${left} s left)`}` };
}

/** Returns whether the Pod is being deleted, and its deletion began at `since` or later. The API has only whole seconds. */
function hasBegunSince({ metadata }: Pod, since: Millis): boolean {
  const deadline = parseTime(metadata.deletionTimestamp);
  const grace = (metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  return deadline !== undefined && deadline - grace > since - 1000;
}

const remaining = (pods: readonly { name: string }[]): string =>
  pods.length === 0 || pods.length > MOST_NAMED ? '' : `; waiting for ${pods.map(({ name }) => name).join(', ')}`;

/**
 * Returns a line about how long the Pods may take to end; none for a single Pod whose grace period is short or was set by the user.
 * `isOwn`: the grace periods are the Pods' own.
 */
function waitLines(graces: readonly number[], isOwn: boolean): string[] {
  const longest = Math.max(...graces);
  const sooner = isOwn ? soonerText(longest) : '';
  if (graces.length > 1)
    return [`waiting for ${graces.length} Pods, whose longest grace period is ${longest} s${sooner}`];
  return sooner === '' ? [] : [`waiting up to ${longest} s${sooner}`];
}

export interface EndOptions {
  gracePeriodSeconds?: number | undefined;
  reports?: EndReports;
}

/**
 * Deletes all Pods, also those that are created meanwhile. Resolves when no Pods exist except those that only finalizers keep. Waits until
 * the engine has ended static Pods, which cannot be deleted through the API. Deletes Pods of nodes other than `nodeName` with a grace
 * period of 0, because this engine runs none of their containers. `gracePeriodSeconds` replaces the grace periods of other Pods. `reports`:
 * those of earlier steps. Rejects if the API refuses a delete with an error other than NotFound or 5xx, or if `signal` aborts.
 */
export async function endAllPods(
  client: Client,
  platform: Platform,
  nodeName: string,
  say: (line: string) => void,
  signal: AbortSignal,
  { gracePeriodSeconds, reports = createEndReports(nodeName, say, platform.timers.now()) }: EndOptions = {},
): Promise<void> {
  const { since, begun, reportEntries, reportNode } = reports;
  const pods = client.resource<Pod>(PODS);
  const ended = Promise.withResolvers<void>();
  const watching = new AbortController();
  const stop = (): void => ended.reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  const open = new Map<string, { name: string; grace: number }>();
  const begin = platform.timers.now();
  const deleting = { timers: platform.timers, signal: watching.signal };
  let synced = false;

  const settle = (pod: Pod, how: string): void => {
    if (!open.delete(uidOf(pod))) return;
    const seconds = ((platform.timers.now() - begin) / 1000).toFixed(1);
    say(`${how} ${nameOf(pod)} after ${seconds} s${synced ? remaining([...open.values()]) : ''}`);
    if (synced && open.size === 0) ended.resolve();
  };
  const added = (pod: Pod): void => {
    reportEntries(pod);
    if (onlyFinalizersLeft(pod)) return;
    const { grace, line } = beginOf(pod, gracePeriodSeconds, platform.timers.now(), since);
    // A Pod that is not scheduled yet may still be bound to this node.
    const node = pod.spec?.nodeName || nodeName;
    const isHere = node === nodeName;
    open.set(uidOf(pod), { name: nameOf(pod), grace: isHere ? grace : 0 });
    if (!isHere) say(`removing ${nameOf(pod)}, which is bound to the node ${node}; this engine runs ${nodeName}`);
    else if (!begun.has(uidOf(pod))) say(line);
    if (isHere && isMirrorPod(pod)) return;
    const options = { gracePeriodSeconds: isHere ? gracePeriodSeconds : 0 };
    void deletePatiently(pods, pod.metadata, options, { ...deleting, failed: failedDelete(pod, say) }).catch(
      ended.reject,
    );
  };
  const informer = createInformer(
    pods,
    { ...platform, signal: watching.signal },
    {
      added,
      updated: (pod) => {
        reportEntries(pod);
        if (onlyFinalizersLeft(pod)) settle(pod, `ended, but finalizers keep the object:`);
      },
      deleted: (pod) => {
        reportEntries(pod);
        settle(pod, 'ended');
      },
    },
  );
  try {
    await Promise.race([informer.synced, ended.promise]);
    synced = true;
    const graces = [...open.values()].map(({ grace }) => grace);
    const isWaitSaid = [...open.keys()].every((uid) => begun.has(uid));
    for (const line of isWaitSaid ? [] : waitLines(graces, gracePeriodSeconds === undefined)) say(line);
    if (open.size === 0) return;
    followNodes(client, { ...platform, signal: watching.signal }, reportNode);
    await ended.promise;
  } finally {
    watching.abort();
    signal.removeEventListener('abort', stop);
  }
}

const failedDelete =
  (pod: Pod, say: (line: string) => void) =>
  ({ message }: Error): void =>
    say(`  ${nameOf(pod)} cannot be deleted yet: ${message}; retrying`);

/** Reports what happens while Pods end. The steps of one command share it, so that each report is made once. */
export interface EndReports {
  /** When the command began. Pods that are deleted from then on are deleted for it: the engine also ends static Pods. */
  since: Millis;
  /** The UIDs of the Pods of which a step has said that they end. */
  begun: Set<string>;
  /** Must be called with each version of a Pod: see createEntryReports(). */
  reportEntries(pod: Pod): void;
  /** Must be called with each version of a Node: see createRuntimeReports(). */
  reportNode(node: Node): void;
}

export const createEndReports = (nodeName: string, say: (line: string) => void, since: Millis): EndReports => ({
  since,
  begun: new Set(),
  reportEntries: createEntryReports(say),
  reportNode: createRuntimeReports(nodeName, say),
});

export const followNodes = (
  client: Client,
  options: Platform & { signal: AbortSignal },
  look: (node: Node) => void,
): void => void createInformer(client.resource<Node>(NODES), options, { added: look, updated: look });

/**
 * Returns a function that calls `say` when the node reports that its container runtime does not answer, so that no Pod can end, and when it
 * is ready again.
 */
function createRuntimeReports(nodeName: string, say: (line: string) => void): (node: Node) => void {
  let isDown = false;
  return (node) => {
    if (node.metadata.name !== nodeName) return;
    const down = downRuntime(node);
    // lifepod restarts its private containerd, so there are no commands for it.
    const isMachine = down !== undefined && runtimeCommands(down.message) !== undefined;
    if (down !== undefined && !isDown)
      say(`waiting: ${down.message}${isMachine ? `; ${startRuntimeHint(down.message)}` : ''}`);
    // A node that is not ready for another reason does not report whether its runtime answers.
    const isReady = isNodeReady(node);
    if (isReady && isDown) say('the container runtime answers again');
    isDown = down !== undefined || (isDown && !isReady);
  };
}

/**
 * Returns a function that calls `say` when the next defer container of the Pod has its turn, and once for each that has ended without doing
 * its work since the function has known the Pod.
 */
function createEntryReports(say: (line: string) => void): (pod: Pod) => void {
  const turns = new Map<string, string | undefined>();
  const ended = new Set<string>();
  return (pod) => {
    const uid = uidOf(pod);
    const isNew = !turns.has(uid);
    for (const status of pod.status?.deferContainerStatuses ?? []) {
      const end = endOfEntry(pod, status, []);
      const key = `${uid}/${status.name}`;
      if (end === undefined || ended.has(key)) continue;
      ended.add(key);
      const text = isNew ? undefined : undoneText(end);
      if (text !== undefined) say(`  ${nameOf(pod)}: ${text}`);
    }
    const turn = turnOf(pod);
    if (!isNew && turn !== undefined && turn !== turns.get(uid)) say(`  ${nameOf(pod)}: ${turn}`);
    turns.set(uid, turn);
  };
}

function turnOf({ status }: Pod): string | undefined {
  const entries = status?.termination === undefined ? [] : (status.deferContainerStatuses ?? []);
  const index = entries.findIndex(({ state }) => state?.terminated === undefined);
  return entries[index] && `defer container ${entries[index].name} (${index + 1} of ${entries.length})`;
}

const SILENCE_MILLIS = 1000;

/**
 * Resolves when no sandbox is ready and no container runs: the containers of a force-deleted Pod may outlive the Pod in the API. Calls
 * `say` with a line if the wait takes more than a second.
 */
export async function runtimeIdle(
  runtime: ContainerRuntime,
  timers: Timers,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let left: number | undefined;
  const timer = timers.at(timers.now() + SILENCE_MILLIS, () => {
    const pods = left === 1 ? 'a Pod that does' : `${left} Pods that do`;
    say(
      left === undefined ? 'waiting for the container runtime' : `waiting for containers of ${pods} not exist any more`,
    );
  });
  const closing = new AbortController();
  const ends = AbortSignal.any([signal, closing.signal]);
  let changed = Promise.withResolvers<void>();
  const events = runtime.events(() => changed.resolve(), ends);
  const over = events.then(() => signal.throwIfAborted());
  over.catch(() => undefined);
  try {
    for (;;) {
      left = [...(await runtime.observeAll(ends)).values()].filter(hasRunning).length;
      if (left === 0) return;
      await Promise.race([changed.promise, over]);
      changed = Promise.withResolvers<void>();
    }
  } finally {
    timer.cancel();
    closing.abort();
  }
}

/** Stops and removes all sandboxes, with their containers. Resolves with the number of Pods that had a sandbox or container. */
export async function removeRest(runtime: ContainerRuntime, signal: AbortSignal): Promise<number> {
  const rest = [...(await runtime.observeAll(signal)).values()];
  for (const { id } of rest.flatMap(({ sandboxes }) => sandboxes)) {
    await runtime.stopSandbox(id, signal);
    await runtime.removeSandbox(id, signal);
  }
  return rest.length;
}
