/** Finds out when an engine of this machine has started, and whether a node has reported its state since. */

import { readyCondition } from '../../api/core/v1/node/ready.ts';
import type { Node } from '../../api/generated/types.ts';
import { engineProcesses, hasLockOpen, visibleOwner } from '../../engine/data-folder/engine-processes.ts';
import { readEngineRecord } from '../../engine/settings.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { realFolder } from '../../platform/files.ts';
import { processAgeMillis } from '../../platform/processes.ts';

export interface EngineStart {
  /** The name of the engine's node; undefined if the user may not read the data folder. */
  nodeName: string | undefined;
  startedAt: Millis;
  now: Millis;
  /** The endpoint of the machine's runtime; undefined if the engine uses a private containerd, or if this is not known. */
  runtimeEndpoint?: string | undefined;
}

/** A node that has not reported its state since its engine started: the time of its last report, and of the start. */
export interface UnreportedNode {
  reportedAt: Millis;
  startedAt: Millis;
}

/**
 * Returns when the engine of the folder has started; undefined if no engine runs there on this machine, or if this user cannot see its
 * process.
 */
export function engineStartOf(folder: string, now: Millis): EngineStart | undefined {
  const dataDir = realFolder(folder);
  const owner = visibleOwner(dataDir);
  const pid = owner ?? engineProcesses().find((each) => each.dataDir === dataDir)?.pid;
  if (pid === undefined) return undefined;
  try {
    // The PID in the lock of an engine in a container is that of an unrelated process.
    if (owner !== undefined && !hasLockOpen(dataDir, owner)) return undefined;
    return { nodeName: nodeNameIn(dataDir), startedAt: now - processAgeMillis(pid), now };
  } catch {
    // The process has ended.
    return undefined;
  }
}

function nodeNameIn(dataDir: string): string | undefined {
  try {
    return readEngineRecord(dataDir)?.nodeName;
  } catch {
    return undefined;
  }
}

/**
 * Until an engine has this age, its node may not have reported yet. Afterwards, the node lifecycle controller sets the state of a node that
 * has not reported to Unknown.
 */
export const START_MILLIS: Millis = 60_000;

/** The resolution of timestamps in the API. */
const RESOLUTION_MILLIS: Millis = 1000;

/**
 * Returns when the engine of the node has started. Returns undefined for the engine of another node, and for one older than START_MILLIS,
 * because the clock of an engine does not follow changes of the machine's clock: if the machine's clock was set forward since the start,
 * all reports seem to be from before the start.
 */
export function recentStart(node: Node, { nodeName, startedAt, now }: EngineStart): Millis | undefined {
  const isOther = nodeName !== undefined && nodeName !== node.metadata.name;
  return isOther || now - startedAt >= START_MILLIS ? undefined : startedAt;
}

/**
 * Returns when the node last reported its state if that was before the start of the engine; undefined if the node has reported since or
 * never, or if there is no recentStart(). A node agent reports the state of its node when it starts. Until then, all facts about the node
 * and its Pods are from the previous engine.
 */
export function unreportedNode(node: Node, engine: EngineStart): UnreportedNode | undefined {
  const startedAt = recentStart(node, engine);
  const reportedAt = parseTime(readyCondition(node)?.lastHeartbeatTime);
  if (startedAt === undefined || reportedAt === undefined || reportedAt + RESOLUTION_MILLIS > startedAt)
    return undefined;
  return { reportedAt, startedAt };
}
