/** Serves requests for resources: decodes the request, calls the backend, and encodes the result. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { KindDefinition, SubresourceDefinition } from '../../api/kind.ts';
import { dropText, encodeOnce } from '../../machinery/encode.ts';
import type { KubeList, KubeObject, Status } from '../../machinery/meta.ts';
import type { PatchType } from '../../machinery/patch/patch.ts';
import { badRequest, methodNotAllowed } from '../../machinery/status.ts';
import { oneAtATime, workInTurns } from '../../platform/work-in-turns.ts';
import type { DeleteOptions, ListOptions, WriteOptions } from '../../ports/backend.ts';
import { authorizeCreate } from '../auth/authorize.ts';
import { objectBytes } from '../cache/stored-object.ts';
import { isProxy, serveProxy } from '../proxy/serve.ts';
import { mayReadStore } from '../registry/reads/resource-version.ts';
import { recordedRepresentation, representationFor } from '../representation/representation.ts';
import { serveStream } from '../streaming/streams.ts';
import { PIECE_CHARS, sendParts, WHOLE_CHARS } from './answers.ts';
import {
  decodeDeleteOptions,
  decodeObject,
  decodePatch,
  type ExpectedKind,
  objectMediaType,
  patchMediaType,
} from './body.ts';
import { type ReadBody, waitsOutside } from './bounds/waits.ts';
import { getComputed, listComputed } from './computed-objects.ts';
import type { ServerContext } from './context.ts';
import { type Exchange, requestContext } from './exchange.ts';
import { serveLogs } from './logs.ts';
import { deleteOptions, listOptions, writeOptions } from './query.ts';
import { answerReview, reviewOf } from './reviews.ts';
import type { ResourceRoute } from './routes.ts';
import { serveWatch } from './watch.ts';

/** The caller must close the connection if the promise rejects after the response has begun. */
export async function serveResource(server: ServerContext, exchange: Exchange, route: ResourceRoute): Promise<void> {
  const { kind, verb, subresource } = route;
  const definition = subresource === undefined ? undefined : kind.subresources[subresource];
  if (definition?.operation === 'log') {
    return server.streams.within(exchange.user, () => serveLogs(server, exchange, route));
  }
  if (kind.deprecation !== undefined) exchange.warnings.push(kind.deprecation);
  const operation = definition?.operation;
  if (isProxy(operation)) return serveProxy(server, exchange, route, operation);
  if (definition?.connects !== undefined) {
    return server.streams.within(exchange.user, () => serveStream(server, exchange, route));
  }
  const requested = {
    accept: exchange.request.headers.accept,
    query: exchange.query,
    kind: shownKind(kind, definition),
    isList: verb === 'list' || verb === 'deletecollection',
    now: () => server.timers.now(),
  };
  const representation = representationFor(requested);
  const record = (answer: KubeObject | Status | KubeList) =>
    exchange.auditing?.answered(answer, () => recordedRepresentation(requested));
  const sendList = async (list: KubeList): Promise<void> => {
    await record(list);
    return sendParts(exchange, 200, representation.contentType, await representation.list(list));
  };
  if (verb === 'watch')
    return server.watches.within(exchange.user, () => serveWatch(server, exchange, route, representation));
  if (verb === 'list') {
    const list = await listItems(server, exchange, route);
    return list === undefined ? undefined : sendList(list);
  }
  if (verb === 'deletecollection') return sendList(await deleteAll(server, exchange, route));
  let created = verb === 'create';
  const answer = await answerOne(server, exchange, route, () => {
    created = true;
  });
  await record(answer);
  // A short response is encoded and passed on at once, and then no longer needs the object.
  if (answer.kind === kind.kind && objectBytes(answer as KubeObject) > WHOLE_CHARS)
    exchange.outgoing.hold(answer as KubeObject);
  const parts = representation.object(answer);
  dropText(answer);
  return sendParts(exchange, created ? 201 : 200, representation.contentType, parts);
}

const shownKind = (kind: KindDefinition, definition: SubresourceDefinition | undefined): KindDefinition =>
  definition?.document === undefined
    ? kind
    : { ...kind, ...definition.bodyKind, columns: definition.document.columns, row: definition.document.row };

