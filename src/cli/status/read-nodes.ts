/** Reads the Nodes and the version of an API server, for `lifepod status`. */

import { text } from 'node:stream/consumers';
import { isNodeReady, readyCondition } from '../../api/core/v1/node/ready.ts';
import type { Node, NodeCondition } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import { humanDuration } from '../../api/table.ts';
import type { Client } from '../../client/client.ts';
import type { HttpClient } from '../../client/http-client.ts';
import { runtimeCommands, startRuntimeHint } from '../../engine/options/runtime-endpoint.ts';
import { isApiError } from '../../machinery/status.ts';
import { parseTime } from '../../machinery/time.ts';
import { shortCallError } from '../../runtime/error-text.ts';
import { type EngineStart, unreportedNode } from '../service/engine-start.ts';
import { downRuntime } from '../why/node-troubles.ts';
import type { StatusReport, Trouble } from './report.ts';

const DEADLINE_MILLIS = 30_000;

export interface NodeReading {
  items: Node[];
  shown: StatusReport['nodes'];
  troubles: Trouble[];
  unread: string[];
}

/**
 * Reads the Nodes and finds their troubles. If the user may not read Nodes, `unread` has a sentence about this. `engine`: the engine of
 * this machine.
 */
export async function readNodes(client: Client, engine?: EngineStart): Promise<NodeReading> {
  try {
    const { items } = await client.resource<Node>(NODES).list();
    const troubles = items.flatMap((node) => nodeTroubles(node, engine));
    return { items, shown: items.map(shownNode), troubles, unread: [] };
  } catch (error) {
    if (!isApiError(error, 'Forbidden')) throw error;
    return { items: [], shown: [], troubles: [], unread: [`Nodes: ${error.message}`] };
  }
}

/** Resolves with undefined if the server reports no version to this user. Rejects if it does not answer. */
export async function readVersion(client: HttpClient): Promise<string | undefined> {
  try {
    const body = await text(await client.open('/version', AbortSignal.timeout(DEADLINE_MILLIS)));
    return (JSON.parse(body) as { gitVersion?: string }).gitVersion;
  } catch (error) {
    if (isApiError(error, 'ServiceUnavailable')) throw error;
    return undefined;
  }
}

const shownNode = (node: Node): StatusReport['nodes'][number] => ({
  name: node.metadata.name,
  ready: isNodeReady(node),
  runtime: node.status?.nodeInfo?.containerRuntimeVersion || 'no runtime',
});

/**
 * Returns the troubles that the conditions of the Node report. Until the engine of this machine has reported the state of its node, the
 * conditions are those of a former engine, and the only trouble is that the node is starting.
 */
export function nodeTroubles(node: Node, engine?: EngineStart): Trouble[] {
  const { metadata, status } = node;
  // A node whose state is Unknown has not reported for too long to be merely starting.
  const isUnknown = readyCondition(node)?.status === 'Unknown';
  if (engine !== undefined && !isUnknown && unreportedNode(node, engine) !== undefined) {
    const { startedAt, now } = engine;
    const time = humanDuration(Math.max(0, now - startedAt));
    const message = `node ${metadata.name} is starting: it has not reported its state since lifepod started ${time} ago`;
    return [{ kind: 'Node', name: metadata.name, reason: 'Starting', since: startedAt, message }];
  }
  return (status?.conditions ?? [])
    .filter(({ type, status: value }) => (type === 'Ready' ? value !== 'True' : value === 'True'))
    .map((condition) => ({
      kind: 'Node',
      name: metadata.name,
      reason: condition.reason || condition.type,
      since: parseTime(condition.lastTransitionTime),
      message: `node ${metadata.name}${conditionText(condition)}${startHint(node, condition, engine)}`,
    }));
}

const conditionText = ({ type, status, reason, message = '' }: NodeCondition): string =>
  type === 'Ready'
    ? ` ${status === 'Unknown' ? 'does not answer' : 'is not ready'}: ${shortCallError(message) || reason}`
    : `: ${type}: ${reason}: ${message}`;

/** Matches the message about a runtime that hangs. Source: src/node/status/runtime-state.ts. */
const HANGS = /it has not answered for \d/;

/** Returns how to start a runtime of this machine that does not answer; empty if it runs but hangs. */
function startHint(node: Node, { type, message = '' }: NodeCondition, engine: EngineStart | undefined): string {
  if (type !== 'Ready' || downRuntime(node) === undefined || HANGS.test(message)) return '';
  const ofEngine = engine?.nodeName === node.metadata.name ? (engine.runtimeEndpoint ?? '') : '';
  const named = `${message} ${ofEngine}`;
  return runtimeCommands(named) === undefined && ofEngine === '' ? '' : `; ${startRuntimeHint(named)}`;
}
