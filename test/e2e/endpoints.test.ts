import { expect } from 'vitest';
import type { Endpoint, EndpointSlice } from '../../src/api/generated/types.ts';
import { ENDPOINT_SLICES } from '../../src/api/resources.ts';
import { createInformer } from '../../src/client/informer.ts';
import { clientFromKubeconfig } from '../../src/client/kubeconfig.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { silentLog } from '../../src/platform/silent-log.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { isReady, runs } from '../support/pods.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

const WARNING = 'Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\n';
const READY_FILE = {
  exec: { command: ['cat', '/tmp/ready'] },
  periodSeconds: 1,
  failureThreshold: 1,
  timeoutSeconds: 10,
};

async function slicesOnce(service: string, holds: (slices: EndpointSlice[]) => boolean): Promise<EndpointSlice[]> {
  const client = await clientFromKubeconfig(lifepod.kubeconfig);
  const stop = new AbortController();
  const found = Promise.withResolvers<EndpointSlice[]>();
  const check = (): void => {
    const slices = informer.list().sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    if (holds(slices)) found.resolve(slices);
  };
  const { namespace } = lifepod;
  const labelSelector = `kubernetes.io/service-name=${service}`;
  const options = { namespace, labelSelector, log: silentLog, timers: systemTimers(), signal: stop.signal };
  const handlers = { added: check, updated: check, deleted: check };
  const informer = createInformer(client.resource<EndpointSlice>(ENDPOINT_SLICES), options, handlers);
  void informer.synced.then(check);
  try {
    return await found.promise;
  } finally {
    stop.abort();
  }
}
const endpointsOnce = async (service: string, holds: (endpoints: Endpoint[]) => boolean): Promise<Endpoint[]> =>
  endpointsOf(await slicesOnce(service, (slices) => holds(endpointsOf(slices))));
const endpointsOf = (slices: readonly EndpointSlice[]): Endpoint[] => slices.flatMap(({ endpoints }) => endpoints);

const service = (spec: object, name = 'web'): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, labels: { team: 't' } },
  spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http' }], ...spec },
});
const ports = (containerPort: number) => [{ name: 'http', containerPort }];
const labels = { app: 'web' };

test('endpoints follow the readiness, the labels and the termination of Pods', async () => {
  await lifepod.apply(service({}));
  const app = { name: 'app', script: WAIT, ports: ports(8080), readinessProbe: READY_FILE };
  await lifepod.apply(pod('one', { app: [app], labels }));
  const [unready] = await endpointsOnce('web', (all) => all.length === 1);
  expect(unready?.conditions).toEqual({ ready: false, serving: false, terminating: false });

  // The Pod has an address, and so an endpoint, before its container runs.
  await record.until('one', runs('app'));
  await lifepod.execOk('one', '--', 'touch', '/tmp/ready');
  const [ready] = await endpointsOnce('web', ([one]) => one?.conditions?.ready === true);
  const { status, spec, metadata } = await record.until('one', isReady);
  expect(ready).toEqual({
    addresses: [status?.podIP],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: spec?.nodeName,
    targetRef: { kind: 'Pod', namespace: lifepod.namespace, name: 'one', uid: metadata.uid },
  });
  const shown = await lifepod.kubectl('get', 'endpoints', 'web');
  expect(shown.stdout).toMatch(new RegExp(`^web +${status?.podIP}:8080 +\\d+s$`, 'm'));
  expect(shown.stderr).toBe(WARNING);
  expect(await lifepod.kubectlOk('get', 'endpointslices')).toMatch(
    new RegExp(`^NAME +ADDRESSTYPE +PORTS +ENDPOINTS +AGE\nweb-\\w+ +IPv4 +8080 +${status?.podIP} +\\d+s$`, 'm'),
  );
  expect(await lifepod.kubectlOk('describe', 'service', 'web')).toMatch(
    new RegExp(`^Endpoints: +${status?.podIP}:8080$`, 'm'),
  );
  expect(await lifepod.kubectlOk('describe', 'endpointslice')).toMatch(/^ +TargetRef: +Pod\/one$/m);

  await lifepod.kubectlOk('label', 'pod', 'one', '--overwrite', 'app=other');
  await endpointsOnce('web', (all) => all.length === 0);
  expect(await lifepod.kubectlOk('get', 'endpoints', 'web')).toMatch(/^web +<none> +\d+s$/m);
  await lifepod.kubectlOk('label', 'pod', 'one', '--overwrite', 'app=web');
  await endpointsOnce('web', ([one]) => one?.conditions?.ready === true);
  await lifepod.delete('pod', 'one');
  await endpointsOnce('web', (all) => all.length === 0);
  await lifepod.delete('service', 'web');
  await slicesOnce('web', (slices) => slices.length === 0);
  expect((await lifepod.kubectl('get', 'endpoints', 'web')).stderr).toContain('endpoints "web" not found');
});

