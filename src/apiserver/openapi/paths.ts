import type { KindDefinition } from '../../api/kind.ts';
import type { Verb } from '../../ports/request.ts';
import { verbsOf } from '../http/routes.ts';
import { META_PREFIX } from './names.ts';
import { componentRef, groupVersionKind, listComponentName, type Schema } from './schemas.ts';

type Parameter = Record<string, unknown>;
export type Operation = Record<string, unknown>;
export type PathItem = Record<string, Operation | Parameter[]>;

const query = (name: string, type: 'string' | 'integer' | 'boolean', description: string): Parameter => ({
  name,
  in: 'query',
  description,
  schema: { type, uniqueItems: true },
});

const inPath = (name: string, description: string): Parameter => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: { type: 'string', uniqueItems: true },
});

const SELECT: Parameter[] = [
  query('labelSelector', 'string', 'Restricts the objects to those whose labels match.'),
  query('fieldSelector', 'string', 'Restricts the objects to those whose fields match.'),
  query('limit', 'integer', 'The maximum number of objects in the response. The parameter continue requests the rest.'),
  query('continue', 'string', 'The token for the next page: metadata.continue of the previous response.'),
  query('resourceVersion', 'string', 'The version of the data to return, or after which a watch starts.'),
  query('resourceVersionMatch', 'string', 'How to apply resourceVersion: Exact or NotOlderThan.'),
  query('timeoutSeconds', 'integer', 'The number of seconds after which the request ends.'),
];
const WATCH: Parameter[] = [
  query('watch', 'boolean', 'Return a stream of changes instead of a list.'),
  query('allowWatchBookmarks', 'boolean', 'Send events of type BOOKMARK in a watch.'),
  query('sendInitialEvents', 'boolean', 'Start a watch with events for the existing objects.'),
];
const DRY_RUN = query('dryRun', 'string', 'All: run every step of the write without storing the result.');
const WRITE: Parameter[] = [
  DRY_RUN,
  query('fieldManager', 'string', 'The name of the manager that makes these changes.'),
  query('fieldValidation', 'string', 'How to treat unknown and duplicate fields: Ignore, Warn or Strict.'),
];
const DELETE: Parameter[] = [
  DRY_RUN,
  query(
    'gracePeriodSeconds',
    'integer',
    'The number of seconds that the object has to terminate; 0 deletes it immediately.',
  ),
  query('propagationPolicy', 'string', 'How dependents are deleted: Orphan, Background or Foreground.'),
];
const LOG: Parameter[] = [
  query('container', 'string', 'The container whose log to return; optional if the Pod has only one.'),
  query('follow', 'boolean', 'Keep streaming new output.'),
  query('previous', 'boolean', 'Return the log of the previous instance of the container.'),
  query('timestamps', 'boolean', 'Prefix each line with its time.'),
  query('sinceSeconds', 'integer', 'Return only lines that are at most this number of seconds old.'),
  query('sinceTime', 'string', 'Return only lines after this time (RFC 3339).'),
  query('tailLines', 'integer', 'The maximum number of lines to return from the end of the log.'),
  query('limitBytes', 'integer', 'The maximum number of bytes to return.'),
];
const COMMAND = query(
  'command',
  'string',
  'A word of the command, which is not run in a shell. Repeat the parameter for each word.',
);
const CONTAINER = query('container', 'string', 'The container; optional if the Pod has only one.');
const STREAMS: Parameter[] = [
  CONTAINER,
  query('stdin', 'boolean', 'Send standard input.'),
  query('stdout', 'boolean', 'Receive standard output.'),
  query('stderr', 'boolean', 'Receive standard error.'),
  query('tty', 'boolean', 'Connect the streams to a terminal.'),
];
/** As in upstream, the documents list the parameter `path`, but the proxies use the path of the request. */
const PROXIED = [query('path', 'string', 'Has no effect: the rest of the path of the request is forwarded.')];
/** The query parameters of the subresources that open connections, by the kind of their options. */
const CONNECT: Readonly<Record<string, readonly Parameter[]>> = {
  PodExecOptions: [COMMAND, ...STREAMS],
  PodAttachOptions: STREAMS,
  NodeProxyOptions: PROXIED,
  PodProxyOptions: PROXIED,
  ServiceProxyOptions: PROXIED,
  PodPortForwardOptions: [
    query('ports', 'integer', 'The ports to forward; required if the protocol does not transmit them.'),
  ],
};
const PARAMETERS: Readonly<Record<Verb, readonly Parameter[]>> = {
  get: [],
  list: [...SELECT, ...WATCH],
  watch: [...SELECT, ...WATCH],
  create: WRITE,
  update: WRITE,
  patch: [...WRITE, query('force', 'boolean', 'Take over fields of other managers (apply patches only).')],
  delete: DELETE,
  deletecollection: [...SELECT, ...DELETE],
};
const METHODS: Readonly<Partial<Record<Verb, string>>> = {
  get: 'get',
  list: 'get',
  create: 'post',
  update: 'put',
  patch: 'patch',
  delete: 'delete',
  deletecollection: 'delete',
};
const ONLY_PROXIED = ['head', 'options'];
const ACTIONS: Readonly<Partial<Record<Verb, string>>> = { create: 'post', update: 'put' };
const PATCH_CONTENT = [
  'application/apply-patch+yaml',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
];

