/** The log subresource of Pods. Source of the messages: v1.33 pod strategy. */

import type { Pod } from '../../api/generated/types.ts';
import { timeProblem } from '../../api/scalars.ts';
import { type FieldError, forbidden, invalid, notSupported } from '../../machinery/field-error.ts';
import { badRequest, invalidObject } from '../../machinery/status.ts';

import type { LogOptions } from '../../ports/node-connection.ts';
import { messagesOf } from '../streaming/message-output.ts';
import { BASE64_LOG, logProtocol, offeredProtocols } from '../streaming/web-socket.ts';
import type { ServerContext } from './context.ts';
import { type Exchange, requestContext, startAnswer } from './exchange.ts';
import { flag, integer } from './query.ts';
import type { ResourceRoute } from './routes.ts';

const STREAMS = ['All', 'Stdout', 'Stderr'] as const;

/** Throws 422 Invalid or 400 BadRequest if an option is not valid. */
export function logOptions(query: URLSearchParams, podName: string): LogOptions {
  const sinceSeconds = integer(query, 'sinceSeconds');
  const sinceTime = query.get('sinceTime') || undefined;
  const tailLines = integer(query, 'tailLines');
  const limitBytes = integer(query, 'limitBytes');
  const stream = query.get('stream') || undefined;
  const problem = sinceTime === undefined ? undefined : timeProblem(sinceTime);
  if (problem !== undefined) throw badRequest(problem);
  const errors: FieldError[] = [];
  if (tailLines !== undefined && tailLines < 0) {
    errors.push(invalid('tailLines', tailLines, 'must be greater than or equal to 0'));
  }
  if (limitBytes !== undefined && limitBytes < 1)
    errors.push(invalid('limitBytes', limitBytes, 'must be greater than 0'));
  if (sinceSeconds !== undefined && sinceTime !== undefined) {
    errors.push(forbidden('', 'at most one of `sinceTime` or `sinceSeconds` may be specified'));
  } else if (sinceSeconds !== undefined && sinceSeconds < 1) {
    errors.push(invalid('sinceSeconds', sinceSeconds, 'must be greater than 0'));
  }
  if (stream !== undefined && !STREAMS.includes(stream as 'All')) errors.push(notSupported('stream', stream, STREAMS));
  if (errors.length > 0) throw invalidObject({ group: '', kind: 'PodLogOptions' }, podName, errors);
  return {
    follow: flag(query, 'follow') ?? false,
    previous: flag(query, 'previous') ?? false,
    timestamps: flag(query, 'timestamps') ?? false,
    sinceSeconds,
    sinceTime,
    tailLines,
    limitBytes,
    stream: stream as (typeof STREAMS)[number] | undefined,
  };
}

/**
 * Returns the name of the container whose log or stream is requested. `requested` defaults to the Pod's only app container. Throws 400
 * BadRequest if the Pod has no such container.
 */
export function chooseContainer(pod: Pod, requested: string | undefined): string {
  const spec = (pod.spec ?? {}) as unknown as Record<string, unknown>;
  const namesOf = (list: string): string[] => {
    const containers = spec[list];
    return Array.isArray(containers) ? containers.map((container: { name: string }) => container.name) : [];
  };
  const { name } = pod.metadata;
  if (requested !== undefined && requested !== '') {
    const lists = ['containers', 'initContainers', 'deferContainers', 'ephemeralContainers'];
    if (lists.some((list) => namesOf(list).includes(requested))) return requested;
    throw badRequest(`container ${requested} is not valid for pod ${name}`);
  }
  const containers = namesOf('containers');
  const [only] = containers;
  if (containers.length === 1 && only !== undefined) return only;
  if (only === undefined) throw badRequest(`a container name must be specified for pod ${name}`);
  const initContainers = namesOf('initContainers');
  const choice = `a container name must be specified for pod ${name}, choose one of: [${containers.join(' ')}]`;
  throw badRequest(
    initContainers.length === 0 ? choice : `${choice} or one of the init containers: [${initContainers.join(' ')}]`,
  );
}

/**
 * Streams the log. The caller must close the connection if the promise rejects after the headers have been sent. While a client pauses
 * reading, as a pager does, no further piece of the log is read. A WebSocket gets an empty message, and then each piece as a message.
 * Source: upstream sets no deadline for logs and watches; wsstream.Reader of v1.33.
 */
export async function serveLogs(server: ServerContext, exchange: Exchange, route: ResourceRoute): Promise<void> {
  const { response, outgoing, query } = exchange;
  const options = logOptions(query, route.name ?? '');
  const pod = (await server.backend.get(requestContext(exchange, route))) as Pod;
  const container = chooseContainer(pod, query.get('container') ?? undefined);
  if (pod.spec?.nodeName === undefined || pod.spec.nodeName === '') {
    // A Pod that is not bound to a node has no log yet.
    startAnswer(exchange, 204, {});
    response.end();
    return;
  }
  const open = messagesOf(server, exchange);
  const protocol = open && logProtocol(offeredProtocols(exchange.request));
  const pieceOf = (bytes: Uint8Array) => (protocol === BASE64_LOG ? Buffer.from(bytes).toString('base64') : bytes);
  if (options.follow === true) exchange.endWithServer();
  exchange.mayPause = true;
  const { namespace = '', name, uid = '' } = pod.metadata;
  const chunks = server.nodes.logs({ namespace, name, uid }, container, options, exchange.signal);
  const iterator = chunks[Symbol.asyncIterator]();
  try {
    let next = await iterator.next();
    if (open === undefined) {
      startAnswer(exchange, 200, { 'Content-Type': 'text/plain' });
      response.flushHeaders();
    } else {
      await open(protocol);
      outgoing.write(pieceOf(new Uint8Array()));
    }
    for (; next.done !== true && !outgoing.isClosed; next = await iterator.next()) {
      if (!outgoing.write(pieceOf(next.value))) await outgoing.ready();
    }
    outgoing.end();
  } finally {
    await iterator.return?.();
  }
}