test('a Pod serves while its readiness probe succeeds during its PreExit entries', async () => {
  await lifepod.apply(service({}));
  const probe = { ...READY_FILE, exec: { command: ['sh', '-c', '! test -e /work/stop'] } };
  const volumeMounts = [{ name: 'work', mountPath: '/work' }];
  const app = { name: 'app', script: WAIT, ports: ports(8080), readinessProbe: probe, volumeMounts };
  const script = 'until test -e /work/end; do sleep 0.1; done';
  const leave = { name: 'leave', trigger: 'PreExit', timeoutSeconds: 60, volumeMounts, script };
  const spec = { volumes: [{ name: 'work', emptyDir: {} }], terminationGracePeriodSeconds: 90 };
  await lifepod.apply(pod('one', { app: [app], defer: [leave], labels, spec }));
  await endpointsOnce('web', ([one]) => one?.conditions?.ready === true);
  await lifepod.delete('pod', 'one', '--wait=false');
  const [serving] = await endpointsOnce('web', ([one]) => one?.conditions?.terminating === true);
  expect(serving?.conditions).toEqual({ ready: false, serving: true, terminating: true });
  expect(await lifepod.kubectlOk('get', 'endpoints', 'web')).toMatch(/^web +<none> +\d+s$/m);
  await lifepod.execOk('one', '-c', 'app', '--', 'touch', '/work/stop');
  const [left] = await endpointsOnce('web', ([one]) => one?.conditions?.serving === false);
  expect(left?.conditions).toEqual({ ready: false, serving: false, terminating: true });
  await lifepod.execOk('one', '-c', 'app', '--', 'touch', '/work/end');
  await endpointsOnce('web', (all) => all.length === 0);
});

test('a named port may differ between Pods, and ports of init containers count only if these are sidecars', async () => {
  await lifepod.apply(service({}));
  await lifepod.apply(service({ ports: [{ port: 80, targetPort: 'side' }] }, 'side'));
  const side = [{ name: 'side', containerPort: 9000 }];
  const app = (port: number) => [{ name: 'app', script: WAIT, ports: ports(port) }];
  await lifepod.apply(
    pod('a', { app: app(8080), labels, init: [{ name: 'side', script: WAIT, restartPolicy: 'Always', ports: side }] }),
  );
  await lifepod.apply(pod('b', { app: app(8081), labels, init: [{ name: 'side', script: 'true', ports: side }] }));
  const bothReady = (slices: EndpointSlice[]): boolean =>
    endpointsOf(slices).filter(({ conditions }) => conditions?.ready === true).length === 2;
  const portsBySlice = (slices: EndpointSlice[]) =>
    slices.map(({ endpoints, ports: list = [] }) => [endpoints.map(({ targetRef }) => targetRef?.name), list[0]?.port]);
  expect(portsBySlice(await slicesOnce('web', bothReady))).toEqual(
    expect.arrayContaining([
      [['a'], 8080],
      [['b'], 8081],
    ]),
  );
  expect(portsBySlice(await slicesOnce('side', bothReady))).toEqual(
    expect.arrayContaining([
      [['a'], 9000],
      [['b'], undefined],
    ]),
  );
  expect(await lifepod.kubectlOk('get', 'endpoints', 'web')).toMatch(/^web +\S+:8080,\S+:8081 /m);
  expect(await lifepod.kubectlOk('get', 'endpoints', 'side')).toMatch(/^side +\S+:9000 +\d+s$/m);
});

test('a headless Service publishes host names, and addresses that are not ready if it is asked to', async () => {
  await lifepod.apply(service({ clusterIP: 'None', publishNotReadyAddresses: true, ports: [] }));
  const app = [{ name: 'app', script: WAIT, readinessProbe: { exec: { command: ['false'] } } }];
  await lifepod.apply(pod('one', { app, labels, spec: { hostname: 'first', subdomain: 'web' } }));
  const [slice] = await slicesOnce('web', (slices) => endpointsOf(slices).length === 1);
  expect(slice?.endpoints[0]).toMatchObject({
    hostname: 'first',
    conditions: { ready: true, serving: false, terminating: false },
  });
  expect(slice?.metadata.labels).toMatchObject({ team: 't', 'service.kubernetes.io/headless': '' });
  const [ip] = slice?.endpoints[0]?.addresses ?? [];
  expect(await lifepod.kubectlOk('get', 'endpoints', 'web')).toMatch(new RegExp(`^web +${ip} +\\d+s$`, 'm'));
});

test('Endpoints by hand are mirrored, slices by hand are left alone, and both are shown by describe', async () => {
  await lifepod.apply(service({ selector: null, ports: [{ port: 80 }] }, 'db'));
  const subsets = [{ addresses: [{ ip: '192.0.2.7' }, { ip: '192.0.2.6' }], ports: [{ port: 5432 }] }];
  const endpoints = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'db' }, subsets };
  await lifepod.apply(endpoints);
  const [mirrored] = await slicesOnce('db', (slices) => endpointsOf(slices).length === 2);
  expect(mirrored?.metadata.labels).toMatchObject({
    'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
  });
  expect(mirrored?.ports).toEqual([{ name: '', port: 5432, protocol: 'TCP' }]);
  const described = await lifepod.kubectl('describe', 'endpoints', 'db');
  expect(described.stdout).toMatch(/^ +Addresses: +192\.0\.2\.6,192\.0\.2\.7$/m);
  expect(described.stderr).toBe(WARNING);
  await lifepod.apply({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'by-hand', labels: { 'kubernetes.io/service-name': 'db' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.0.2.8'], hints: { forZones: [{ name: 'east' }] } }],
    ports: [{ port: 5432 }],
  });
  expect(await lifepod.kubectlOk('describe', 'service', 'db')).toMatch(/^Endpoints: .*192\.0\.2\.8:5432/m);
  await lifepod.apply({ ...endpoints, subsets: [{ ...subsets[0], addresses: [{ ip: '192.0.2.7' }] }] });
  await slicesOnce('db', (slices) => endpointsOf(slices).length === 2);
  await lifepod.delete('endpoints', 'db');
  const left = await slicesOnce('db', (slices) => slices.length === 1);
  expect(left).toMatchObject([
    { metadata: { name: 'by-hand', generation: 1 }, endpoints: [{ addresses: ['192.0.2.8'] }] },
  ]);
});
