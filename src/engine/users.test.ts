import { expect, test } from 'vitest';
import { createCatalog } from '../api/catalog.ts';
import { kinds } from '../api/kinds.ts';
import { PODS } from '../api/resources.ts';
import { startRegistry } from '../apiserver/registry/testing.ts';
import { startControllers } from '../controllers/controllers.ts';
import { silentLog } from '../platform/silent-log.ts';
import type { ResourceBackend } from '../ports/backend.ts';
import type { RequestContext } from '../ports/request.ts';
import { startScheduler } from '../scheduler/scheduler.ts';
import { clientFor, controllerUser, nodeUser, SCHEDULER } from './users.ts';

/** Starts a registry, and records the contexts of all requests to it. */
async function recorded() {
  const { backend, timers } = await startRegistry();
  const requests: RequestContext[] = [];
  const recording = new Proxy(backend as ResourceBackend, {
    get:
      (target, verb) =>
      (request: RequestContext, ...rest: unknown[]) => {
        requests.push(request);
        return Reflect.apply(Reflect.get(target, verb), target, [request, ...rest]);
      },
  });
  return { backend: recording, requests, timers };
}

test('a call in process carries the user, the verb, the resource and the name of the object', async () => {
  const { backend, requests } = await recorded();
  const client = clientFor(backend, nodeUser('n1'));
  await client
    .resource(PODS)
    .get('a', 'default')
    .catch(() => undefined);
  await client
    .resource(PODS)
    .patch('a', 'default', 'application/merge-patch+json', {}, 'status')
    .catch(() => undefined);
  const user = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
  const of = { user, source: 'component', resource: PODS, namespace: 'default', name: 'a' };
  expect(requests).toMatchObject([
    { ...of, verb: 'get' },
    { ...of, verb: 'patch', subresource: 'status' },
  ]);
});

test('the scheduler and each controller call the API as a user of their own', async () => {
  const { backend, requests, timers } = await recorded();
  const stop = new AbortController();
  const options = { timers, log: silentLog, signal: stop.signal };
  await Promise.all([
    startScheduler({ ...options, client: clientFor(backend, SCHEDULER), schedulerName: 'default-scheduler' }),
    startControllers({
      optionsOf: (name) => ({ ...options, client: clientFor(backend, controllerUser(name)) }),
      catalog: createCatalog(kinds),
      caPem: 'PEM',
      bootstrap: async () => undefined,
      recordLimits: { ageMillis: 1000, bytes: 1000 },
      folders: {
        nodeName: 'n1',
        path: (name) => name,
        create: async () => undefined,
        remove: async () => undefined,
        removeUnused: async () => undefined,
      },
    }),
  ]);
  stop.abort();
  const names = new Set(requests.map(({ user }) => user.name.replace('system:serviceaccount:kube-system:', '')));
  expect([...names].sort()).toEqual([
    'event-ttl-controller',
    'namespace-controller',
    'node-controller',
    'persistent-volume-binder',
    'pod-garbage-collector',
    'pod-record-controller',
    'root-ca-cert-publisher',
    'service-account-controller',
    'system-object-controller',
    'system:kube-scheduler',
    'taint-eviction-controller',
    'unbound-record-controller',
  ]);
});
