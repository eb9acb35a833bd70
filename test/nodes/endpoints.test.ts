import { expect, test } from 'vitest';
import type { Deployment, Endpoint, EndpointSlice, Endpoints, Service } from '../../src/api/generated/types.ts';
import { DEPLOYMENTS, ENDPOINT_SLICES, ENDPOINTS, SERVICES } from '../../src/api/resources.ts';
import type { KubeObject } from '../../src/machinery/meta.ts';
import { simpleDeployment } from '../support/simulated-nodes/objects.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../support/simulated-nodes/simulated-cluster.ts';

const ZONES = ['east', 'west', 'north'];
const NODES_IN_ZONES = ZONES.map((zone) => ({ labels: { 'topology.kubernetes.io/zone': zone } }));

async function served({ client, during }: SimulatedCluster, replicas: number): Promise<void> {
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }], trafficDistribution: 'PreferClose' },
  };
  await during(client.resource<Service>(SERVICES).create(service));
  await during(client.resource<Deployment>(DEPLOYMENTS).create(simpleDeployment('web', replicas)));
}

const endpointsOf = (slices: readonly EndpointSlice[]): Endpoint[] =>
  slices.filter(({ metadata }) => metadata.namespace === 'default').flatMap(({ endpoints }) => endpoints);

/** Checks after each change that no address occurs twice. */
async function endpointsOnce(
  cluster: SimulatedCluster,
  count: number,
  more: (all: Endpoint[]) => boolean = () => true,
) {
  const slices = await cluster.until<EndpointSlice>(ENDPOINT_SLICES, (found) => {
    const all = endpointsOf(found);
    expect(new Set(all.map(({ addresses }) => addresses[0])).size).toBe(all.length);
    return all.length === count && all.every(({ conditions }) => conditions?.ready === true) && more(all);
  });
  return { slices: slices.filter(({ metadata }) => metadata.namespace === 'default'), all: endpointsOf(slices) };
}

const scale = ({ client, during }: SimulatedCluster, replicas: number): Promise<unknown> =>
  during(
    client
      .resource<Deployment>(DEPLOYMENTS)
      .patch('web', 'default', 'application/merge-patch+json', { spec: { replicas } }),
  );

const versions = (objects: readonly KubeObject[]): (string | undefined)[] =>
  objects.map(({ metadata }) => metadata.resourceVersion);

test('110 endpoints in three zones are in slices of at most 100, follow the scale, and are written only when they change', async () => {
  await using cluster = await startSimulatedCluster({ nodes: NODES_IN_ZONES, time: 'virtual' });
  await served(cluster, 110);
  const { slices, all } = await endpointsOnce(cluster, 110);
  for (const { endpoints } of slices) expect(endpoints.length).toBeLessThanOrEqual(100);
  expect(new Set(all.map(({ zone }) => zone))).toEqual(new Set(ZONES));
  for (const { zone, hints } of all) expect(hints).toEqual({ forZones: [{ name: zone }] });
  const hasAll = (endpoints: readonly Endpoints[]): boolean =>
    endpoints.some(({ metadata, subsets = [] }) => metadata.name === 'web' && subsets[0]?.addresses?.length === 110);
  const before = await cluster.until<Endpoints>(ENDPOINTS, hasAll);
  await cluster.pass(60_000);
  expect(versions((await endpointsOnce(cluster, 110)).slices)).toEqual(versions(slices));
  expect(versions(await cluster.until<Endpoints>(ENDPOINTS, hasAll))).toEqual(versions(before));
  await scale(cluster, 20);
  await endpointsOnce(cluster, 20);
});

test('a rollout replaces all endpoints', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  await served(cluster, 12);
  const { all } = await endpointsOnce(cluster, 12);
  const old = new Set(all.map(({ targetRef }) => targetRef?.uid));
  const change = { spec: { template: { metadata: { annotations: { version: '2' } } } } };
  const deployments = cluster.client.resource<Deployment>(DEPLOYMENTS);
  await cluster.during(deployments.patch('web', 'default', 'application/merge-patch+json', change));
  await endpointsOnce(cluster, 12, (endpoints) => endpoints.every(({ targetRef }) => !old.has(targetRef?.uid)));
});

test('the endpoints on a node disappear with the node, and their successors appear on the others', async () => {
  await using cluster = await startSimulatedCluster({ nodes: NODES_IN_ZONES, time: 'virtual' });
  await served(cluster, 9);
  await endpointsOnce(cluster, 9);
  await cluster.removeNode('node-1');
  const { all } = await endpointsOnce(cluster, 9, (found) => found.every(({ nodeName }) => nodeName !== 'node-1'));
  expect(new Set(all.map(({ zone }) => zone))).toEqual(new Set(ZONES.slice(1)));
});