const title = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
const groupTitle = (kind: KindDefinition): string =>
  kind.group === '' ? 'Core' : title(kind.group.split('.', 1)[0] ?? '');

interface OperationSpec {
  kind: KindDefinition;
  verb: Verb;
  scope: '' | 'Namespaced' | 'AllNamespaces';
  subresource?: string;
}

function requestBody(verb: Verb, component: string): Record<string, unknown> {
  if (verb === 'create' || verb === 'update') {
    return { requestBody: { required: true, content: { '*/*': { schema: componentRef(component) } } } };
  }
  if (verb === 'patch') {
    const content = Object.fromEntries(PATCH_CONTENT.map((type) => [type, { schema: { type: 'object' } }]));
    return { requestBody: { required: true, content } };
  }
  if (verb === 'delete' || verb === 'deletecollection') {
    return { requestBody: { content: { '*/*': { schema: componentRef(`${META_PREFIX}.DeleteOptions`) } } } };
  }
  return {};
}

function answerSchema(verb: Verb, kind: KindDefinition, component: string): Schema {
  if (verb === 'list') return componentRef(listComponentName(kind));
  if (verb === 'deletecollection') return componentRef(`${META_PREFIX}.Status`);
  return componentRef(component);
}

function operation(spec: OperationSpec): Operation {
  const { kind, verb, scope, subresource } = spec;
  const definition = subresource === undefined ? undefined : kind.subresources[subresource];
  const body = definition?.bodyKind;
  const component = body?.schema ?? kind.schema;
  const where = scope === 'AllNamespaces' ? 'ForAllNamespaces' : '';
  const what = `${scope === 'Namespaced' ? 'Namespaced' : ''}${kind.kind}${subresource === undefined ? '' : title(subresource)}`;
  const log = definition?.operation === 'log';
  const content = log
    ? { 'text/plain': { schema: { type: 'string' } } }
    : { 'application/json': { schema: answerSchema(verb, kind, component) } };
  return {
    description: `${verb} ${subresource === undefined ? '' : `${subresource} of `}${kind.plural}`,
    operationId: `${verb === 'deletecollection' ? 'deleteCollection' : verb}${groupTitle(kind)}${title(kind.version)}${what}${where}`,
    tags: [kind.group === '' ? `core_${kind.version}` : `${kind.group.split('.', 1)[0]}_${kind.version}`],
    parameters: log ? LOG : PARAMETERS[verb],
    ...requestBody(verb, component),
    responses: {
      [verb === 'create' ? '201' : '200']: { description: 'OK', content },
      401: { description: 'Unauthorized' },
    },
    'x-kubernetes-action': ACTIONS[verb] ?? verb,
    'x-kubernetes-group-version-kind': groupVersionKind(body ?? kind),
  };
}

