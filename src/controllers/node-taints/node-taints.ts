/**
 * Taints nodes by their state: under pressure, not ready or cordoned they get no Pod that does not tolerate it; one that
 * stays not ready drives its Pods away (by taint-eviction, which honours their tolerations).
 *
 * Reads: nodes. Writes: nodes (spec.taints: those of STATE_KEYS alone).
 * Invariant: nobody is driven away by a runtime that comes back, or by an engine that starts: not ready counts for that after
 * 30 s, which is how long a runtime may be silent before upstream's node says so, and not before this start or the machine's last waking. A node that
 * shuts down ends its Pods itself, within the time that it has for them, and they stay as objects.
 * Source: "Taint Nodes by Condition", "Taint based Evictions" of the v1.33 documentation.
 */
import type { Node, Taint } from '../../api/generated/types.ts';
import { createInformer } from '../../client/informer.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import { formatTime, type Millis, parseTime } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer } from '../../platform/platform.ts';
import { EVICTING_KEYS, SHUTTING_DOWN, STATE_KEYS, stateKeys } from '../../scheduling/node-taints.ts';
import { type ControllerOptions, SLEPT_MILLIS } from '../controller.ts';
import { NODES } from '../resources.ts';

const DRIVES_AWAY_AFTER_MILLIS = 30_000;

export async function startNodeTaints({ client, timers, log, signal }: ControllerOptions): Promise<void> {
  const nodeClient = client.resource<Node>(NODES);
  /** The start, or when the machine last woke. */
  let countsFrom = timers.now();
  const queue = createWorkQueue({ name: 'node-taints', process: taint, log, timers, signal });
  const look = ({ metadata }: Node): void => void queue.add(metadata.name);
  /** For when a node has been not ready for long enough, by its name. */
  const waiting = new Map<string, Timer>();
  onAbort(signal, () => {
    for (const timer of waiting.values()) timer.cancel();
  });
  const nodes = createInformer(nodeClient, { log, timers, signal }, { added: look, updated: look });
  await nodes.synced;

  async function taint(name: string): Promise<void> {
    waiting.get(name)?.cancel();
    waiting.delete(name);
    const node = nodes.get(undefined, name);
    if (node === undefined) return;
    const now = timers.now();
    const since = notReadySince(node);
    const drivesAwayAt = since === undefined ? undefined : Math.max(since, countsFrom) + DRIVES_AWAY_AFTER_MILLIS;
    if (drivesAwayAt !== undefined && drivesAwayAt > now)
      waiting.set(
        name,
        timers.at(drivesAwayAt, () => {
          if (timers.now() - drivesAwayAt >= SLEPT_MILLIS) countsFrom = timers.now();
          queue.add(name);
        }),
      );
    const wanted = wantedTaints(node, { now, drivesAway: drivesAwayAt !== undefined && drivesAwayAt <= now });
    if (wanted === undefined) return;
    log.info('node-taints: the state of a node has changed', { node: name, taints: wanted.map(({ key }) => key) });
    try {
      await nodeClient.update({ ...node, spec: { ...node.spec, taints: wanted } });
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }
}

/** undefined: it is ready, has never said, or shuts down. */
function notReadySince({ status }: Node): Millis | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.status === 'True' || ready.message?.includes(SHUTTING_DOWN)) return undefined;
  return parseTime(ready.lastTransitionTime) ?? 0;
}

/** undefined: they are as they should be. `drivesAway`: a node that is not ready has been so for long enough. */
export function wantedTaints(node: Node, at: { now: Millis; drivesAway: boolean }): Taint[] | undefined {
  const present = node.spec?.taints ?? [];
  const keys = stateKeys(node);
  const due: Taint[] = [
    ...keys.map((key) => ({ key, effect: 'NoSchedule' })),
    ...keys.filter((key) => at.drivesAway && EVICTING_KEYS.includes(key)).map((key) => ({ key, effect: 'NoExecute' })),
  ];
  const isOurs = ({ key, effect }: Taint): boolean =>
    (effect === 'NoSchedule' && STATE_KEYS.includes(key)) || (effect === 'NoExecute' && EVICTING_KEYS.includes(key));
  const isDue = (taint: Taint): boolean => due.some(({ key, effect }) => key === taint.key && effect === taint.effect);
  const staying = present.filter((taint) => !isOurs(taint) || isDue(taint));
  const added = due.filter(({ key, effect }) => !staying.some((each) => each.key === key && each.effect === effect));
  if (added.length === 0 && staying.length === present.length) return undefined;
  return [...staying, ...added.map((taint) => ({ ...taint, timeAdded: formatTime(at.now) }))];
}
