/** `lifepod why`: explains the state of a Pod in one sentence, followed by the evidence and what to do. */
import { text } from 'node:stream/consumers';
import type { CoreV1Event, Node, Pod } from '../../api/generated/types.ts';
import { EVENTS, NODES, PODS } from '../../api/resources.ts';
import type { HttpClient } from '../../client/http-client.ts';
import { queryText, resourcePath } from '../../client/paths.ts';
import { isApiError } from '../../machinery/status.ts';
import { podContainers } from '../pod-containers.ts';
import { findLife, transitionsOf } from '../records.ts';
import { resolveTarget, type TargetOptions } from '../target.ts';
import { explain } from './explain.ts';

const LOG_LINES = 3;
const LOG_DEADLINE_MILLIS = 5000;

export async function why(given: string, options: TargetOptions): Promise<void> {
  const { client, namespace, hints } = await resolveTarget(options);
  const life = await findLife(client, namespace, given, hints);
  const { pod } = life;
  const [events, lastLines, node] =
    pod === undefined
      ? [[], {}, undefined]
      : await Promise.all([eventsOf(client, pod), lastLinesOf(client, pod), nodeOf(client, pod)]);
  const { sentence, evidence, advice } = explain({
    name: life.name,
    namespace: life.namespace,
    pod,
    events,
    lastLines,
    node,
    transitions: transitionsOf(life.records),
    now: Date.now(),
  });
  const lines = [sentence, ...evidence.map((line) => `  - ${line}`), `  > ${advice}`];
  process.stdout.write(`${lines.join('\n')}\n`);
}

async function eventsOf(client: HttpClient, { metadata }: Pod): Promise<CoreV1Event[]> {
  const fieldSelector = `involvedObject.kind=Pod,involvedObject.uid=${metadata.uid}`;
  const { items } = await client
    .resource<CoreV1Event>(EVENTS)
    .list({ ...(metadata.namespace && { namespace: metadata.namespace }), fieldSelector });
  return items;
}

/** Reads the Pod's node. Resolves with undefined if the Pod has no node, the Node does not exist, or the user may not read Nodes. */
async function nodeOf(client: HttpClient, { spec }: Pod): Promise<Node | undefined> {
  if (!spec?.nodeName) return undefined;
  return client
    .resource<Node>(NODES)
    .get(spec.nodeName)
    .catch((error: unknown) => {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Forbidden')) return undefined;
      throw error;
    });
}

/** Reads the last log lines of each container whose last ended run failed without a termination message. */
async function lastLinesOf(client: HttpClient, pod: Pod): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  await Promise.all(
    podContainers(pod).map(async ({ name, status }) => {
      const now = status?.state?.terminated;
      const last = now ?? status?.lastState?.terminated;
      if (last === undefined || last.exitCode === 0 || last.message) return;
      const previous = now === undefined && status?.state?.running !== undefined;
      const lines = await logOf(client, pod, { container: name, tailLines: LOG_LINES, ...(previous && { previous }) });
      found[name] = lines.split('\n').filter((line) => line.trim() !== '');
    }),
  );
  return found;
}

/** Reads the last lines of a container's log. Resolves with '' if the log cannot be read, for example because it was deleted. */
async function logOf(
  client: HttpClient,
  { metadata }: Pod,
  query: { container: string; tailLines: number; previous?: boolean },
): Promise<string> {
  const path = resourcePath(PODS, metadata.namespace, metadata.name, 'log') + queryText(query);
  try {
    return await text(await client.open(path, AbortSignal.timeout(LOG_DEADLINE_MILLIS)));
  } catch {
    return '';
  }
}
