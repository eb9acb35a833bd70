import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ClusterRole } from '../../api/generated/types.ts';
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, CONFIG_MAPS, NODES, PODS, SECRETS } from '../../api/resources.ts';
import { ensureRoles } from '../../apiserver/auth/authorization/bootstrap/ensure-roles.ts';
import { authorizedBackend, type OnRefusal } from '../../apiserver/auth/authorized-backend.ts';
import { failure, object, pod, type Started, startRegistry } from '../../apiserver/registry/testing.ts';
import { createSharedInformers } from '../../client/shared-informers.ts';
import { createMetrics, metricsText } from '../../platform/metrics.ts';
import type { Log } from '../../platform/platform.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { API_SERVER } from '../../ports/request.ts';
import { CONTROLLER_MANAGER, clientFor, controllerUser, DNS, nodeUser, SCHEDULER } from '../users.ts';
import { createAuthorizers } from './authorizers.ts';
import { type Components, createComponents, REFUSED, reportRefusals } from './components.ts';

let started: Started;
let stop: AbortController;
let as: Components;
let refused: string[];

beforeEach(async () => {
  started = await startRegistry();
  const { backend, registry, timers } = started;
  await ensureRoles(registry);
  await registry.create(NODES, undefined, object('Node', 'n1'));
  stop = new AbortController();
  refused = [];
  const platform = { timers, log: silentLog };
  const informers = createSharedInformers({ ...platform, client: clientFor(backend, API_SERVER) });
  const authorizer = createAuthorizers({ informers, signal: stop.signal }).components;
  const onRefusal: OnRefusal = ({ user, verb }) => refused.push(`${user.name} ${verb}`);
  const registryFor = authorizedBackend(backend, authorizer, onRefusal);
  as = createComponents({ ...platform, registry: registryFor, informers, authorizer, onRefusal });
});
afterEach(() => stop.abort());

describe('the agent of a node', () => {
  const agent = () => as(nodeUser('n1'));
  const secret = (name: string) => object('Secret', name, {}, { namespace: 'default' });
  const spec = { automountServiceAccountToken: false, volumes: [{ name: 'v', secret: { secretName: 'used' } }] };

  test('reads the Secrets of its Pods, as long as these exist, and no others', async () => {
    const { registry, settled } = started;
    await registry.create(SECRETS, 'default', secret('used'));
    await registry.create(SECRETS, 'default', secret('unused'));
    await registry.create(PODS, 'default', pod('web', { ...spec, nodeName: 'n1' }, { namespace: 'default' }));
    const secrets = agent().client.resource(SECRETS);
    await settled();
    expect((await secrets.get('used', 'default')).metadata.name).toBe('used');
    expect(await failure(secrets.get('unused', 'default'))).toMatchObject({ code: 403 });
    expect(await failure(secrets.list())).toMatchObject({ code: 403 });
    const of = { namespace: 'default', fieldSelector: 'metadata.name=used' };
    expect((await secrets.list(of)).items).toHaveLength(1);
    expect(await failure(as(nodeUser('n2')).client.resource(SECRETS).get('used', 'default'))).toMatchObject({
      code: 403,
    });
    await registry.delete(PODS, 'default', 'web', { gracePeriodSeconds: 0 });
    await settled();
    expect(await failure(secrets.get('used', 'default'))).toMatchObject({ code: 403 });
  });

  test('follows its Pods by the shared informers, and gets nothing of what it may not list', async () => {
    const { registry } = started;
    await registry.create(PODS, 'default', pod('own', { nodeName: 'n1' }, { namespace: 'default' }));
    await registry.create(PODS, 'default', pod('other', { nodeName: 'n2' }, { namespace: 'default' }));
    const { informers } = agent();
    const { signal } = stop;
    const pods = informers.follow(PODS, { fieldSelector: 'spec.nodeName=n1', signal });
    await pods.synced;
    expect(pods.list().map(({ metadata }) => metadata.name)).toEqual(['own']);
    const added: string[] = [];
    const all = informers.follow(PODS, { signal }, { added: ({ metadata }) => added.push(metadata.name) });
    const maps = informers.follow(CONFIG_MAPS, { signal }, { added: ({ metadata }) => added.push(metadata.name) });
    await expect.poll(() => refused).toEqual(['system:node:n1 list', 'system:node:n1 list']);
    expect([all.list(), maps.list(), added]).toEqual([[], [], []]);
  });

  test('changes only its own Node', async () => {
    const nodes = agent().client.resource(NODES);
    await started.registry.create(NODES, undefined, object('Node', 'n2'));
    const change = { status: { phase: 'x' } };
    const patch = (name: string) => nodes.patch(name, undefined, 'application/merge-patch+json', change, 'status');
    await patch('n1');
    expect(await failure(patch('n2'))).toMatchObject({ code: 403 });
    expect(await failure(nodes.get('n2'))).toMatchObject({ code: 403 });
  });
});

