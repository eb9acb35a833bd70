import { expect, onTestFinished, test } from 'vitest';
import { createCatalog } from '../api/catalog.ts';
import { kinds } from '../api/kinds.ts';
import { EVENTS, NAMESPACES, NODES, PODS } from '../api/resources.ts';
import { object, pod, startRegistry, TEST_USER } from '../apiserver/registry/testing.ts';
import { createSharedInformers } from '../client/shared-informers.ts';
import { noCertificates } from '../controllers/certificates/no-certificates-fixture.ts';
import { startControllers } from '../controllers/controllers.ts';
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import { silentLog } from '../platform/silent-log.ts';
import type { ResourceBackend } from '../ports/backend.ts';
import { API_SERVER, type RequestContext, type UserInfo } from '../ports/request.ts';
import { startScheduler } from '../scheduler/scheduler.ts';
import { clientFor, controllerUser, nodeUser, SCHEDULER } from './users.ts';

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

test('the scheduler and the controllers read with informers of the engine, and each writes as a user of its own', async () => {
  const { backend, requests, timers } = await recorded();
  const tester = clientFor(backend, TEST_USER);
  const create = (ref: ResourceRef, made: KubeObject) => tester.resource<KubeObject>(ref).create(made);
  const owned = { namespace: 'default' };
  await create(
    NODES,
    object('Node', 'n1', { spec: { unschedulable: true, taints: [{ key: 'k', effect: 'NoExecute' }] } }),
  );
  for (const [name, spec] of Object.entries({ evicted: { nodeName: 'n1' }, lost: { nodeName: 'n2' }, waits: {} }))
    await create(PODS, pod(name, { ...spec, automountServiceAccountToken: false }, owned));
  const involvedObject = { kind: 'Pod', name: 'waits', namespace: 'default' };
  await create(EVENTS, object('Event', 'old', { involvedObject }, owned));
  await create(NAMESPACES, object('Namespace', 'ending'));
  await tester.resource(NAMESPACES).delete('ending');

  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const engine = { timers, log: silentLog, signal: stop.signal };
  const informers = createSharedInformers({ ...engine, client: clientFor(backend, API_SERVER) });
  const as = (user: UserInfo) => ({ ...engine, informers, client: clientFor(backend, user) });
  requests.length = 0;
  await Promise.all([
    startScheduler({ ...as(SCHEDULER), schedulerName: 'default-scheduler' }),
    startControllers({
      optionsOf: (name) => as(controllerUser(name)),
      catalog: createCatalog(kinds),
      caPem: 'PEM',
      issueLegacyToken: async () => 'token',
      bootstrap: async () => undefined,
      recordLimits: { ageMillis: 1000, bytes: 1000 },
      folders: {
        nodeName: 'n1',
        path: (name) => name,
        create: async () => undefined,
        remove: async () => undefined,
        removeUnused: async () => undefined,
      },
      ...noCertificates,
    }),
  ]);
  await tester.resource(PODS).delete('waits', 'default', { gracePeriodSeconds: 0 });
  // The Event expires, and the Pod on the missing node is deleted.
  timers.advance(60 * 60 * 1000);
  const isRead = (verb: string): boolean => ['get', 'list', 'watch'].includes(verb);
  const users = (of: readonly RequestContext[]): string[] =>
    [...new Set(of.map(({ user }) => user.name.replace('system:serviceaccount:kube-system:', '')))].sort();
  const writers = () => users(requests.filter(({ verb, user }) => !isRead(verb) && user !== TEST_USER));
  await expect
    .poll(writers)
    .toEqual([
      'event-ttl-controller',
      'namespace-controller',
      'node-controller',
      'persistent-volume-binder',
      'pod-garbage-collector',
      'root-ca-cert-publisher',
      'service-account-controller',
      'service-cidrs-controller',
      'system:kube-scheduler',
      'unbound-record-controller',
    ]);
  const watches = requests.filter(({ verb }) => verb === 'watch');
  expect(users(watches)).toEqual(['pod-record-controller', 'system:apiserver']);
});