function answerOne(
  server: ServerContext,
  exchange: Exchange,
  route: ResourceRoute,
  onCreated: () => void,
): Promise<KubeObject | Status> {
  switch (route.verb) {
    case 'get':
      if (route.kind.computed !== undefined) return getComputed(server, exchange, route, route.kind.computed);
      return server.backend.get(requestContext(exchange, route));
    case 'create':
      return create(server, exchange, route);
    case 'update':
      return update(server, exchange, route);
    case 'patch':
      return patch(server, exchange, route, onCreated);
    case 'delete':
      return remove(server, exchange, route);
    default:
      throw methodNotAllowed();
  }
}

const nameOf = (route: ResourceRoute): string => {
  if (route.name === undefined) throw badRequest('name must be provided');
  return route.name;
};

function expectedKind(route: ResourceRoute): ExpectedKind {
  const own = route.subresource === undefined ? undefined : route.kind.subresources[route.subresource]?.bodyKind;
  return own ?? route.kind;
}

/** The limit on the warnings of a request. boundedWarnings() later limits the length of the Warning headers. */
const MAX_WARNINGS = 4096;

const onWarning =
  (exchange: Exchange) =>
  (text: string): void => {
    if (exchange.warnings.length < MAX_WARNINGS) exchange.warnings.push(text);
  };

function write(
  exchange: Exchange,
  kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
  patchType?: PatchType,
): WriteOptions {
  return {
    ...writeOptions(kind, exchange.query, exchange.request.headers['user-agent'], patchType),
    onWarning: onWarning(exchange),
  };
}

/** `body` is undefined if the body is no longer needed. */
const writeContext = (server: ServerContext, exchange: Exchange, route: ResourceRoute, body?: ReadBody) =>
  requestContext(exchange, route, { outside: waitsOutside(server.waits, exchange.signal, body) });

async function create(server: ServerContext, exchange: Exchange, route: ResourceRoute): Promise<KubeObject> {
  const type = objectMediaType(exchange.request);
  const options = write(exchange, 'CreateOptions');
  return server.bodies.read(exchange, async (body, room) => {
    const betweenSteps = workInTurns();
    const object = await decodeObject(body, type, expectedKind(route));
    exchange.auditing?.sent(object);
    await betweenSteps();
    checkNamespace(
      object,
      route.namespace,
      'the namespace of the provided object does not match the namespace sent on the request',
    );
    const review = reviewOf(route.kind);
    if (review !== undefined)
      return answerReview(server, exchange, { kind: route.kind, review }, { body: object, options });
    const context = writeContext(server, exchange, route, { room, value: object });
    return server.backend.create(context, object, options);
  });
}

async function update(server: ServerContext, exchange: Exchange, route: ResourceRoute): Promise<KubeObject> {
  const type = objectMediaType(exchange.request);
  const options = write(exchange, 'UpdateOptions');
  const kind = expectedKind(route);
  return server.bodies.read(exchange, async (sent, room) => {
    const betweenSteps = workInTurns();
    const object = await decodeObject(sent, type, kind);
    exchange.auditing?.sent(object);
    await betweenSteps();
    const { namespace } = route;
    const name = nameOf(route);
    // A body of the subresource's own kind, such as DeferControl, applies to the object that the path names, and needs no name.
    const given = metadataOf(object).name || (kind === route.kind ? '' : name);
    if (given !== name) {
      throw badRequest(
        given === ''
          ? `the name of the object (${name} based on URL) was undeterminable: name must be provided`
          : `the name of the object (${given}) does not match the name on the URL (${name})`,
      );
    }
    checkNamespace(
      object,
      namespace,
      `the namespace of the object (${metadataOf(object).namespace}) does not match the namespace on the request (${namespace})`,
    );
    const metadata = { ...object.metadata, name, ...(namespace === undefined ? {} : { namespace }) };
    const context = writeContext(server, exchange, route, { room, value: object });
    return server.backend.update(context, { ...object, metadata }, options);
  });
}