test('a controller writes as its own user, and its informers read as the controller manager', async () => {
  const { client, informers } = as(controllerUser('replicaset-controller'), CONTROLLER_MANAGER);
  const maps = informers.follow(CONFIG_MAPS, { signal: stop.signal });
  await maps.synced;
  expect(maps.list().length).toBeGreaterThanOrEqual(0);
  expect(await failure(client.resource(CONFIG_MAPS).list())).toMatchObject({ code: 403 });
  expect(await failure(client.resource(SECRETS).get('x', 'default'))).toMatchObject({ code: 403 });
  expect(await failure(client.resource(PODS).get('x', 'default'))).toMatchObject({ code: 403 });
  expect(await failure(client.resource(PODS).delete('x', 'default'))).toMatchObject({ code: 404 });
});

test('the scheduler and DNS may not read Secrets', async () => {
  for (const user of [SCHEDULER, DNS])
    expect(await failure(as(user).client.resource(SECRETS).list())).toMatchObject({ code: 403 });
});

test('a component that may not follow a resource asks again, less and less often, until its role allows it', async () => {
  const { registry, timers } = started;
  const role = (await registry.get(CLUSTER_ROLES, undefined, 'system:kube-scheduler')) as ClusterRole;
  await registry.update(CLUSTER_ROLES, { ...role, rules: [] } as ClusterRole);
  const { informers } = as(SCHEDULER);
  await registry.delete(CLUSTER_ROLE_BINDINGS, undefined, 'system:volume-scheduler');
  await registry.create(PODS, 'default', pod('web', {}, { namespace: 'default' }));
  const pods = informers.follow(PODS, { signal: stop.signal });
  await expect.poll(() => refused).toHaveLength(1);
  for (let minute = 0; minute < 10; minute++) {
    timers.advance(60_000);
    await started.settled();
  }
  expect(refused.length).toBeLessThan(20);
  await registry.update(CLUSTER_ROLES, {
    ...((await registry.get(CLUSTER_ROLES, undefined, 'system:kube-scheduler')) as ClusterRole),
    rules: role.rules,
  } as ClusterRole);
  await started.settled();
  const later = (): number => {
    timers.advance(60_000);
    return pods.list().length;
  };
  await expect.poll(later).toBe(1);
});

test('refused requests are counted, and logged once a minute for each kind of request', async () => {
  const logged: unknown[] = [];
  const log: Log = { ...silentLog, warn: (message, fields) => void logged.push([message, fields]) };
  const metrics = createMetrics();
  const report = reportRefusals({ timers: started.timers, log }, metrics);
  const asked = { user: SCHEDULER, verb: 'get', group: 'apps', resource: 'deployments', subresource: 'scale' };
  report(asked, 'because');
  report(asked, 'because');
  report({ ...asked, verb: 'list' }, '');
  // A refusal about an object of a Pod that has just been deleted is neither counted nor logged.
  const ofPod = { verb: 'get', group: '', resource: 'secrets', namespace: 'a', name: 'x' };
  report({ user: nodeUser('n1'), ...ofPod }, "no relationship found between node 'n1' and this object");
  started.timers.advance(60_000);
  report(asked, 'because');
  const of = { user: 'system:kube-scheduler', resource: 'deployments.apps/scale' };
  expect(logged).toEqual([
    [REFUSED, { ...of, verb: 'get', reason: 'because' }],
    [REFUSED, { ...of, verb: 'list', reason: '' }],
    [REFUSED, { ...of, verb: 'get', reason: 'because' }],
  ]);
  expect(metricsText(await metrics.families())).toContain(
    'lifepod_component_requests_refused_total{user="system:kube-scheduler",verb="get",resource="deployments.apps/scale"} 3',
  );
});
