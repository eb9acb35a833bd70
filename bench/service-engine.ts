/**
 * Measures Services in a running engine: the time from Ready to the first answer through the cluster IP, and the memory of the engine with
 * many Services. The many Services have no selectors, and the addresses in their EndpointSlices belong to no Pods.
 */
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { EndpointSlice, Pod, Service } from '../src/api/generated/types.ts';
import { ENDPOINT_SLICES, PODS, SERVICES } from '../src/api/resources.ts';
import type { Client } from '../src/client/client.ts';
import { endpoint } from '../src/network/proxy/proxy-fixture.ts';
import { BUSYBOX, median, residentMebibytes, startEngine } from './engine.ts';
import { isReady, watchPod } from './pods.ts';

const COUNT = 5000;
const ENDPOINTS = 10;
const ROUNDS = 25;
const CREATED_AT_ONCE = 16;
const REST_MILLIS = 30_000;

const server = (name: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', labels: { app: name } },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: 'app',
        image: BUSYBOX,
        command: ['nc', '-ll', '-p', '8080', '-e', 'echo', name],
        // With this probe, a Pod becomes Ready only when its server listens.
        readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
      },
    ],
  },
});

const service = (name: string, selector?: Record<string, string>): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'default' },
  spec: { ports: [{ port: 80, targetPort: 8080 }], ...(selector === undefined ? {} : { selector }) },
});

async function createService(client: Client, name: string): Promise<string> {
  const { spec } = await client.resource<Service>(SERVICES).create(service(name, { app: name }));
  return spec?.clusterIP as string;
}

const answers = (address: string): Promise<boolean> =>
  new Promise((resolve) => {
    let hasAnswered = false;
    connect(80, address)
      .on('error', () => undefined)
      .on('data', () => {
        hasAnswered = true;
      })
      .on('close', () => resolve(hasAnswered));
  });

async function firstAnswer(address: string): Promise<void> {
  while (!(await answers(address)));
}

/** As a client sees it, from Ready to the first answer through the cluster IP. */
async function fromReady(client: Client, name: string, address: string): Promise<number> {
  const watch = await watchPod(client, name);
  await client.resource<Pod>(PODS).create(server(name));
  await watch.until((event) => event.type === 'MODIFIED' && isReady(event.object));
  const began = performance.now();
  await firstAnswer(address);
  const millis = performance.now() - began;
  watch.stop();
  return millis;
}

async function remove(client: Client, name: string): Promise<void> {
  const watch = await watchPod(client, name);
  await client.resource<Pod>(PODS).delete(name, 'default');
  await watch.until(({ type }) => type === 'DELETED');
  watch.stop();
}

async function measureRounds(client: Client, name: string): Promise<string> {
  const times: number[] = [];
  const address = await createService(client, name);
  for (let round = 0; round < ROUNDS; round++) {
    times.push(await fromReady(client, name, address));
    await remove(client, name);
  }
  return `${median(times).toFixed(0)} ms, at most ${Math.max(...times).toFixed(0)} ms`;
}

async function createMany(client: Client): Promise<void> {
  const [services, slices] = [client.resource<Service>(SERVICES), client.resource<EndpointSlice>(ENDPOINT_SLICES)];
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < COUNT; index = next++) {
      const name = `many-${index}`;
      const address = (each: number): string => {
        const number = index * ENDPOINTS + each;
        return `10.${64 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
      };
      await services.create(service(name));
      await slices.create({
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name, namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
        addressType: 'IPv4',
        endpoints: Array.from({ length: ENDPOINTS }, (_, each) => endpoint(address(each))),
        ports: [{ name: '', port: 8080, protocol: 'TCP' }],
      });
    }
  };
  await Promise.all(Array.from({ length: CREATED_AT_ONCE }, work));
}

export async function servicesOfEngine(): Promise<void> {
  const engine = await startEngine();
  const { client, pid } = engine;
  try {
    const few = await measureRounds(client, 'few');
    await pause(REST_MILLIS);
    const before = await residentMebibytes(pid);
    const began = performance.now();
    await createMany(client);
    // When this Service works, the rules contain all Services that were created before it.
    await fromReady(client, 'last', await createService(client, 'last'));
    const seconds = (performance.now() - began) / 1000;
    const during = await residentMebibytes(pid);
    await pause(REST_MILLIS);
    const after = await residentMebibytes(pid);
    const many = await measureRounds(client, 'many');
    console.log(`
| an engine | |
|---|---|
| from Ready to the first answer through the cluster IP, median of ${ROUNDS} | ${few} |
| the same among ${COUNT.toLocaleString('en')} Services with ${ENDPOINTS} endpoints each | ${many} |
| creating these, one after the other in ${CREATED_AT_ONCE} connections, until the rules contain them | ${seconds.toFixed(0)} s |
| resident memory of the engine before | ${before.toFixed(0)} MiB |
| resident memory as soon as the rules contain them | ${during.toFixed(0)} MiB |
| resident memory half a minute later | ${after.toFixed(0)} MiB |
`);
  } finally {
    await engine.stop();
  }
}
