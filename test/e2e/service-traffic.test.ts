import { spawn } from 'node:child_process';
import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, type TestContext } from 'vitest';
import type { Service } from '../../src/api/generated/types.ts';
import { readAttachments } from '../../src/network/pod-network/attachments.ts';
import { networkNames } from '../../src/network/pod-network/names.ts';
import { pod, SHARED, WAIT } from '../support/manifests.ts';
import { isReady, runs } from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

const SERVE = `nc -ll -p 8080 -e sh -c 'echo "$HOSTNAME"' & ${WAIT}`;
const serve = { name: 'app', script: SERVE, readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 } };
const web = { app: 'web' };

async function create(name: string, spec: object): Promise<NonNullable<Service['spec']>> {
  const ports = [{ port: 80, targetPort: 8080 }];
  await lifepod.apply({ apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { ports, ...spec } });
  return (await lifepod.get<Service>('service', name)).spec as NonNullable<Service['spec']>;
}

/** Resolves with the answer, or with the code of the error. */
function ask(address: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, address);
    socket.setTimeout(10_000, () => socket.destroy());
    socket.on('data', (data) => {
      answer += data;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    socket.on('close', () => resolve(answer.trim()));
  });
}

const inClient = async (script: string): Promise<string> =>
  (await lifepod.exec('client', '--', 'sh', '-c', script)).stdout.trim();
const askFromPod = (address: string, port: number): Promise<string> => inClient(`nc -w 10 ${address} ${port}`);

type Cleanup = Pick<TestContext, 'onTestFinished'>;

async function datagramSocket({ onTestFinished }: Cleanup, address: string, port: number): Promise<DatagramSocket> {
  const socket = createSocket('udp4');
  onTestFinished(() => {
    socket.close();
  });
  socket.connect(port, address);
  await once(socket, 'connect');
  return socket;
}

/** Debian's busybox has no UDP server. */
async function answerDatagrams({ onTestFinished }: Cleanup, name: string): Promise<void> {
  const { status } = await record.until(name, isReady);
  const { dataDir } = lifepod;
  const attachments = await readAttachments(networkNames({ dataDir, instance: dataDir }).network);
  const ofPod = [...attachments.values()].find(({ addresses }) => addresses.includes(status?.podIP ?? ''));
  const program = `const socket = require('node:dgram').createSocket('udp4');
    socket.on('message', (_, { port, address }) => socket.send('${name}', port, address));
    socket.bind(8080, () => console.log('listening'));`;
  const args = [`--net=${ofPod?.namespace}`, process.execPath, '-e', program];
  const server = spawn('nsenter', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => {
    server.kill();
  });
  await once(server.stdout, 'data');
}

/** A slow machine may need seconds until a change of the API is in the kernel's rules. */
const SOON = { timeout: 60_000, interval: 250 };

test.beforeAll(async () => {
  await lifepod.apply(pod('client'));
  for (const name of ['one', 'two']) await lifepod.apply(pod(name, { app: [serve], labels: web }));
  await Promise.all(['client', 'one', 'two'].map((name) => record.until(name, isReady)));
});