/**
 * As in upstream, the operationId has the form connectCoreV1GetNamespacedPodExec. `options`: the kind of the query's options, such as
 * PodExecOptions.
 */
function connectOperation(
  kind: KindDefinition,
  method: string,
  subresource: string,
  options: string,
  withPath: boolean,
): Operation {
  const { group, version, namespaced } = kind;
  return {
    description: `connect ${method.toUpperCase()} requests to ${subresource} of ${kind.plural}`,
    operationId: `connect${groupTitle(kind)}${title(version)}${title(method)}${namespaced ? 'Namespaced' : ''}${kind.kind}${title(subresource)}${withPath ? 'WithPath' : ''}`,
    tags: [`core_${version}`],
    parameters: CONNECT[options] ?? [],
    responses: {
      200: { description: 'OK', content: { '*/*': { schema: { type: 'string' } } } },
      401: { description: 'Unauthorized' },
    },
    'x-kubernetes-action': 'connect',
    'x-kubernetes-group-version-kind': groupVersionKind({ group, version, kind: options }),
  };
}

function pathItem(
  kind: KindDefinition,
  verbs: readonly Verb[],
  scope: OperationSpec['scope'],
  parameters: Parameter[],
  subresource?: string,
): PathItem {
  const item: PathItem = {};
  const { connects, operation: kindOfOperation } = (subresource && kind.subresources[subresource]) || {};
  const methods = verbs.flatMap((verb) => METHODS[verb] ?? []);
  if (subresource !== undefined && connects !== undefined) {
    const withPath = parameters.some(({ name }) => name === 'path');
    const isForwarded = kindOfOperation?.startsWith('proxy') === true;
    for (const method of isForwarded ? [...methods, ...ONLY_PROXIED] : methods)
      item[method] = connectOperation(kind, method, subresource, connects, withPath);
  } else {
    for (const verb of verbs) {
      const method = METHODS[verb];
      if (method !== undefined) item[method] = operation({ kind, verb, scope, subresource });
    }
  }
  item['parameters'] = [...parameters, query('pretty', 'string', 'Has no effect.')];
  return item;
}

const COLLECTION: readonly Verb[] = ['list', 'create', 'deletecollection'];
const ITEM: readonly Verb[] = ['get', 'update', 'patch', 'delete'];

/** Returns the path items of the kind, by path. Each path starts with the root of the group version, such as /api/v1. */
export function kindPaths(kind: KindDefinition): Record<string, PathItem> {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const known = verbsOf(kind);
  const only = (verbs: readonly Verb[]): Verb[] => verbs.filter((verb) => known.includes(verb));
  const scope = kind.namespaced ? 'Namespaced' : '';
  const base = kind.namespaced ? `${root}/namespaces/{namespace}/${kind.plural}` : `${root}/${kind.plural}`;
  const inNamespace = kind.namespaced ? [inPath('namespace', 'The Namespace of the objects.')] : [];
  const named = [inPath('name', `The name of the ${kind.kind}.`), ...inNamespace];
  const paths: Record<string, PathItem> = { [base]: pathItem(kind, only(COLLECTION), scope, inNamespace) };
  if (kind.namespaced && known.includes('list')) {
    paths[`${root}/${kind.plural}`] = pathItem(kind, ['list'], 'AllNamespaces', []);
  }
  if (only(ITEM).length > 0) paths[`${base}/{name}`] = pathItem(kind, only(ITEM), scope, named);
  for (const [name, { verbs, subpaths }] of Object.entries(kind.subresources)) {
    paths[`${base}/{name}/${name}`] = pathItem(kind, verbs, scope, named, name);
    if (subpaths !== true) continue;
    const below = [...named, inPath('path', 'The path below the subresource.')];
    paths[`${base}/{name}/${name}/{path}`] = pathItem(kind, verbs, scope, below, name);
  }
  return paths;
}