/** Returns an empty object if the metadata is null or not an object. */
const metadataOf = (object: KubeObject): Partial<KubeObject['metadata']> =>
  typeof object.metadata === 'object' && object.metadata !== null ? object.metadata : {};

function checkNamespace(object: KubeObject, namespace: string | undefined, message: string): void {
  const given = metadataOf(object).namespace ?? '';
  if (given !== '' && namespace !== undefined && given !== namespace) throw badRequest(message);
}

async function patch(
  server: ServerContext,
  exchange: Exchange,
  route: ResourceRoute,
  onCreated: () => void,
): Promise<KubeObject> {
  const type = patchMediaType(exchange.request);
  const options = write(exchange, 'PatchOptions', type);
  return server.bodies.read(exchange, async (sent, room) => {
    const betweenSteps = workInTurns();
    const body = await decodePatch(sent, type);
    exchange.auditing?.sentOther(body);
    await betweenSteps();
    const context = writeContext(server, exchange, route, { room, value: body });
    const mayCreate = () => authorizeCreate(server.authorizer, exchange, route);
    return server.backend.patch(context, type, body, { ...options, mayCreate, onCreated });
  });
}

async function readDeleteOptions(server: ServerContext, exchange: Exchange): Promise<DeleteOptions> {
  const body = await server.bodies.read(exchange, (sent) => decodeDeleteOptions(sent, exchange.request));
  if (body !== undefined) exchange.auditing?.sentOther(body);
  return { ...deleteOptions(exchange.query, body), onWarning: onWarning(exchange) };
}

async function remove(server: ServerContext, exchange: Exchange, route: ResourceRoute): Promise<KubeObject | Status> {
  const options = await readDeleteOptions(server, exchange);
  return server.backend.delete(writeContext(server, exchange, route), options);
}

async function deleteAll(server: ServerContext, exchange: Exchange, route: ResourceRoute): Promise<KubeList> {
  const options = await readDeleteOptions(server, exchange);
  const selected = listOptions(exchange.query, route.namespace);
  return server.backend.deleteCollection(writeContext(server, exchange, route), { ...selected, ...options });
}

/**
 * Lists whose items no other client shares are read one at a time, so that the memory of one list is counted (see outgoing.ts) before the
 * next list is read. Lists that the store reads as one page (ownPages) do not wait for lists that may scan all objects (ownLists).
 */
const ownLists = oneAtATime();
const ownPages = oneAtATime();
/** The largest `limit` with which a list counts as one page. kubectl requests 500 objects at a time. */
const MAX_PAGE = 500;

/** Resolves to undefined if the client has disconnected. */
async function listItems(
  server: ServerContext,
  exchange: Exchange,
  route: ResourceRoute,
): Promise<KubeList | undefined> {
  const options = listOptions(exchange.query, route.namespace);
  const { computed } = route.kind;
  if (computed !== undefined) return listComputed(server, exchange, route, computed, options);
  if (route.kind.uncached !== true && !mayReadStore(options)) {
    // The items are cached objects, which all lists share.
    const list = await server.backend.list(requestContext(exchange, route), options);
    if (exchange.response.destroyed) return undefined;
    for (const item of list.items) exchange.outgoing.hold(item);
    return list;
  }
  const leave = await (isOnePage(options) ? ownPages : ownLists).enter();
  try {
    if (exchange.response.destroyed) return undefined;
    const list = await server.backend.list(requestContext(exchange, route), options);
    await keepItems(exchange, list.items);
    return exchange.response.destroyed ? undefined : list;
  } finally {
    leave();
  }
}

const isOnePage = ({ limit = 0, labelSelector, fieldSelector }: ListOptions): boolean =>
  limit > 0 && limit <= MAX_PAGE && !labelSelector && !fieldSelector;

/** Counts the memory of the items for the response, in turns with other work. Stops early if the client disconnects. */
async function keepItems({ outgoing, response }: Exchange, items: readonly KubeObject[]): Promise<void> {
  let chars = 0;
  for (const item of items) {
    if (response.destroyed) return;
    outgoing.keep(item, objectBytes(item));
    chars += encodeOnce(item).length;
    if (chars < PIECE_CHARS) continue;
    chars = 0;
    await nextTurn();
  }
}