describe.concurrent('traffic through Services', () => {
  test('sessionAffinity ClientIP keeps the endpoint of a client until its timeout', async ({ expect }) => {
    const affinity = (timeoutSeconds: number) => ({
      selector: web,
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds } },
    });
    const { clusterIP: kept = '' } = await create('kept', affinity(10_800));
    const { clusterIP: brief = '' } = await create('brief', affinity(1));
    await expect.poll(() => askFromPod(kept, 80), SOON).toMatch(/^(one|two)$/);
    const first = await askFromPod(kept, 80);
    const answers = await inClient(`for i in 1 2 3 4 5 6 7 8 9 10; do nc -w 10 ${kept} 80; done`);
    expect(answers.split('\n')).toEqual(Array.from({ length: 10 }, () => first));
    await expect.poll(() => askFromPod(brief, 80), SOON).toMatch(/^(one|two)$/);
    const other = (await askFromPod(brief, 80)) === 'one' ? 'two' : 'one';
    // Each connection starts the timeout again, so the interval must be longer than the timeout.
    await expect.poll(() => askFromPod(brief, 80), { timeout: 90_000, interval: 1500 }).toBe(other);
  });

  test('traffic policies Local fall back to an endpoint that terminates but serves, and the health check counts none', async ({
    expect,
  }) => {
    const labels = { app: 'leaving' };
    const script = 'until test -e /work/end; do sleep 0.1; done';
    const leave = { name: 'leave', trigger: 'PreExit', timeoutSeconds: 120, script, ...SHARED.mount };
    const app = [{ ...serve, ...SHARED.mount }];
    const spec = { volumes: SHARED.volumes, terminationGracePeriodSeconds: 150 };
    await lifepod.apply(pod('leaving', { app, defer: [leave], labels, spec }));
    const {
      clusterIP = '',
      ports,
      healthCheckNodePort,
    } = await create('leaving', {
      type: 'LoadBalancer',
      selector: labels,
      ports: [{ port: 27_100, targetPort: 8080 }],
      internalTrafficPolicy: 'Local',
      externalTrafficPolicy: 'Local',
    });
    const nodePort = ports?.[0]?.nodePort as number;
    const node = await lifepod.kubectlOk('get', 'nodes', '-o', 'jsonpath={.items[0].status.addresses[0].address}');
    const health = async (): Promise<object> => {
      const response = await fetch(`http://${node}:${healthCheckNodePort}/healthz`).catch(() => undefined);
      return { status: response?.status, ...((await response?.json()) as object) };
    };
    const service = { namespace: lifepod.namespace, name: 'leaving' };
    const healthy = { status: 200, service, localEndpoints: 1, serviceProxyHealthy: true };
    await expect.poll(health, SOON).toEqual(healthy);
    for (const [address, port] of [
      [clusterIP, 27_100],
      [node, nodePort],
      [node, 27_100],
    ] as const) {
      await expect.poll(() => ask(address, port), SOON).toBe('leaving');
    }
    await lifepod.delete('pod', 'leaving', '--wait=false');
    await expect.poll(health, SOON).toEqual({ ...healthy, status: 503, localEndpoints: 0 });
    await record.until('leaving', runs('leave'));
    expect(await askFromPod(clusterIP, 27_100)).toBe('leaving');
    expect(await ask(clusterIP, 27_100)).toBe('leaving');
    expect(await ask(node, nodePort)).toBe('leaving');
    expect(await ask(node, 27_100)).toBe('leaving');
    await lifepod.execOk('leaving', '-c', 'app', '--', 'touch', '/work/end');
    await record.gone('leaving');
    await lifepod.delete('service', 'leaving');
    await expect.poll(health, SOON).toEqual({ status: undefined });
  });

  test('Pods and the machine reach the external IPs of a Service', async ({ expect }) => {
    await create('external', { selector: web, externalIPs: ['198.51.100.77'] });
    await expect.poll(() => askFromPod('198.51.100.77', 80), SOON).toMatch(/^(one|two)$/);
    expect(await ask('198.51.100.77', 80)).toMatch(/^(one|two)$/);
  });

  test('a Service without endpoints refuses connections of TCP, and datagrams of UDP with an ICMP message', async ({
    expect,
    onTestFinished,
  }) => {
    const ports = ['TCP', 'UDP'].map((protocol) => ({ name: protocol.toLowerCase(), port: 80, protocol }));
    const { clusterIP = '' } = await create('empty', { selector: { app: 'none' }, ports });
    await expect.poll(() => ask(clusterIP, 80), SOON).toBe('ECONNREFUSED');
    const socket = await datagramSocket({ onTestFinished }, clusterIP, 80);
    const refused = once(socket, 'message', { signal: AbortSignal.timeout(60_000) });
    socket.send('?');
    await expect(refused).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('a UDP socket reaches another endpoint when its own one leaves the Service, although this one still answers', async ({
    expect,
    onTestFinished,
  }) => {
    const labels = { app: 'datagrams' };
    for (const name of ['udp-1', 'udp-2'])
      await lifepod.apply(pod(name, { app: [{ name: 'app', script: WAIT }], labels }));
    for (const name of ['udp-1', 'udp-2']) await answerDatagrams({ onTestFinished }, name);
    const ports = [{ port: 53, targetPort: 8080, protocol: 'UDP' }];
    const { clusterIP = '' } = await create('datagrams', { selector: labels, ports });
    const socket = await datagramSocket({ onTestFinished }, clusterIP, 53);
    let answer = '';
    socket.on('message', (data) => {
      answer = String(data);
    });
    // Until the rules contain the Service, its address refuses datagrams, which causes errors on the socket.
    socket.on('error', () => undefined);
    const answers = (): string => {
      socket.send('?');
      return answer;
    };
    await expect.poll(answers, SOON).toMatch(/^udp-[12]$/);
    const [own, other] = answer === 'udp-1' ? ['udp-1', 'udp-2'] : ['udp-2', 'udp-1'];
    await lifepod.kubectlOk('label', 'pod', own as string, 'app-');
    await expect.poll(answers, SOON).toBe(other);
  });

  test('publishNotReadyAddresses lets traffic reach a Pod that is not ready', async ({ expect }) => {
    const labels = { app: 'early' };
    const readinessProbe = { exec: { command: ['false'] } };
    await lifepod.apply(pod('early', { app: [{ ...serve, readinessProbe }], labels }));
    const { clusterIP: closed = '' } = await create('closed', { selector: labels });
    const { clusterIP = '' } = await create('early', { selector: labels, publishNotReadyAddresses: true });
    await expect.poll(() => askFromPod(clusterIP, 80), SOON).toBe('early');
    expect(await ask(closed, 80)).toBe('ECONNREFUSED');
  });

  test('a slice by hand receives the traffic of its Service, and gives a headless Service its addresses', async ({
    expect,
  }) => {
    const { status } = await record.until('one', isReady);
    const { clusterIP = '' } = await create('hand', {});
    await create('hand-headless', { clusterIP: 'None' });
    for (const name of ['hand', 'hand-headless']) {
      await lifepod.apply({
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name, labels: { 'kubernetes.io/service-name': name } },
        addressType: 'IPv4',
        endpoints: [{ addresses: [status?.podIP] }],
        ports: [{ name: '', port: 8080 }],
      });
    }
    await expect.poll(() => askFromPod(clusterIP, 80), SOON).toBe('one');
    await expect.poll(() => askFromPod('hand-headless', 8080), SOON).toBe('one');
  });

  test('the name of a headless Service leads to its Pods', async ({ expect }) => {
    await create('headless', { selector: web, clusterIP: 'None' });
    const ips = await Promise.all(
      ['one', 'two'].map(async (name) => (await record.until(name, isReady)).status?.podIP),
    );
    const name = `headless.${lifepod.namespace}.svc.cluster.local`;
    const addresses = async (): Promise<string[]> =>
      [...(await inClient(`nslookup ${name}`)).matchAll(/^Address(?: \d+)?: ([\d.]+)$/gm)]
        .map(([, ip = '']) => ip)
        .sort();
    await expect.poll(addresses, SOON).toEqual([...ips].sort());
  });
});
