/** Reads the Nodes and the version of an API server, for `lifepod status`. */
import { text } from 'node:stream/consumers';
import type { Node } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import type { HttpClient } from '../../client/http-client.ts';
import { isApiError } from '../../machinery/status.ts';
import { parseTime } from '../../machinery/time.ts';
import type { StatusReport, Trouble } from './report.ts';

const DEADLINE_MILLIS = 30_000;

export interface NodeReading {
  items: Node[];
  shown: StatusReport['nodes'];
  troubles: Trouble[];
  unread: string[];
}

/** Resolves with a sentence instead of Nodes if the user may not read them. */
export async function readNodes(client: Client): Promise<NodeReading> {
  try {
    const { items } = await client.resource<Node>(NODES).list();
    return { items, shown: items.map(shownNode), troubles: items.flatMap(nodeTroubles), unread: [] };
  } catch (error) {
    if (!isApiError(error, 'Forbidden')) throw error;
    return { items: [], shown: [], troubles: [], unread: [`Nodes: ${error.message}`] };
  }
}

/** Resolves with the version that the server reports, such as v1.33.0; undefined if it reports none to this user. */
export async function readVersion(client: HttpClient): Promise<string | undefined> {
  try {
    const body = await text(await client.open('/version', AbortSignal.timeout(DEADLINE_MILLIS)));
    return (JSON.parse(body) as { gitVersion?: string }).gitVersion;
  } catch (error) {
    if (isApiError(error, 'ServiceUnavailable')) throw error;
    return undefined;
  }
}

const shownNode = ({ metadata, status }: Node): StatusReport['nodes'][number] => ({
  name: metadata.name,
  ready: status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true,
  runtime: status?.nodeInfo?.containerRuntimeVersion || 'no runtime',
});

export function nodeTroubles({ metadata, status }: Node): Trouble[] {
  return (status?.conditions ?? [])
    .filter(({ type, status: value }) => (type === 'Ready' ? value !== 'True' : value === 'True'))
    .map(({ type, reason, message, lastTransitionTime }) => ({
      kind: 'Node',
      name: metadata.name,
      reason: reason || type,
      since: parseTime(lastTransitionTime),
      message: `node ${metadata.name}: ${type}: ${reason}: ${message}`,
    }));
}
